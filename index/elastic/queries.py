"""Questions to Elasticsearch: pure functions to what the search endpoint takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from index.document import FILTERABLE, Filters, Vector
from index.elastic.mapping import COLUMNS, OVERSAMPLE
from index.ranking.analysis import START_LENGTH, query_words
from index.ranking.name_matching import spellings

# As deep as Elasticsearch looks, whether by words (index.max_result_window) or by vectors (num_candidates).
DEEPEST = 10_000
# Vectors looked at on the way through the graph, of which the best k are answered. Fewer than so many companies
# that match are all compared.
CANDIDATES = 200
NAME_COUNTS = 2
NAMED = 1000.0  # more than the few words of a name can score
CANDIDATE_COLUMNS = ["name_folded", "industry", "tags"]
_NOT_DELETED = {"term": {"deleted": False}}


def matching(filters: Filters) -> dict[str, Any]:
    """Live companies that the filters let through."""
    required: list[dict[str, Any]] = [_NOT_DELETED]
    for name in FILTERABLE:
        if getattr(filters, name):
            required.append({"terms": {name: list(getattr(filters, name))}})
    query: dict[str, Any] = {"filter": required}
    if filters.exclude_ids:
        query["must_not"] = [{"ids": {"values": list(filters.exclude_ids)}}]
    return {"bool": query}


def candidates(query: dict[str, Any]) -> dict[str, Any]:
    """The same without documents: a few fields that are kept in columns, for which none has to be unpacked."""
    return {**query, "_source": False, "docvalue_fields": CANDIDATE_COLUMNS}


def nearest(vector: Vector, k: int, filters: Filters, kind: str) -> dict[str, Any]:
    k = min(k, DEEPEST)
    knn = {
        "field": "embedding",
        "query_vector": np.ascontiguousarray(vector),
        "k": k,
        "num_candidates": min(DEEPEST, max(CANDIDATES, 2 * k)),
        "filter": matching(filters),
        "rescore_vector": {"oversample": OVERSAMPLE[kind]},
    }
    return {"knn": knn, "size": k, "_source": COLUMNS, "track_total_hits": False}


def by_words(text: str, k: int, filters: Filters) -> dict[str, Any] | None:
    """None where there is no word to look for."""
    asked = query_words(text)
    if not asked:
        return None
    fields = [f"name_words^{NAME_COUNTS}", "description_words"]
    match = {"multi_match": {"query": asked, "fields": fields, "type": "most_fields", "analyzer": "whitespace"}}
    query = {"bool": {"must": [match], "filter": [matching(filters)]}}
    return {"query": query, "size": min(k, DEEPEST), "_source": COLUMNS, "track_total_hits": False}


def by_words_or_name(text: str, k: int, filters: Filters) -> dict[str, Any] | None:
    """By words, and with NAMED more the names that begin with the text from one of their words on, however it is joined
    or split, and those with the same words but for a letter in each: one question takes less time than two."""
    query, pattern = by_words(text, k, filters), spellings(text)
    if query is None or not pattern:
        return query
    misspelt = {"fuzziness": 1, "prefix_length": 1, "operator": "and", "analyzer": "whitespace"}
    either = [
        {"regexp": {"name_starts": {"value": pattern}}},
        {"match": {"name_words": {"query": query_words(text), **misspelt}}},
    ]
    named = {"constant_score": {"filter": {"bool": {"should": either}}, "boost": NAMED}}
    required = query["query"]["bool"]
    found = {"should": [*required["must"], named], "minimum_should_match": 1, "filter": required["filter"]}
    return {**query, "query": {"bool": found}}


def named_like(typed: str, k: int) -> dict[str, Any]:
    """`typed` is folded. Names that begin so score higher than those with a later word that does."""
    typed = typed[:START_LENGTH]
    begins = {"constant_score": {"filter": {"prefix": {"name_folded": {"value": typed}}}, "boost": 1.0}}
    query = {"filter": [_NOT_DELETED, {"prefix": {"name_starts": {"value": typed}}}], "should": [begins]}
    order = [{"_score": "desc"}, {"name_length": "asc"}, {"name_folded": "asc"}]
    return {
        "query": {"bool": query},
        "sort": order,
        "size": min(k, DEEPEST),
        "_source": ["name"],
        "track_total_hits": False,
    }


def facets(filters: Filters, top: int) -> dict[str, Any]:
    order = [{"_count": "desc"}, {"_key": "asc"}]
    counts = {name: {"terms": {"field": name, "size": top, "order": order, "exclude": [""]}} for name in FILTERABLE}
    return {"query": matching(filters), "size": 0, "aggs": counts, "track_total_hits": False}


def totals() -> dict[str, Any]:
    """How many, how many of them tombstones, and the newest: by sorting, since aggregations round to 53 bits."""
    aggregations = {
        "tombstones": {"filter": {"term": {"deleted": True}}},
        "newest_write": {"max": {"field": "indexed_at"}},
    }
    order = [{"version": "desc"}]
    return {"size": 1, "sort": order, "_source": ["version"], "aggs": aggregations, "track_total_hits": True}


def everything(tombstones: bool, since: int | None = None) -> dict[str, Any]:
    """`since` is a sequence number of the shard: what was written after it."""
    chosen: dict[str, Any] = {"match_all": {}} if tombstones else matching(Filters())
    return chosen if since is None else {"bool": {"filter": [chosen, {"range": {"_seq_no": {"gt": since}}}]}}


def clock() -> dict[str, Any]:
    """The time as the server has it: where a range of dates ends that ends now, in milliseconds."""
    return {
        "size": 0,
        "query": {"match_none": {}},
        "runtime_mappings": {"clock": {"type": "date"}},
        "aggs": {"clock": {"date_range": {"field": "clock", "ranges": [{"to": "now"}]}}},
    }


def old_tombstones(before: int) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"deleted": True}}, {"range": {"indexed_at": {"lt": before}}}]}}


def page(query: dict[str, Any], size: int, columns: list[str] | bool) -> dict[str, Any]:
    """One of a walk over all that a point in time holds, in the order that costs least."""
    return {
        "query": query,
        "size": min(size, DEEPEST),
        "_source": columns,
        "sort": ["_shard_doc"],
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
