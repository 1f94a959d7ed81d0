"""Rows of Parquet, in batches that fit into memory whatever the file says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

from pipelines.io.parquet_pages import PageError, row_bytes
from pipelines.records import (
    FIELDS,
    MAX_RECORD_BYTES,
    QUOTED,
    QUOTED_BYTES,
    Columns,
    FileUnreadable,
    Origin,
    RawRecord,
    Row,
    rfc3339,
)

ROWS_AT_ONCE = 1000
BATCH_BYTES = 16 << 20
TOO_LARGE = "too large"  # a kind of faults
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of times, in a second
FAR_SECONDS = 60_000_000_000  # from 1970, either way: in the calendar still
READ_BYTES = 1 << 20  # of each column at a time; else all of a group's are read before its first row


def rows(origin: Origin, file: IO[bytes], start: int, stop: int, columns: Columns) -> Iterator[RawRecord]:
    """Of the groups of rows that begin from byte `start` on and before `stop`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file, pre_buffer=False, buffer_size=READ_BYTES)
        names = table.schema_arrow.names
        wanted = [name for name in (columns.names.get(field, field) for field in FIELDS) if name in names]
        ignored: Row = dict.fromkeys(set(names) - set(wanted))  # counted, not read
        before = 0
        for group in range(table.num_row_groups):
            metadata = table.metadata.row_group(group)
            if start <= _offset(metadata) < stop:
                yield from _group(origin, file, table, group, wanted, ignored, before)
            before += metadata.num_rows
    except pa.ArrowException as error:
        raise FileUnreadable(f"{origin.path} cannot be read: {error}") from error


def _group(
    origin: Origin, file: IO[bytes], table: Any, group: int, wanted: list[str], ignored: Row, row: int
) -> Iterator[RawRecord]:
    """Where a column is not read, all its rows are faults that hold what is in the others."""
    size, faults = _sizes(file, table, group, wanted)
    fault = "; ".join(f"{name}: {reason}" for name, reason in faults.items())
    read = [name for name in wanted if name not in faults]
    if fault and not read:
        number = table.metadata.row_group(group).num_rows
        yield origin.record(b"", f"rows {row} to {row + number - 1}", fault, TOO_LARGE)
        return
    at_once = min(ROWS_AT_ONCE, max(1, BATCH_BYTES // size))
    for batch in table.iter_batches(at_once, row_groups=[group], columns=read):
        for part in _parts(_plain(batch)):
            if fault or _bytes(part) > MAX_RECORD_BYTES:
                for number in range(part.num_rows):
                    one = part.slice(number, 1)
                    yield origin.record(_beginning(one), f"row {row}", fault or _too_large(one), TOO_LARGE)
                    row += 1
                continue
            for values in part.to_pylist():
                yield origin.record(values | ignored, f"row {row}")
                row += 1


def _sizes(file: IO[bytes], table: Any, group: int, wanted: list[str]) -> tuple[int, dict[str, str]]:
    """What a row takes, in bytes, and the columns that are not to be read, with the reasons."""
    metadata = table.metadata.row_group(group)
    size, faults = 1, {}
    for position in range(metadata.num_columns):
        chunk = metadata.column(position)
        name = chunk.path_in_schema.partition(".")[0]
        if name in wanted:
            is_list = table.schema.column(position).max_repetition_level > 0
            try:
                look = partial(_largest_in_dictionary, file, table, group, name)
                size += row_bytes(file, chunk, metadata.num_rows, is_list, look)
            except PageError as error:
                faults[name] = str(error)
    return size, faults


def _largest_in_dictionary(file: IO[bytes], table: Any, group: int, name: str) -> int:
    """Bytes of a value; the dictionary comes whole with the first row."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    again = pq.ParquetFile(
        file, metadata=table.metadata, read_dictionary=[name], pre_buffer=False, buffer_size=READ_BYTES
    )
    for batch in again.iter_batches(1, row_groups=[group], columns=[name], use_threads=False):
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            return int(pc.max(pc.binary_length(column.dictionary)).as_py() or 0)
    return MAX_RECORD_BYTES


def _parts(batch: Any) -> Iterator[Any]:
    """Halved until each has the size of one record, or only one row."""
    if batch.num_rows > 1 and _bytes(batch) > MAX_RECORD_BYTES:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half))
        yield from _parts(batch.slice(half))
    else:
        yield batch


def _bytes(batch: Any) -> int:
    """With the pointers of lists in Python: Arrow keeps a null in less than a bit."""
    import pyarrow as pa

    lists = [column for column in batch.columns if pa.types.is_list(column.type) or pa.types.is_large_list(column.type)]
    return int(batch.nbytes) + sum(8 * len(column.flatten()) for column in lists)


def _too_large(row: Any) -> str:
    largest = max(row.schema.names, key=lambda name: int(row.column(name).nbytes))
    return f"{largest}: a row of {_bytes(row):,} bytes; {MAX_RECORD_BYTES:,} are read"


def _beginning(row: Any) -> bytes:
    """Of a row that is not taken, as JSON that does not end: nobody could replay it as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_slice_codeunits(column, 0, QUOTED)
        cells[name] = column[0].as_py() if column.nbytes <= QUOTED_BYTES else str(column.type)
    return json.dumps(cells, default=str).encode()[:-1][:QUOTED_BYTES]


def _offset(group: Any) -> int:
    """Where a group of rows begins, in bytes."""
    column = group.column(0)
    return int(column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset)


def _plain(batch: Any) -> Any:
    """A slice of values by number is as large as all of them; and days and times of any unit and zone are those of UTC,
    in microseconds: nanoseconds would need pandas, and zones are names that this machine may not know."""
    import pyarrow as pa

    for position, field in enumerate(batch.schema):
        column = batch.column(position)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = _times(column)
        if column is not batch.column(position):
            batch = batch.set_column(position, field.name, column)
    return batch


def _times(column: Any) -> Any:
    """As texts where one of them is in no calendar, such as one in another unit than its column's: a cast would make
    it any other time, and nobody would know."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date(column.type):
        column = column.cast(pa.date32(), safe=False).cast(pa.timestamp("s"))
    each, numbers = UNITS[column.type.unit], column.cast(pa.int64())
    first, last = pc.min_max(numbers).as_py().values()
    if first is None or -FAR_SECONDS < first / each < last / each + 1 < FAR_SECONDS:
        return column.cast(pa.timestamp("us", "UTC"), safe=False)
    return pa.array([_time(number, each) for number in numbers.to_pylist()], pa.string())


def _time(number: int | None, each: int) -> str | None:
    if number is None:
        return None
    return rfc3339(number * 10**6 // each) if -FAR_SECONDS < number / each < FAR_SECONDS else str(number)
