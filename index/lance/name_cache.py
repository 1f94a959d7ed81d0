"""Names of all live companies in memory: what is asked for at every key must not read a table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from lancedb.table import Table

from index.base import Suggestion
from index.lance.queries import TableQueries
from index.lance.rows import CANDIDATE_COLUMNS
from index.lance.where import LIVE
from index.ranking.name_matching import LEGAL_FORMS, SHORTEST_MISSPELT, core, is_misspelt, spellings

ALIKE = 50  # names, at most
_FORMS = rf"([ ,.]+({'|'.join(sorted(LEGAL_FORMS))})[.]?)+$"


class NameCache:
    """Kept until somebody writes."""

    def __init__(self, queries: TableQueries):
        self._queries = queries
        self._read: tuple[tuple[str, int], pa.Table] | None = None

    def of(self, table: Table) -> pa.Table:
        """Columns of candidates, name, and joined: the folded name without legal form, blanks and signs."""
        state = (table.name, table.version)  # before they are read: a write in between makes them read again
        if self._read is None or self._read[0] != state:
            names = self._queries.select(table.name, LIVE, ["name", *CANDIDATE_COLUMNS]).combine_chunks()
            bare = pc.replace_substring_regex(names["folded_name"], _FORMS, "")
            names = names.append_column("joined", pc.replace_substring_regex(bare, r"[^\pL\pN]+", ""))
            self._read = (state, names)
        return self._read[1]


def suggestions(names: pa.Table, typed: str, k: int) -> list[Suggestion]:
    """NameCache that begin as typed before those with a later word that does, then the shorter ones; both are folded.

    By Arrow: the first letter typed finds thousands, and somebody waits at every key.
    """
    begins = pc.starts_with(names["folded_name"], typed)
    names = names.append_column("begins", pc.cast(begins, pa.int8()))
    found = names.filter(pc.or_(begins, pc.match_substring(names["folded_name"], f" {typed}")))
    found = found.append_column("length", pc.utf8_length(found["folded_name"]))
    order = [("begins", "descending"), *((column, "ascending") for column in ("length", "folded_name", "id"))]
    best = found.take(pc.sort_indices(found, order)[:k])
    return [Suggestion(row["id"], row["name"]) for row in best.select(["id", "name"]).to_pylist()]


def alike(names: pa.Table, question: str) -> pa.Table:
    """Rows of those that begin with the question from one of their words on, and of those that are it but for a letter.

    By Arrow, and by what is cheap to look for first: there are many names.
    """
    pattern, letters = spellings(question), "".join(core(question))
    if not pattern:
        return names[:0]
    near = names if "|" in pattern else names.filter(pc.match_substring(names["joined"], letters))
    begin = near.filter(pc.match_substring_regex(near["folded_name"], f"(^|[^a-z0-9])({pattern})$"))
    begin = begin.take(pc.sort_indices(pc.utf8_length(begin["folded_name"]))[:ALIKE])
    found = [begin]
    if len(letters) >= SHORTEST_MISSPELT:
        length = pc.utf8_length(names["joined"])
        close = pc.and_(pc.greater_equal(length, len(letters) - 1), pc.less_equal(length, len(letters) + 1))
        some = names.filter(pc.and_(close, pc.starts_with(names["joined"], letters[0])))
        misspelt = [letters != joined and is_misspelt(letters, joined) for joined in some["joined"].to_pylist()]
        found.append(some.filter(pa.array(misspelt, pa.bool_()))[:ALIKE])
    return pa.concat_tables(found)
