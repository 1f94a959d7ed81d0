"""The pipeline between its ends: arrivals in, companies in the index, dead letters out.

The names of the steps are what `--update` recognises a running job by: change none of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.arrival import Arrival
from pipelines.company import Columns, Company
from pipelines.dead_letter import DeadLetter
from pipelines.services import Services
from pipelines.steps import DEAD, AllStages, Batch, Encode, Parse, SkipUnchanged, Write


@dataclass(frozen=True)
class Work:
    """What the steps between the ends need to know."""

    services: Services
    columns: Columns
    started: int  # microseconds
    batch_size: int = 512
    in_flight: int = 3  # batches being encoded
    writes: int = 3  # batches being written: one is made ready while others are with the index
    max_wait: float | None = None  # seconds until a batch goes as it is; None batches within bundles, for files
    polled: bool = False  # for the direct runner's streams: it reads on while batches are worked on, see overlap.py
    shards: int = 1  # of a stream: each fills batches of its own, and has all versions of a company


class IndexCompanies(beam.PTransform[beam.PCollection[Arrival], beam.PCollection[DeadLetter]]):
    """PCollection of Arrival -> PCollection of DeadLetter."""

    def __init__(self, work: Work):
        super().__init__()
        self._work = work

    def expand(self, arrivals: beam.PCollection[Arrival]) -> beam.PCollection[DeadLetter]:
        work = self._work
        parsed = arrivals | "Parse" >> beam.ParDo(Parse(work.columns, work.started)).with_outputs(DEAD, main="good")
        ends = self._one_step(parsed.good) if work.polled else self._steps(parsed.good)
        letters: beam.PCollection[DeadLetter] = (parsed[DEAD], *ends) | "Dead" >> beam.Flatten()
        return letters

    def _steps(self, companies: beam.PCollection[Company]) -> list[beam.PCollection[DeadLetter]]:
        work = self._work
        batches = companies | "Batch" >> (_Bundles(work) if work.max_wait is None else _Stream(work))
        tasks = batches | "SkipUnchanged" >> _step(SkipUnchanged(work.services, 1))
        encoded = tasks.good | "Encode" >> _step(Encode(work.services, work.in_flight))
        written = encoded.good | "Write" >> _step(Write(work.services, work.writes))
        return [tasks[DEAD], encoded[DEAD], written[DEAD]]

    def _one_step(self, companies: beam.PCollection[Company]) -> list[beam.PCollection[DeadLetter]]:
        work = self._work
        keyed = companies | "Key" >> beam.WithKeys(0).with_output_types(tuple[int, Company])
        step = AllStages(work.services, work.in_flight, size=work.batch_size, max_wait=work.max_wait or 0.0)
        return [(keyed | "AllStages" >> _step(step))[DEAD]]


def _step(step: beam.DoFn) -> Any:
    return beam.ParDo(step).with_outputs(DEAD, main="good")


class _Bundles(beam.PTransform[beam.PCollection[Company], beam.PCollection[list[Company]]]):
    def __init__(self, work: Work):
        super().__init__()
        self._work = work

    def expand(self, companies: beam.PCollection[Company]) -> beam.PCollection[list[Company]]:
        batches: beam.PCollection[list[Company]] = companies | "InBundle" >> beam.ParDo(Batch(self._work.batch_size))
        return batches


class _Stream(beam.PTransform[beam.PCollection[Company], beam.PCollection[list[Company]]]):
    """A stream's bundles may hold one message each: batches gather in the runner's state, which outlives a worker."""

    def __init__(self, work: Work):
        super().__init__()
        self._work = work

    def expand(self, companies: beam.PCollection[Company]) -> beam.PCollection[list[Company]]:
        gather = beam.GroupIntoBatches(self._work.batch_size, max_buffering_duration_secs=self._work.max_wait)
        batches: beam.PCollection[list[Company]] = (
            companies
            | "Shard" >> beam.Map(shard, self._work.shards).with_output_types(tuple[int, Company])
            | "Gather" >> gather
            | "Values" >> beam.MapTuple(_values)
        )
        return batches


def shard(company: Company, shards: int) -> tuple[int, Company]:
    return zlib.crc32(company.document.id.encode()) % shards, company


def _values(key: int, companies: Iterable[Company]) -> list[Company]:
    return list(companies)
