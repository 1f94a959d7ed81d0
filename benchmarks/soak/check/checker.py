"""The whole history against the index as it is in the end, and against every answer given meanwhile.

Pure functions to findings, each with its evidence. Vectors are held against what the model of the named fingerprint
gives for the text that its own recipe makes of the fields.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.soak.check.findings import DUPLICATED, LOST, MIXED, REVIVED, UNACCOUNTED, Finding, Reply, Shown
from benchmarks.soak.check.history import History, Record
from index.document import Document, text_hash
from model.contract import COMPANY_FIELDS, Contract

VECTOR_ERROR = 1e-4  # of one number; padding beside other texts changes the last digits
SCORE_ERROR = 1e-3
BEHIND_SECONDS = 15.0  # an answer may show the index as it was so long ago: a reader follows a swap within 5

OVERDUE_SECONDS = 120.0  # no fault keeps a record away for as long

Vectors = Callable[[str, Sequence[str]], np.ndarray]  # fingerprint and texts -> float32 [n, d]


# the index


def check_index(
    history: History, documents: Iterable[Document], live: str, contracts: Mapping[str, Contract], vectors: Vectors
) -> list[Finding]:
    """`live` is the fingerprint of the index; `documents` are all that are in it, tombstones too, with vectors."""
    kept = list(documents)
    times = Counter(document.id for document in kept)
    findings = [Finding(DUPLICATED, id, f"is {n} times in the index") for id, n in times.items() if n > 1]
    findings += [found for document in kept for found in _held(history, document)]
    findings += [found for id in history.ids() if id not in times for found in _missing(history, id)]
    return findings + _foreign(kept, live, contracts, vectors)


def _held(history: History, document: Document) -> Iterator[Finding]:
    wanted, id = history.winner(document.id), document.id
    if wanted is None:
        others = [one for one in history.described(document.description) if one.id != id]
        if others:
            yield Finding(DUPLICATED, id, f"nobody sent it; it says what {others[0]} says of {others[0].id}")
        else:
            yield Finding(UNACCOUNTED, id, f"nobody sent it: version {document.version}, {document.description!r}")
        return
    if document.order == wanted.order:
        return
    has = f"the index has version {document.version}{' deleted' * document.deleted}, {document.description!r}; wanted"
    assert wanted.document is not None
    if wanted.document.deleted and not document.deleted:
        yield Finding(REVIVED, id, f"{has} {wanted}")
    elif document.order < wanted.order or document.deleted:
        yield Finding(LOST, id, f"{has} {wanted}")
    else:
        yield Finding(UNACCOUNTED, id, f"{has} {wanted}, and nobody sent that")


def _missing(history: History, id: str) -> Iterator[Finding]:
    wanted = history.winner(id)
    assert wanted is not None and wanted.document is not None
    if not (wanted.document.deleted and history.may_be_purged(wanted)):
        yield Finding(LOST, id, f"not in the index; wanted {wanted}")


def _foreign(
    documents: Sequence[Document], live: str, contracts: Mapping[str, Contract], vectors: Vectors
) -> list[Finding]:
    """Those whose fingerprint, text or vector is another model's than that of the index."""
    findings, told = [], []
    for document in (one for one in documents if not one.deleted):
        text = rendered(document, contracts[live])
        if document.model != live:
            findings.append(Finding(MIXED, document.id, f"has model {document.model} in an index of {live}"))
        elif document.text_hash != text_hash(text):
            others = [
                name for name, one in contracts.items() if text_hash(rendered(document, one)) == document.text_hash
            ]
            made = f"the recipe of {others[0]}" if others else "no recipe that is known"
            findings.append(Finding(MIXED, document.id, f"its text was made by {made}, its model is {live}"))
        else:
            told.append((document, text))
    if not told:
        return findings
    expected = vectors(live, [text for _, text in told])
    for (document, _), wanted in zip(told, expected, strict=True):
        own = document.embedding
        if own is None or own.shape != wanted.shape or np.abs(own - wanted).max() > VECTOR_ERROR:
            away = "of another width" if own is None or own.shape != wanted.shape else "of another text or model"
            findings.append(Finding(MIXED, document.id, f"its vector is {away} than {live} gives for its fields"))
    return findings


def rendered(document: Document, contract: Contract) -> str:
    return contract.recipe.render({name: getattr(document, name) for name in COMPANY_FIELDS})


def check_seen(history: History) -> list[Finding]:
    """A record that was the newest of its company for long must have been seen, whatever came to replace it."""
    findings = []
    for id in history.ids():
        newest: Record | None = None
        for record in sorted(history.of(id), key=lambda one: one.sent):
            if newest is not None and record.order <= newest.order:
                continue
            overdue = newest is not None and record.sent - newest.sent > OVERDUE_SECONDS
            if newest is not None and overdue and history.settled.get(newest.number, record.sent) >= record.sent:
                waited = record.sent - newest.sent
                findings.append(Finding(LOST, id, f"{newest} was not seen in {waited:.0f} s, until {record}"))
            newest = record
    return findings


