"""Round figures for sums that are worked by hand."""

from datetime import date
from pathlib import Path

from infra.cost.plan import Plan
from infra.cost.prices import Prices
from infra.cost.rates import UNITS, Rate, Rates
from infra.cost.workload import Workload

PRICES = {
    "as_of": date(2026, 1, 1),
    "region": "somewhere",
    "currency": "USD",
    "note": "made up",
    "compute": {"vcpu_hour": 0.03, "gb_hour": 0.004, "cpu_factor": 0.5},
    "dataflow": {
        "streaming_vcpu_hour": 0.07,
        "streaming_gb_hour": 0.0035,
        "streaming_engine_gb": 0.02,
        "batch_vcpu_hour": 0.05,
        "batch_gb_hour": 0.0035,
    },
    "pubsub": {"gb": 0.04},
    "disk": {"ssd_gb_month": 0.2},
    "storage": {"gb_month": 0.02},
    "kubernetes": {"cluster_hour": 0.1},
    "machines": {
        "serving": {"vcpus": 8, "memory_gb": 16},
        "search": {"vcpus": 2, "memory_gb": 4},
        "elasticsearch": {"vcpus": 8},
        "worker": {"vcpus": 2, "memory_gb": 8},
    },
}
FIGURES = {
    "encode": (60, 2),
    "pipeline": (200, 2),
    "elasticsearch_write": (1000, 2),
    "elasticsearch_question": (0.01, 1),
    "search_question": (0.005, 1),
    "elasticsearch_bytes": (5000, 1),
    "record_bytes": (1000, 1),
    "companies": (1e9, 1),  # nothing is larger, so that nothing takes longer than it was measured
}


def rates(**changed) -> Rates:
    figures = {name: (1.0, 1) for name in UNITS} | FIGURES | changed
    return Rates("a machine", "2026-01-01", {name: Rate(*_first(figures[name], name)) for name in UNITS})


def _first(figure, name):
    value, cores = figure
    return value, UNITS[name], "made up", cores


def plan(fleet=None, prices=PRICES, figures=None, **workload) -> Plan:
    given = {"companies": 8.64e6, "updates_per_day": 864_000, "questions_per_second": 20, **workload}
    return Plan(Workload(**given), figures or rates(), Prices(Path("prices.toml"), prices), fleet)
