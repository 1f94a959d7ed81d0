"""All on one machine with the embedded index, where that is enough: `infra/compose.yaml` without a cluster."""

from __future__ import annotations

from infra.cost.parts.estimate import INSTEAD, Estimate
from infra.cost.plan import Plan
from infra.cost.prices import HOURS_A_MONTH

PART = "one machine instead"
MOST_COMPANIES = 1e6  # the embedded index was measured with far fewer, and takes no more than one machine's disk
SPARE = 2.0  # times the disk of the index: a reindex, and states that are not yet removed
GB = 1e9


def instead(plan: Plan, made: Estimate) -> None:
    """A machine of the shape of serving, unless the workload is more than it should carry."""
    work, rates, machine = plan.workload, plan.rates, plan.prices.machine("serving")
    texts = work.peak_updates_per_second * work.changed + work.questions_per_second * work.text_questions
    busy = (
        texts / rates["encode"].a_core
        + work.peak_updates_per_second * (1 / rates["pipeline"].a_core + 1 / rates["lancedb_write"].a_core)
        + work.questions_per_second * (rates["search_question"].value + rates["elasticsearch_question"].value)
    )
    cores = machine.vcpus * plan.prices.price("compute", "cpu_factor")
    if work.companies > MOST_COMPANIES or busy > cores * work.utilisation:
        return
    disk = SPARE * work.companies * rates["lancedb_bytes"].value / GB
    money = machine.hour * HOURS_A_MONTH + disk * plan.prices.price("disk", "ssd_gb_month")
    made.bill(
        PART,
        "machines",
        1,
        "machines",
        f"{machine.vcpus:g} vCPUs, {machine.memory_gb:g} GB, {disk:.1f} GB of disk, {busy / cores:.1%} used at most; "
        f"up to {MOST_COMPANIES:,.0f} companies, no second machine where it fails",
        money,
        INSTEAD,
    )
    hours = work.companies / (cores * rates["encode"].a_core) / 3600
    made.add(PART, "hours of the first load", hours, "h", "encoding; LanceDB takes what is encoded many times over")
