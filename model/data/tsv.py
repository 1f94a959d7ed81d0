"""Files of lines, plain or .gz: tab-separated columns under a header, checked row by row."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from model.errors import DataError


def read_header(path: Path, wanted: str) -> list[str]:
    """The names in the first line; `wanted` is what an empty file is told to have there."""
    return _header(path, numbered_lines(path), wanted)


def read_columns(path: Path, names: Sequence[str], or_else: str = "") -> list[tuple[int, list[str]]]:
    """The named columns of each row, with the row's number; there is at least one row.

    Cells are split at tabs, blanks around them fall off, and quotation marks are nothing but text. `or_else` ends the
    complaint about a missing column where there is another way out than to name it in the file.
    """
    lines = numbered_lines(path)
    header = _header(path, lines, ", ".join(names))
    missing = [name for name in names if name not in header]
    if missing:
        line = "\t".join(header)
        raise DataError(
            f"{path}: the header has no column {missing[0]!r} (it reads {line[:80]!r}); line 1 must name "
            f"the tab-separated columns {', '.join(names)}{or_else}"
        )
    places = [header.index(name) for name in names]
    rows = []
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, row {number}: {len(cells)} columns where the header has {len(header)}")
        rows.append((number, [cells[place].strip() for place in places]))
    if not rows:
        raise DataError(f"{path}: no rows below the header")
    return rows


def _header(path: Path, lines: Iterator[tuple[int, str]], wanted: str) -> list[str]:
    for _, line in lines:
        return line.split("\t")
    raise DataError(f"{path}: the file is empty; its first line must name the columns {wanted}")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; only a line feed ends a line, whatever else Unicode calls one."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(f"{path}: {reason}") from error
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, row {number}: not UTF-8 ({error.reason} at byte {error.start} of the row)"
            ) from error
        if text:
            yield number, text


def file_hash(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
