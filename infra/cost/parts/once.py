"""What is done once: the first load, and a reindex to a new model."""

from __future__ import annotations

import math

from infra.cost.parts.estimate import ONCE, Estimate
from infra.cost.plan import Plan

LOAD, REINDEX = "first load", "reindex"
REINDEX_SHARE = 0.5


def first_load(plan: Plan, made: Estimate) -> None:
    able = plan.capacity.documents_a_node
    because = "one shard is written by one node, replicas are off meanwhile"
    _encode_all(plan, made, LOAD, able, because, plan.fleet)


def reindex(plan: Plan, made: Estimate) -> None:
    """Without the former texts' vectors: a new model encodes them all."""
    able = plan.capacity.documents_a_node * REINDEX_SHARE
    because = f"a node gives {REINDEX_SHARE:.0%} of itself, for searches and the stream go on"
    _encode_all(plan, made, REINDEX, able, because, plan.fleet)


def _encode_all(plan: Plan, made: Estimate, part: str, writes: float, because: str, fleet: int | None) -> None:
    companies, each = plan.workload.companies, plan.capacity.texts_a_serving_machine
    wanted = math.ceil(companies / (plan.workload.load_hours * 3600 * each))
    machines = fleet or max(1, min(wanted, math.floor(writes / each)))
    rate = min(machines * each, writes)
    hours = companies / rate / 3600
    limit = "encoding" if machines * each <= writes else "Elasticsearch"
    machine, worker = plan.prices.machine("serving"), plan.prices.worker("batch")
    made.bill(
        part,
        "serving machines",
        machines,
        "machines",
        f"{each:.0f} texts/s each ({machine.vcpus:g} vCPUs), {plan.workload.load_hours:g} h wanted",
        machines * hours * machine.hour,
        ONCE,
    )
    worker_hours = companies / plan.capacity.records_a_worker / 3600
    made.bill(
        part,
        "Dataflow worker-hours",
        worker_hours,
        "h",
        f"{plan.capacity.records_a_worker:.0f} records/s a worker ({worker.vcpus:g} vCPUs)",
        worker_hours * worker.hour,
        ONCE,
    )
    made.add(
        part,
        "hours",
        hours,
        "h",
        f"{rate:.0f} companies/s, limited by {limit}; Elasticsearch takes {writes:.0f} documents/s: {because}",
    )
    if hours > plan.workload.load_hours * 1.01 and fleet is None:
        made.warnings.append(
            f"the {part} takes {hours:,.0f} h, not {plan.workload.load_hours:g}: Elasticsearch limits it, not serving"
        )
