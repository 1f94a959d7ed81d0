"""Records of files: JSON lines, CSV, Parquet; local or in an object store; never all at once, nor one of more than
MAX_RECORD_BYTES."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal, cast

import apache_beam as beam
from apache_beam.io.fileio import MatchAll
from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from pipelines.io import csv_rows, parquet_rows
from pipelines.records import MAX_RECORD_BYTES, QUOTED_BYTES, SAME_NAMES, Columns, FileUnreadable, Origin, RawRecord

Format = Literal["jsonl", "csv", "tsv", "parquet"]
ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PART_BYTES = 16 << 20  # some minutes of encoding
END = 1 << 62  # of a file that cannot be cut
NOT_FOUND = 404  # a store's way to say so

Part = tuple[str, int, int, int]  # path, the first and the last byte but one, and the file's time, 0 for none


class ReadFiles(beam.PTransform[Any, beam.PCollection[RawRecord]]):
    """The files that a pattern names now; large ones in parts, over all workers."""

    def __init__(self, pattern: str, columns: Columns):
        super().__init__()
        self._pattern, self._columns = pattern, columns

    def expand(self, begin: Any) -> beam.PCollection[RawRecord]:
        found: beam.PCollection[RawRecord] = (
            begin
            | "Pattern" >> beam.Create([self._pattern])
            | "Match" >> MatchAll()
            | "Split" >> beam.FlatMap(split).with_output_types(Part)
            | "Spread" >> beam.Reshuffle()
            | "Records" >> beam.FlatMap(records, self._columns).with_output_types(RawRecord)
        )
        return found


def split(file: FileMetadata) -> Iterator[Part]:
    for start, stop in parts(file.path, file.size_in_bytes):
        yield file.path, start, stop, modified(file)


def modified(file: FileMetadata) -> int:
    """Microseconds; 0 where the store does not tell."""
    return round(file.last_updated_in_seconds * 1e6)


def records(part: Part, columns: Columns = SAME_NAMES) -> Iterator[RawRecord]:
    path, start, stop, time = part
    return read(path, start, stop, columns, time or None)


def format_of(path: str) -> Format:
    name = path.lower().removesuffix(".gz")
    for ending, format in ENDINGS.items():
        if name.endswith(ending) and not (format == "parquet" and name != path.lower()):
            return format
    raise FileUnreadable(
        f"{path} has no ending that is read; these are: {', '.join(ENDINGS)}, all but Parquet also .gz"
    )


def parts(path: str, size: int) -> list[tuple[int, int]]:
    """Where to cut: a CSV may have a line end in quotes anywhere, and compressed bytes tell nothing by themselves."""
    if path.lower().endswith(".gz") or format_of(path) in ("csv", "tsv"):
        return [(0, END)]
    return [(start, min(start + PART_BYTES, size)) for start in range(0, size, PART_BYTES)]


def read(path: str, start: int, stop: int, columns: Columns, time: int | None = None) -> Iterator[RawRecord]:
    """The records that begin from `start` on and before `stop`, in bytes; `time` is the file's, in microseconds.

    Raises FileUnreadable for what the file itself is to blame for, and whatever a sick store raises."""
    format, origin = format_of(path), Origin(path, time)
    try:
        with _open(path) as file:
            if format == "jsonl":
                yield from _lines(origin, file, start, stop)
            elif format == "parquet":
                yield from parquet_rows.rows(origin, file, start, stop, columns)
            else:
                yield from csv_rows.rows(origin, file, "\t" if format == "tsv" else ",", MAX_RECORD_BYTES)
    except (FileUnreadable, ConnectionError, TimeoutError):
        raise
    except Exception as error:
        if isinstance(error, OSError | EOFError | zlib.error) or getattr(error, "code", None) == NOT_FOUND:
            raise FileUnreadable(f"{path} cannot be read: {' '.join(str(error).split())}") from error
        raise


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        if not path.lower().endswith(".gz"):
            yield file
            return
        # Beam's own reader takes a .gz that was cut off for a whole one.
        with gzip.GzipFile(fileobj=file) as whole:
            yield cast(IO[bytes], whole)


def _lines(origin: Origin, file: IO[bytes], start: int, stop: int) -> Iterator[RawRecord]:
    position = start
    if start:
        file.seek(start - 1)  # a line that begins at `start` has the end of another before it
        position += _skip(file) - 1
    while position < stop:
        line = file.readline(MAX_RECORD_BYTES)
        if not line:
            return
        place, size = f"byte {position}", len(line)
        whole = line.endswith(b"\n") or size < MAX_RECORD_BYTES
        if not whole:
            size += _skip(file)
            fault = f"record: a line of {size:,} bytes; {MAX_RECORD_BYTES:,} are read"
            yield origin.record(line[:QUOTED_BYTES], place, fault, "too large")
        elif line.strip():
            yield origin.record(line.rstrip(b"\r\n"), place)
        position += size


def _skip(file: IO[bytes]) -> int:
    """To the end of the line, however far; the bytes on the way."""
    skipped = 0
    while piece := file.readline(MAX_RECORD_BYTES):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
