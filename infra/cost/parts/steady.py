"""What runs all month: serving, the stream, search, Elasticsearch, and what is kept in an object store."""

from __future__ import annotations

import math

from infra.cost.parts import vectors
from infra.cost.parts.estimate import Estimate
from infra.cost.plan import Plan
from infra.cost.prices import DAYS_A_MONTH, HOURS_A_MONTH
from infra.cost.workload import Workload

GB = 1e9
SERVING, STREAM, SEARCH, ELASTIC, STORAGE = "serving", "stream", "search", "Elasticsearch", "storage"
COMPANIES_A_HEAP_GB, LEAST_HEAP_GB, MOST_HEAP_GB = 2.5e6, 2.0, 31.0
SYSTEM_GB = 1.0
DISK_FULL = 0.85  # the low watermark, from which on Elasticsearch puts nothing more there
SHARD_GB = 50.0  # the most that its makers advise
MODEL_GB, MODEL_VERSIONS = 0.3, 3
ENGINE_PASSES = 2.0  # a record goes into the state that batches it, and out
BILLED_MESSAGE_BYTES = 1000.0  # Pub/Sub counts a smaller message as that
SNAPSHOT_CHANGES = 0.3


def serving(plan: Plan, made: Estimate) -> None:
    work, each = plan.workload, plan.capacity.texts_a_serving_machine
    texts = work.peak_updates_per_second * work.changed + work.questions_per_second * work.text_questions
    machines = max(work.least_machines, math.ceil(texts / (each * work.utilisation)))
    machine = plan.prices.machine("serving")
    made.add(
        SERVING,
        "texts at the peak",
        texts,
        "texts/s",
        f"{work.changed:.0%} of the updates changed, x {work.peak:g} in the busiest hour; "
        f"{work.text_questions:.0%} of the questions typed",
    )
    made.bill(
        SERVING,
        "machines",
        machines,
        "machines",
        f"{each:.0f} texts/s each ({machine.vcpus:g} vCPUs, {machine.memory_gb:g} GB), "
        f"{work.utilisation:.0%} used, at least {work.least_machines}",
        machines * machine.hour * HOURS_A_MONTH,
    )


def stream(plan: Plan, made: Estimate) -> None:
    work, each = plan.workload, plan.capacity.records_a_worker
    workers = max(1, math.ceil(work.peak_updates_per_second / (each * work.utilisation)))
    worker = plan.prices.worker("streaming")
    made.add(
        STREAM,
        "updates at the peak",
        work.peak_updates_per_second,
        "records/s",
        f"{work.updates_per_day:,.0f} a day, x {work.peak:g} in the busiest hour",
    )
    made.bill(
        STREAM,
        "Dataflow workers",
        workers,
        "machines",
        f"{each:.0f} records/s each ({worker.vcpus:g} vCPUs, {worker.memory_gb:g} GB), {work.utilisation:.0%} used",
        workers * worker.hour * HOURS_A_MONTH,
    )
    monthly = work.updates_per_day * DAYS_A_MONTH / GB
    engine = monthly * work.record_bytes * ENGINE_PASSES
    made.bill(
        STREAM,
        "Streaming Engine",
        engine,
        "GB",
        f"{work.record_bytes:,.0f} bytes a record, {ENGINE_PASSES:g} times through its state",
        engine * plan.prices.price("dataflow", "streaming_engine_gb"),
    )
    messages = 2 * monthly * max(work.record_bytes, BILLED_MESSAGE_BYTES)
    made.bill(
        STREAM,
        "Pub/Sub",
        messages,
        "GB",
        f"published and delivered once, {BILLED_MESSAGE_BYTES:,.0f} bytes a message at least",
        messages * plan.prices.price("pubsub", "gb"),
    )


def search(plan: Plan, made: Estimate) -> None:
    work, each = plan.workload, plan.capacity.questions_a_search_machine
    machines = max(work.least_machines, math.ceil(work.questions_per_second / (each * work.utilisation)))
    machine = plan.prices.machine("search")
    made.bill(
        SEARCH,
        "machines",
        machines,
        "machines",
        f"{each:.0f} questions/s each ({machine.vcpus:g} vCPUs, {machine.memory_gb:g} GB), "
        f"{work.utilisation:.0%} used, at least {work.least_machines}",
        machines * machine.hour * HOURS_A_MONTH,
    )
    made.bill(
        SEARCH,
        "Kubernetes cluster",
        1,
        "clusters",
        "serving and search run in it",
        plan.prices.price("kubernetes", "cluster_hour") * HOURS_A_MONTH,
    )


