"""What a chunk of Parquet would take in memory, from the headers of its pages: a footer may say anything, and pyarrow
takes a page as a whole. Pages are described at https://parquet.apache.org/docs/file-format/data-pages/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

MAX_PAGE_BYTES = 16 << 20  # uncompressed; most writers end a page at 1 MB
MAX_DENSE_PAGE_BYTES = 128 << 20  # where the file is large itself: DuckDB ends its pages at 100 MB
MAX_RATIO = 50  # of compression, in such a page; text comes to 10
MAX_LISTS_BYTES = 256 << 20  # of all lists of a chunk: where one of them ends is not in a header
DICTIONARY_BYTES = 1 << 14  # of one so small, any value may be in every row of a batch

_HEADER_BYTES, _LONG_HEADER_BYTES = 1 << 12, 1 << 20  # a header may quote the smallest and the largest value
_DICTIONARY_PAGE = 2
_DICTIONARY, _DELTA_BYTES = (2, 8), 7  # encodings: of one value many times, and of beginnings that recur
_VALUE_BYTES = 8  # of a number, or of where a text begins


class PageError(ValueError):
    """A column that is not read; the message says why."""


@dataclass(frozen=True)
class Page:
    """What the header of a page says."""

    is_dictionary: bool
    unpacked: int  # bytes
    packed: int
    values: int
    encoding: int
    begins: int  # after its header


def row_bytes(file: IO[bytes], chunk: Any, rows: int, is_list: bool, largest_in_dictionary: Callable[[], int]) -> int:
    """What a row of the chunk takes, at most and on the average of its fullest page; PageError where it is not read."""
    largest, most, values = 0, _VALUE_BYTES, 0
    for page in pages(file, chunk):
        if page.unpacked > MAX_PAGE_BYTES and page.unpacked > min(MAX_DENSE_PAGE_BYTES, MAX_RATIO * page.packed):
            raise PageError(f"a page of {page.packed:,} bytes becomes {page.unpacked:,}")
        if page.is_dictionary:
            largest = page.unpacked  # what each of thousands of rows may repeat
            if largest > DICTIONARY_BYTES and chunk.physical_type == "BYTE_ARRAY" and not is_list:
                largest = min(largest, largest_in_dictionary())
            continue
        values += page.values
        if chunk.physical_type == "BYTE_ARRAY":
            most = max(most, _value_bytes(page, largest) + _VALUE_BYTES)
    if is_list and values * most > MAX_LISTS_BYTES:
        raise PageError(f"lists of {values:,} values, up to {most:,} bytes each")
    return most * -(-values // max(rows, 1)) if is_list else most


def pages(file: IO[bytes], chunk: Any) -> Iterator[Page]:
    position = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < position:
        position = chunk.dictionary_page_offset
    end, values = position + chunk.total_compressed_size, 0
    while position < end and values < chunk.num_values:
        page = _page(file, position)
        yield page
        values += 0 if page.is_dictionary else page.values
        position = page.begins + page.packed


def _page(file: IO[bytes], position: int) -> Page:
    for size in (_HEADER_BYTES, _LONG_HEADER_BYTES):
        file.seek(position)
        try:
            header, length = _struct(file.read(size), 0)
            kind, unpacked, packed = header[1], header[2], header[3]
            about = header.get(5) or header.get(7) or header.get(8) or {}
            encoding = about.get(4 if 8 in header else 2, 0)
            page = Page(kind == _DICTIONARY_PAGE, unpacked, packed, about.get(1, 0), encoding, position + length)
        except IndexError:
            continue
        except (KeyError, AttributeError, TypeError):
            break
        if min(page.unpacked, page.packed, page.values) < 0:
            break
        return page
    raise PageError(f"no page begins at byte {position:,}")


def _value_bytes(page: Page, largest: int) -> int:
    if page.encoding in _DICTIONARY:
        return largest
    return page.unpacked if page.encoding == _DELTA_BYTES else page.unpacked // max(page.values, 1)


# Thrift's compact protocol, as much of it as headers use: https://github.com/apache/thrift/blob/master/doc/specs/


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Fields by their numbers, and where it ends; IndexError where the data ends before."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 8:
        size, at = _varint(data, at)
        return None, at + size
    if kind == 12 and depth < 3:
        return _struct(data, at, depth + 1)
    raise KeyError(kind)


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at
