"""What one machine of each kind manages, from the measured rates and the shapes of the price table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from common.errors import InputError
from infra.cost.parts import vectors
from infra.cost.prices import Prices
from infra.cost.rates import Rates
from infra.cost.workload import Workload

KINDS = ("serving", "search", "elasticsearch", "worker")
MEASURED_DIMENSION = 384


@dataclass(frozen=True)
class Capacity:
    """A second, with nothing kept back for bursts."""

    texts_a_serving_machine: float
    records_a_worker: float
    documents_a_node: float
    questions_a_node: float
    questions_a_search_machine: float


@dataclass(frozen=True)
class Plan:
    """What an estimate is made of."""

    workload: Workload
    rates: Rates
    prices: Prices
    fleet: int | None = None  # serving machines of the first load, where somebody has so many

    @cached_property
    def capacity(self) -> Capacity:
        return capacity(self.rates, self.prices, self.workload.companies)

    def disk_bytes_a_company(self) -> float:
        """One copy in Elasticsearch: vectors by the formula, the rest as measured, in step with the record's size."""
        measured = self.rates["elasticsearch_bytes"].value - vectors.disk_bytes(1, MEASURED_DIMENSION, "int8_hnsw")
        text = max(0.0, measured) * self.workload.record_bytes / self.rates["record_bytes"].value
        return text + vectors.disk_bytes(1, self.workload.dimension, "int8_hnsw")


def capacity(rates: Rates, prices: Prices, companies: float) -> Capacity:
    factor = prices.price("compute", "cpu_factor")
    cores = {kind: prices.price(f"machines.{kind}", "vcpus") * factor for kind in KINDS}
    if not all(cores.values()):
        raise InputError(f"{prices.file} has a machine without vcpus, or a cpu_factor of 0; above 0 is expected")
    growth = graph_growth(companies, rates["companies"].value)
    return Capacity(
        texts_a_serving_machine=cores["serving"] * rates["encode"].a_core,
        records_a_worker=cores["worker"] * rates["pipeline"].a_core,
        documents_a_node=cores["elasticsearch"] * rates["elasticsearch_write"].a_core / growth,
        questions_a_node=cores["elasticsearch"] / (rates["elasticsearch_question"].value * growth),
        questions_a_search_machine=cores["search"] / rates["search_question"].value,
    )


def graph_growth(companies: float, measured: float) -> float:
    """A walk through a graph of vectors takes steps by the logarithm of their number; fewer are not taken for less."""
    return max(1.0, math.log(max(companies, 2.0)) / math.log(measured))
