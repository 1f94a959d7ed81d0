"""Conditions in LanceDB's SQL: values only ever get in as quoted literals."""

from __future__ import annotations

from collections.abc import Iterable

from index.document import FILTERABLE, Filters

LIVE = "deleted = false"


def quoted(value: str) -> str:
    """A literal of standard SQL, in which the quote alone is special."""
    return "'" + value.replace("'", "''") + "'"


def among(column: str, values: Iterable[str]) -> str:
    return f"{column} IN ({', '.join(map(quoted, values))})"


def matching(filters: Filters) -> str:
    """Live companies that the filters let through."""
    return " AND ".join((LIVE, *_conditions(filters)))


def matching_vectors(filters: Filters) -> str:
    """The same where only rows with a vector are looked at, which tombstones have none of; may be empty.

    To ask each row whether it is deleted took two of the eleven milliseconds of a search among 36,642.
    """
    return " AND ".join(_conditions(filters))


def _conditions(filters: Filters) -> list[str]:
    parts = []
    for field in FILTERABLE:
        values = getattr(filters, field)
        if values and field == "tags":
            parts.append(f"array_has_any(tags, [{', '.join(map(quoted, values))}])")
        elif values:
            parts.append(among(field, values))
    if filters.exclude_ids:
        parts.append(f"NOT {among('id', filters.exclude_ids)}")
    return parts
