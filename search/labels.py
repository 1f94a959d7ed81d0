"""Training pairs from what people answered: `python -m search.labels --index URL --out pairs.tsv`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.command import Parser, exit_code
from common.errors import InputError
from index.base import Index
from index.open import open_index
from model.contract import COMPANY_FIELDS
from model.data.tsv import read_columns
from search.feedback.callers import Part, parts, table
from search.feedback.held_out import Answers, Held, hold_out, without
from search.feedback.store import NOT_SIMILAR, SIMILAR, Feedback, open_feedback
from search.feedback.verdicts import QUERY, Pair, Verdicts, verdicts

HEADER = "left\tright\tlabel"
IDS_AT_ONCE = 1000
ANONYMOUS_PAIRS = 200  # some evenings of one person; a script gives as many in seconds


@dataclass(frozen=True)
class Labels:
    """Label by pair, "" for unlabelled, and how many were left out for what reason."""

    pairs: dict[Pair, str]
    gone: int  # a company of the pair is no more
    queries: int  # no companies are written, so that nothing could say what the query was
    unwritable: int  # an id that a tab-separated file cannot hold
    curated: set[Pair]  # their label is the one known before, whatever callers without a key say


def labels(found: Verdicts, index: Index, earlier: dict[Pair, str], with_queries: bool) -> Labels:
    """Answers with a key overrule what earlier pairs say, others do not, and nothing known becomes unlabelled."""
    curated = {pair for pair in found.anonymous if earlier.get(pair)}
    pairs = dict.fromkeys(found.unlabelled, "") | earlier
    pairs |= dict.fromkeys(found.similar - curated, SIMILAR) | dict.fromkeys(found.not_similar - curated, NOT_SIMILAR)
    pairs = {pair: label for pair, label in pairs.items() if pair not in found.tied - curated}
    asked = {pair for pair in pairs if _queries(pair, found)}
    if not with_queries:
        pairs = {pair: label for pair, label in pairs.items() if pair not in asked}
    ids = {id for pair in pairs for id in pair if id not in found.texts}
    there = {id for some in _batches(ids) for id, known in index.known(some).items() if not known.deleted}
    there |= found.texts.keys()
    present = {pair: label for pair, label in pairs.items() if there.issuperset(pair)}
    written = {pair: label for pair, label in present.items() if all(map(_fits, pair))}
    gone, unwritable = len(pairs) - len(present), len(present) - len(written)
    return Labels(written, gone, 0 if with_queries else len(asked), unwritable, curated)


def read_earlier(path: str) -> dict[Pair, str]:
    rows = read_columns(Path(path), ["left", "right", "label"])
    return {(min(left, right), max(left, right)): label for _, (left, right, label) in rows}


def write_pairs(path: Path, pairs: dict[Pair, str]) -> None:
    # Labelled ones first, so that a look into the file shows what people said.
    rows = sorted(pairs.items(), key=lambda item: (not item[1], item))
    _write(path, [HEADER, *(f"{left}\t{right}\t{label}" for (left, right), label in rows)])


def write_companies(path: Path, pairs: dict[Pair, str], texts: dict[str, str], index: Index) -> int:
    """The companies that the pairs speak of, as training reads them, and queries as companies that have a
    description alone."""
    ids = sorted({id for pair in pairs for id in pair})
    lines = [json.dumps({"id": id, "description": texts[id]}) for id in ids if id in texts]
    for some in _batches(id for id in ids if id not in texts):
        for id, company in index.get_many(some).items():
            fields = {name: getattr(company, name) for name in COMPANY_FIELDS}
            lines.append(json.dumps({"id": id} | {name: value for name, value in fields.items() if value}))
    _write(path, lines)
    return len(lines)


def write_held(path: Path, held: list[Held]) -> None:
    _write(path, [HEADER, *("\t".join(one) for one in held)])


def write_callers(path: Path, callers: list[Part]) -> None:
    _write(path, [json.dumps([asdict(part) for part in callers], indent=1)])


def _queries(pair: Pair, found: Verdicts) -> bool:
    return any(id.startswith(QUERY) and id in found.texts for id in pair)


def _fits(id: str) -> bool:
    return id == id.strip() and not any(letter in id for letter in "\t\n\r")


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    wanted = sorted(ids)
    for start in range(0, len(wanted), IDS_AT_ONCE):
        yield wanted[start : start + IDS_AT_ONCE]


def _write(path: Path, lines: list[str]) -> None:
    """Complete, or not at all: a training run must not read half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def report(found: Verdicts, made: Labels) -> Iterator[str]:
    counted = list(made.pairs.values())
    yield (
        f"{found.answers.total():,} answers, people: {len(found.answers):,}; "
        f"{counted.count(SIMILAR):,} pairs {SIMILAR}, "
        f"{counted.count(NOT_SIMILAR):,} {NOT_SIMILAR}, {counted.count(''):,} unlabelled"
    )
    for number, words in (
        (len(found.outvoted), "pairs on which people differ went with the majority"),
        (len(found.tied), "pairs with as many yes as no were left out"),
        (found.undone, "answers were taken back"),
        (len(made.curated), "pairs keep the label of --add FILE: nobody with a key answered on them"),
        (found.capped.total(), "votes do not count: --anonymous_pairs is as many as a caller without a key has"),
        (found.without_anchor, "answers are on questions of several parts, and say nothing of a pair"),
        (made.gone, "pairs were left out: a company of theirs was deleted"),
        (made.queries, "pairs with what somebody typed were left out; --companies FILE keeps them"),
        (made.unwritable, "pairs were left out: an id with a tab or a line break"),
    ):
        if number:
            yield f"{number:,} {words}"
    for left, right in sorted(found.tied):
        yield f"tied: {left} / {right}"


