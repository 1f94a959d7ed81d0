"""Where dead letters go: files of JSON lines in a folder, or a topic."""

from __future__ import annotations

import uuid
from typing import IO, Any

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.dead_letter import DeadLetter
from pipelines.options import TOPIC

ENDING, UNFINISHED = ".jsonl", ".part"


class WriteDeadLetters(beam.PTransform[beam.PCollection[DeadLetter], Any]):
    def __init__(self, to: str):
        super().__init__()
        self._to = to

    def expand(self, letters: beam.PCollection[DeadLetter]) -> Any:
        if not TOPIC.fullmatch(self._to):
            return letters | "Files" >> beam.ParDo(LetterFiles(self._to))
        from apache_beam.io.gcp.pubsub import WriteToPubSub

        lines = letters | "Json" >> beam.Map(DeadLetter.to_json).with_output_types(bytes)
        return lines | "Publish" >> WriteToPubSub(self._to)


class LetterFiles(beam.DoFn):
    """A file a bundle that has any: in its place before the bundle counts as done, in batch and stream alike."""

    def __init__(self, folder: str):
        self._folder = folder

    def start_bundle(self) -> None:
        self._file: IO[bytes] | None = None

    def process(self, element: DeadLetter) -> None:
        if self._file is None:
            self._path = FileSystems.join(
                self._folder, f"{element.at[:19].replace(':', '')}-{uuid.uuid4().hex}{ENDING}"
            )
            self._file = FileSystems.create(self._path + UNFINISHED, compression_type=CompressionTypes.UNCOMPRESSED)
        self._file.write(element.to_json() + b"\n")

    def finish_bundle(self) -> None:
        if self._file is not None:
            self._file.close()
            FileSystems.rename([self._path + UNFINISHED], [self._path])
            self._file = None