def elasticsearch(plan: Plan, made: Estimate) -> None:
    work, able = plan.workload, plan.capacity
    writing = work.peak_updates_per_second / able.documents_a_node
    left = max(work.utilisation - writing, work.utilisation / 10)
    nodes = max(1 + work.replicas, math.ceil(work.questions_per_second / (able.questions_a_node * left)))
    machine = plan.prices.machine("elasticsearch", node_memory_gb(work))
    _vector_lines(work, made)
    made.bill(
        ELASTIC,
        "nodes",
        nodes,
        "machines",
        f"{machine.vcpus:g} vCPUs and {machine.memory_gb:g} GB each, a copy a node: heap {heap_gb(work):.1f}, vectors "
        f"of two indices while a reindex runs; {able.questions_a_node:.0f} questions/s each, {writing:.1%} spent on "
        f"writing",
        nodes * machine.hour * HOURS_A_MONTH,
    )
    copy = work.companies * plan.disk_bytes_a_company() / GB
    disk = nodes * copy * 2 / DISK_FULL
    made.add(ELASTIC, "one copy on disk", copy, "GB", f"{plan.disk_bytes_a_company():,.0f} bytes a company, measured")
    made.bill(
        ELASTIC,
        "disk",
        disk,
        "GB",
        f"{nodes} copies, two indices while a reindex runs, {DISK_FULL:.0%} full at most",
        disk * plan.prices.price("disk", "ssd_gb_month"),
    )
    made.warnings += shard_warnings(work, writing, copy)


def _vector_lines(work: Workload, made: Estimate) -> None:
    first = vectors.memory_bytes(work.companies, work.dimension, "int8_hnsw") / GB
    made.add(
        ELASTIC,
        "memory of the vectors",
        first,
        "GB",
        f"one copy, int8_hnsw, as a first load makes it: {work.dimension} + 4 bytes and {vectors.GRAPH_LINKS} links of "
        f"{vectors.LINK_BYTES} bytes each",
    )
    made.add(
        ELASTIC,
        f"the same after a reindex ({vectors.vector_kind(work.dimension, work.companies)})",
        vectors.memory_bytes(work.companies, work.dimension) / GB,
        "GB",
        f"a bit a number from {vectors.BBQ_FROM:,} companies on, for an index made by pipelines.reindex",
    )


def shard_warnings(work: Workload, writing: float, copy_gb: float) -> list[str]:
    """`writing`: the share of a node that the stream's peak takes."""
    warnings = []
    if writing >= work.utilisation:
        warnings.append(
            f"the stream's peak of {work.peak_updates_per_second:,.0f} records/s takes {writing:.0%} of what the node "
            f"of one shard can write: lengthen the peak, or give the index more shards (index/elastic/mapping.py)"
        )
    if copy_gb > SHARD_GB:
        warnings.append(
            f"the index is one shard of {copy_gb:,.0f} GB (index/elastic/mapping.py); Elasticsearch advises "
            f"{SHARD_GB:g} GB at most: a lost copy takes long to come back, and one node does all the writing"
        )
    return warnings


def heap_gb(work: Workload) -> float:
    return min(MOST_HEAP_GB, max(LEAST_HEAP_GB, work.companies / COMPANIES_A_HEAP_GB))


def node_memory_gb(work: Workload) -> float:
    """A first load makes int8_hnsw whatever the number; the successor of a large index is bbq_hnsw, and never planned
    for less than the largest int8_hnsw one, since an index may have been counted just below the bound."""
    live = vectors.memory_bytes(work.companies, work.dimension, "int8_hnsw")
    below = vectors.memory_bytes(min(work.companies, vectors.BBQ_FROM), work.dimension, "int8_hnsw")
    successor = max(below, vectors.memory_bytes(work.companies, work.dimension))
    return math.ceil(heap_gb(work) + (live + successor) / GB + SYSTEM_GB)


def storage(plan: Plan, made: Estimate) -> None:
    work, price = plan.workload, plan.prices.price("storage", "gb_month")
    dumps = work.companies * work.record_bytes / GB + MODEL_GB * MODEL_VERSIONS
    made.bill(
        STORAGE,
        "dump and models",
        dumps,
        "GB",
        f"every record once, {MODEL_VERSIONS} versions of {MODEL_GB:g} GB",
        dumps * price,
    )
    snapshots = work.companies * plan.disk_bytes_a_company() / GB * (1 + SNAPSHOT_CHANGES)
    made.bill(
        STORAGE,
        "snapshots",
        snapshots,
        "GB",
        f"one copy of the index, and {SNAPSHOT_CHANGES:.0%} for what changes between them",
        snapshots * price,
    )