# answers


def check_replies(
    history: History, replies: Sequence[Reply], contracts: Mapping[str, Contract], vectors: Vectors
) -> list[Finding]:
    """What one list showed wrongly is found once, however many lists showed it."""
    found: dict[tuple[str, str, int], Finding] = {}
    given = [reply for reply in replies if not reply.failure]
    for reply in given:
        for finding, version in _shown_wrongly(history, reply):
            found.setdefault((finding.kind, finding.id, version), finding)
    return [*found.values(), *_mixed_lists(history, given, contracts, vectors)]


def _shown_wrongly(history: History, reply: Reply) -> Iterator[tuple[Finding, int]]:
    moment = f"at {reply.asked:.1f}"
    times = Counter(hit.id for hit in reply.hits)
    for id in (id for id, many in times.items() if many > 1):
        yield Finding(DUPLICATED, id, f"{times[id]} times in one list {moment}"), 0
    if reply.missing:
        settled = history.settled_before(reply.like, reply.asked - BEHIND_SECONDS)
        newer = [one for one in history.of(reply.like) if one.document and one.document.deleted and settled]
        if (
            settled
            and settled.document
            and not settled.document.deleted
            and not any(one.order > settled.order and one.sent < reply.answered for one in newer)
        ):
            yield Finding(LOST, reply.like, f"not found {moment}, though {settled} was in the index before"), 0
    for hit in (*reply.hits, *([reply.anchor] if reply.anchor else [])):
        yield from _hit_wrongly(history, hit, reply, moment)


def _hit_wrongly(history: History, hit: Shown, reply: Reply, moment: str) -> Iterator[tuple[Finding, int]]:
    record = history.match(hit.id, hit.version, hit.description)
    if record is None:
        said = f"a list {moment} shows version {hit.version}, {hit.description!r}, which nobody sent"
        yield Finding(_of_unsent(history, hit, reply.asked), hit.id, said), hit.version
        return
    newest = history.settled_before(hit.id, reply.asked - BEHIND_SECONDS)
    if newest is not None and record.order < newest.order:
        assert newest.document is not None
        kind = REVIVED if newest.document.deleted else LOST
        seen = reply.asked - history.settled[newest.number]
        yield (
            Finding(kind, hit.id, f"a list {moment} shows {record}, {seen:.0f} s after {newest} was seen"),
            hit.version,
        )


def _of_unsent(history: History, hit: Shown, asked: float) -> str:
    """The kind of a finding that shows what nobody sent: in part, somebody may have."""
    alike = history.described(hit.description)
    own = [one for one in alike if one.id == hit.id]
    if alike and not own and not history.of(hit.id):
        return DUPLICATED
    gone = [one for one in history.of(hit.id) if one.order[1] and one.sent < asked]
    return REVIVED if any(one.order < deletion.order for one in own for deletion in gone) else UNACCOUNTED


def _mixed_lists(
    history: History, replies: Sequence[Reply], contracts: Mapping[str, Contract], vectors: Vectors
) -> list[Finding]:
    """Every score is the cosine, by the model that the list names, of the question and the company."""
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    scored: list[tuple[Reply, Shown, str, str]] = []
    for reply in replies:
        contract = contracts.get(reply.model)
        anchor = reply.anchor
        if contract is None or not (reply.text or anchor):
            continue
        question = (
            contract.recipe.render({"description": reply.text}) if reply.text else _text(history, anchor, contract)
        )
        for hit in reply.hits:
            text = _text(history, hit, contract)
            if text and question:
                scored.append((reply, hit, question, text))
                for one in (question, text):
                    asked[reply.model].setdefault(one, len(asked[reply.model]))
    made = {model: vectors(model, list(texts)) for model, texts in asked.items()}
    findings: dict[tuple[str, int, str], Finding] = {}
    for reply, hit, question, text in scored:
        rows, vector = asked[reply.model], made[reply.model]
        cosine = float(vector[rows[question]] @ vector[rows[text]])
        if abs(cosine - hit.score) > SCORE_ERROR:
            said = f"a list of model {reply.model} at {reply.asked:.1f} scores it {hit.score:.4f}, that model"
            findings.setdefault((hit.id, hit.version, reply.model), Finding(MIXED, hit.id, f"{said} {cosine:.4f}"))
    return [*findings.values()]


def _text(history: History, shown: Shown | None, contract: Contract) -> str:
    record = history.match(shown.id, shown.version, shown.description) if shown else None
    return rendered(record.document, contract) if record and record.document else ""