def make(index: Index, store: Feedback, arguments: argparse.Namespace) -> None:
    found = verdicts(store.scan(), arguments.anonymous_pairs)
    earlier = read_earlier(arguments.add) if arguments.add else {}
    made = labels(found, index, earlier, bool(arguments.companies))
    held = hold_out(found, made.pairs) if arguments.held_out else []
    training = without(made.pairs, held)
    if not any(training.values()):
        raise InputError(f"no pair has a label: nobody has answered yet, by {store.where}; --add FILE adds known pairs")
    if arguments.companies:
        written = write_companies(Path(arguments.companies), made.pairs, found.texts, index)
        print(f"{written:,} companies are in {arguments.companies}")
    write_pairs(Path(arguments.out), training)
    if arguments.held_out:
        write_held(Path(arguments.held_out), held)
        print(f"{len(held):,} answered pairs are held out in {arguments.held_out}, and in no other file")
    if arguments.answers:
        _write(Path(arguments.answers), [Answers.of(found).to_json()])
    for line in report(found, made):
        print(line)
    callers = parts(found, made.pairs, made.curated)
    print(*table(callers), sep="\n", file=sys.stderr)
    if arguments.callers:
        write_callers(Path(arguments.callers), callers)
    print(f"{len(training):,} pairs are in {arguments.out}; train with --negative {NOT_SIMILAR}")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"takes a number of pairs, or 0 for any; got {text!r}")
    return int(text)


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m search.labels",
        description="Pairs for model.train from what people answered on the page: yes is positive, no is negative,\n"
        "shown and not answered is unlabelled. The newest answer of a caller on a pair counts, and the majority of\n"
        "callers. Callers with an API key overrule those without, and they alone the pairs known before. Who swayed\n"
        "what is told on stderr.",
        epilog="example:\n"
        "  python -m search.labels --index build/demo/index --add examples/pairs.tsv \\\n"
        "      --out build/retrain/pairs.tsv --companies build/retrain/companies.jsonl\n"
        "  python -m model.train --pairs build/retrain/pairs.tsv --companies build/retrain/companies.jsonl \\\n"
        f"      --negative {NOT_SIMILAR} --frozen --projection 384 --contrastive 1 \\\n"
        "      --epochs 30 --out build/retrain/model",
    )
    parser.add_argument("--index", required=True, metavar="URL", help="the answers are beside this index")
    parser.add_argument("--out", required=True, metavar="FILE", help="tab-separated left, right, label")
    parser.add_argument("--companies", metavar="FILE", help="also write the companies (and queries) of these pairs")
    parser.add_argument("--add", metavar="FILE", help="pairs known before; answers with an API key overrule them")
    parser.add_argument(
        "--anonymous_pairs",
        type=_number,
        default=ANONYMOUS_PAIRS,
        metavar="N",
        help="pairs on which one caller without an API key has a vote, the first it answered; %(default)s, 0: any",
    )
    parser.add_argument(
        "--held_out", metavar="FILE", help="keep the answers on a fifth of what was asked about apart, to judge by"
    )
    parser.add_argument("--answers", metavar="FILE", help="also write, as JSON, how many answers there are and which")
    parser.add_argument("--callers", metavar="FILE", help="also write, as JSON, who swayed what")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: make(open_index(arguments.index), open_feedback(arguments.index), arguments))


if __name__ == "__main__":
    sys.exit(main())
