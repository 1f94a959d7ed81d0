"""Rows of CSV, one at a time and none of more than a given size, whatever is in the file: csv.reader by itself reads
lines and rows without end."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from pipelines.records import MAX_VALUES, QUOTED_BYTES, Origin, RawRecord, quote

BLOCK = 1 << 16  # letters


class RowTooLarge(Exception):
    """The message says in what."""


def rows(origin: Origin, file: IO[bytes], delimiter: str, limit: int) -> Iterator[RawRecord]:
    """`limit`: letters of a row. What is larger is a fault, and the line after it begins another row."""
    csv.field_size_limit(limit)  # its own 128 kB would end at a long description
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        lines = _Lines(text, delimiter, limit)
        reader, before = _reader(lines, delimiter)
        header: list[str] | None = None
        while True:
            lines.begun = begun = before + reader.line_num + 1
            try:
                values = next(reader)
            except StopIteration:
                return
            except (csv.Error, RowTooLarge) as error:
                # Without its names, no row after it is one: each says that the header has 0 columns.
                header = [] if header is None else header
                fault = f"record: not a row of CSV: {error}"
                yield origin.record(lines.beginning(), f"line {begun}", fault, "not a row of CSV")
                if isinstance(error, RowTooLarge):
                    reader, before = _reader(lines, delimiter)
                continue
            if header is None:
                header = values
            elif len(values) == len(header):
                yield origin.record(dict(zip(header, values, strict=True)), f"line {begun}")
            elif values:
                fault = f"record: {quote(values)} has {len(values)} columns; the header has {len(header)}"
                raw = delimiter.join(values).encode(errors="surrogateescape")
                yield origin.record(raw, f"line {begun}", fault, "columns unlike the header's")


def _reader(lines: _Lines, delimiter: str) -> tuple[Any, int]:
    """From the next line on, and how many were before it. The lines come in lists: one call of Python for hundreds."""
    return csv.reader(chain.from_iterable(lines), delimiter=delimiter), lines.after


class _Lines:
    """Lists of lines; where a row takes more of them than it may, RowTooLarge instead of the next list."""

    def __init__(self, text: io.TextIOWrapper, delimiter: str, limit: int):
        self._text, self._delimiter, self._limit = text, delimiter, limit
        self._block = min(BLOCK, limit)
        self._lines: list[str] = []
        self._first = 1  # the number of the first of them
        self._cut = ("", "")  # a line after them that is too large: why, and its beginning
        self._open = self._separators = 0  # letters of the row that was under way when the list was made
        self._beginning = ""  # of that row
        self.after = 0  # lines that were given out or cut
        self.begun = 1  # the line at which the present row begins; whoever reads the rows knows

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self._note_open_row()
        self._lines, self._first = [], self.after + 1
        reason, self._cut = self._cut[0], ("", "")
        if reason:
            raise RowTooLarge(reason)
        if self._open > self._limit or self._separators > MAX_VALUES:
            raise RowTooLarge(
                f"lines {self.begun:,} to {self.after:,} are one row, and more than {self._limit:,} letters "
                f"or {MAX_VALUES:,} columns; is a quote never closed?"
            )
        block = self._text.read(self._block)
        if not block:
            raise StopIteration
        rest = self._text.readline(self._limit)
        self._lines = io.StringIO(block + rest, newline="").readlines()
        self.after += len(self._lines)
        if len(self._lines[-1]) > self._block:
            self._cut_last()
        return self._lines

    def beginning(self) -> bytes:
        """Of the present row."""
        line = self._lines[self.begun - self._first] if self.begun >= self._first else self._beginning
        return line[:QUOTED_BYTES].encode(errors="surrogateescape")[:QUOTED_BYTES]

    def _note_open_row(self) -> None:
        """How large the present row is by now: it may have begun in the list that is at its end, or before."""
        mine = self._lines
        if self.begun >= self._first:
            mine = self._lines[self.begun - self._first :]
            self._open = self._separators = 0
            self._beginning = mine[0][:QUOTED_BYTES] if mine else self._cut[1]
        self._open += sum(map(len, mine))
        self._separators += sum(line.count(self._delimiter) for line in mine)

    def _cut_last(self) -> None:
        """A line too large to be read is passed over to its end."""
        last = self._lines[-1]
        size, separators = len(last), last.count(self._delimiter)
        if not last.endswith(("\n", "\r")):
            while size >= self._limit and (piece := self._text.readline(self._limit)):
                size += len(piece)
                if piece.endswith(("\n", "\r")):
                    break
        if size > self._limit:
            reason = f"a line of {size:,} letters; {self._limit:,} are read"
        elif separators > MAX_VALUES:
            reason = f"a line of {separators + 1:,} columns; {MAX_VALUES:,} are read"
        else:
            return
        self._lines.pop()
        self._cut = (reason, last[:QUOTED_BYTES])
