"""Records of one file, or of a part of it: JSON lines, CSV, Parquet; local or in an object store; never all at once."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal, cast

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from model.errors import InputError
from pipelines.arrival import Arrival
from pipelines.company import FIELDS, Columns, Row, quote

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
MAX_RECORD_BYTES = 8 << 20
ROWS_AT_ONCE = 1000


class FileUnreadable(InputError):
    """A file that ends too early, or is not what its name says."""


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
                yield from _rows(path, file, start, stop, columns)
            else:
                yield from _table(path, file, "\t" if format == "tsv" else ",")
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
            yield Arrival(line[:1000], source, fault=f"record: a line of {size:,} bytes; {MAX_RECORD_BYTES:,} are read")
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


def _table(path: str, file: IO[bytes], delimiter: str) -> Iterator[Arrival]:
    csv.field_size_limit(MAX_RECORD_BYTES)  # its own 128 kB would end at a long description
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        header = next(reader, [])
        while True:
            source = f"{path}, line {reader.line_num + 1}"
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Arrival(b"", source, fault=f"record: not a row of CSV: {error}")
                continue
            if len(values) == len(header):
                yield Arrival(dict(zip(header, values, strict=True)), source)
            elif values:
                fault = f"record: {quote(values)} has {len(values)} columns; the header has {len(header)}"
                yield Arrival(delimiter.join(values).encode(errors="surrogateescape"), source, fault=fault)


def _rows(path: str, file: IO[bytes], start: int, stop: int, columns: Columns) -> Iterator[Arrival]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        wanted = [name for name in (columns.names.get(field, field) for field in FIELDS) if name in names]
        ignored: Row = dict.fromkeys(set(names) - set(wanted))  # counted, not read
        before = 0
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group)
            if start <= _offset(rows) < stop:
                row = before
                for batch in table.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=wanted):
                    for values in _microseconds(batch).to_pylist():
                        yield Arrival(values | ignored, f"{path}, row {row}")
                        row += 1
            before += rows.num_rows
    except pa.ArrowException as error:
        raise FileUnreadable(f"{path} cannot be read: {error}") from error


def _offset(group: Any) -> int:
    """Where a group of rows begins, in bytes."""
    column = group.column(0)
    return int(column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset)


def _microseconds(batch: Any) -> Any:
    """Times of nanoseconds would need pandas."""
    import pyarrow as pa

    for position, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = batch.column(position).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(position, field.name, column)
    return batch
