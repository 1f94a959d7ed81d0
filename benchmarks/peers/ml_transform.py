"""Beam's own way, in the peers' environment: MLTransform with sentence-transformers, and Elasticsearch's bulk helper.

`python -m benchmarks.peers.ml_transform FILE ELASTICSEARCH INDEX MODEL TOKENS BATCH` reads JSON lines, writes to an
index that is there, and says how long that took as `pipelines.encode` does: all is imported before the clock runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransform
from apache_beam.ml.transforms.embeddings.huggingface import SentenceTransformerEmbeddings
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from elasticsearch import Elasticsearch, helpers

from common.cpu import cap_instruction_set

FIELDS = ("id", "name", "description", "sector", "industry", "country")
WRITTEN_AT_ONCE = 512  # as ours


def row(line: str) -> dict:
    """All rows of a batch must have the same names; the text turns into the vector where it stands."""
    company = json.loads(line)
    return {**{name: company.get(name, "") for name in FIELDS}, "embedding": company["description"]}


class Bulk(beam.DoFn):
    """list of rows -> nothing."""

    def __init__(self, address: str, index: str):
        self._address, self._index = address, index

    def setup(self) -> None:
        self._client = Elasticsearch(self._address, request_timeout=60)

    def process(self, element: list[dict]) -> None:
        helpers.bulk(self._client, self._actions(element), chunk_size=len(element))

    def teardown(self) -> None:
        self._client.close()

    def _actions(self, rows: list[dict]) -> Iterator[dict]:
        for row in rows:
            source = {name: value for name, value in row.items() if name != "id"}
            yield {"_index": self._index, "_id": row["id"], "_source": {**source, "deleted": False, "version": 1}}


def pipeline(file: str, bulk: Bulk, embeddings: SentenceTransformerEmbeddings, artifacts: str) -> beam.Pipeline:
    # The runner that `pipelines.encode` uses too, where DirectRunner first looks for another program.
    made = beam.Pipeline(runner=FnApiRunner())
    _ = (
        made
        | beam.io.ReadFromText(file)
        | beam.Map(row)
        | MLTransform(write_artifact_location=artifacts).with_transform(embeddings)
        | beam.BatchElements(WRITTEN_AT_ONCE, WRITTEN_AT_ONCE)
        | beam.ParDo(bulk)
    )
    return made


def main(file: str, address: str, index: str, model: str, tokens: str, batch: str) -> None:
    cap_instruction_set()
    size = int(batch) or None  # Beam looks for one by itself
    start = time.perf_counter()
    embeddings = SentenceTransformerEmbeddings(
        model,
        ["embedding"],
        int(tokens),
        load_model_args={"device": "cpu"},
        min_batch_size=size,
        max_batch_size=size,
        inference_args={"show_progress_bar": False},
    )
    with tempfile.TemporaryDirectory() as artifacts:
        pipeline(file, Bulk(address, index), embeddings, artifacts).run().wait_until_finish()
    with Elasticsearch(address, request_timeout=60) as client:
        client.indices.refresh(index=index)  # as ours: what was written can be found when the clock stops
        seconds = time.perf_counter() - start
        print(f"{client.count(index=index)['count']:,} indexed; {seconds:.1f} s; index {address}/{index}")


if __name__ == "__main__":
    main(*sys.argv[1:])
