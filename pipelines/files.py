"""Records of one file, or of a part of it: JSON lines, CSV, Parquet; local or in an object store; never all at once,
nor one of more than MAX_RECORD_BYTES."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Literal, cast

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines import csv_rows, parquet_rows
from pipelines.arrival import Arrival
from pipelines.company import MAX_RECORD_BYTES, QUOTED_BYTES, Columns
from pipelines.errors import FileUnreadable

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


def read(path: str, start: int, stop: int, columns: Columns) -> Iterator[Arrival]:
    """The records that begin from `start` on and before `stop`, in bytes."""
    format = format_of(path)
    try:
        with _open(path) as file:
            if format == "jsonl":
                yield from _lines(path, file, start, stop)
            elif format == "parquet":
                yield from parquet_rows.rows(path, file, start, stop, columns)
            else:
                yield from csv_rows.rows(path, file, "\t" if format == "tsv" else ",", MAX_RECORD_BYTES)
    except FileUnreadable:
        raise
    except (OSError, EOFError, zlib.error, BeamIOError) as error:
        raise FileUnreadable(f"{path} cannot be read: {' '.join(str(error).split())}") from error


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        if not path.lower().endswith(".gz"):
            yield file
            return
        # Beam's own reader takes a .gz that was cut off for a whole one.
        with gzip.GzipFile(fileobj=file) as whole:
            yield cast(IO[bytes], whole)


def _lines(path: str, file: IO[bytes], start: int, stop: int) -> Iterator[Arrival]:
    position = start
    if start:
        file.seek(start - 1)  # a line that begins at `start` has the end of another before it
        position += _skip(file) - 1
    while position < stop:
        line = file.readline(MAX_RECORD_BYTES)
        if not line:
            return
        source, size = f"{path}, byte {position}", len(line)
        whole = line.endswith(b"\n") or size < MAX_RECORD_BYTES
        if not whole:
            size += _skip(file)
            fault = f"record: a line of {size:,} bytes; {MAX_RECORD_BYTES:,} are read"
            yield Arrival(line[:QUOTED_BYTES], source, fault=fault)
        elif line.strip():
            yield Arrival(line.rstrip(b"\r\n"), source)
        position += size


def _skip(file: IO[bytes]) -> int:
    """To the end of the line, however far; the bytes on the way."""
    skipped = 0
    while piece := file.readline(MAX_RECORD_BYTES):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
