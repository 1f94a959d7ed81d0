"""What people answered becomes the next model: pairs, training, a comparison with the live one, and where that is
passed a published version and the index moved to it. `make retrain` runs it on what the demo built."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.command import Parser
from common.errors import CommandError, InputError
from index.open import open_index
from infra import comparison
from infra.indices import holders, left_behind, told, wait_until_served
from infra.steps import Stopped, command, export_unless_there, fingerprint_of, follow, holds, train_unless_there
from pipelines.options import DEMO_INDEX, DEMO_MODEL
from search.feedback.held_out import Answers
from search.feedback.store import NOT_SIMILAR, open_feedback
from search.feedback.verdicts import verdicts
from search.labels import ANONYMOUS_PAIRS
from serving.publish import KEEP
from serving.storage.base import FACTS_FILE
from serving.storage.open import open_base

FOLDER, KNOWN = Path("build/retrain"), "examples/pairs.tsv"
QUESTIONS = ("examples/questions/short.tsv", "examples/questions/long.tsv")
SETTINGS = ("--frozen", "--projection", "384", "--contrastive", "1", "--epochs", "30", "--dev", "10%")
KEPT_BACK = 1  # exit code


@dataclass(frozen=True)
class Retraining:
    """The settings of one retraining."""

    indices: tuple[str, ...] = (DEMO_INDEX,)  # the first has the answers and is moved
    to: str = DEMO_MODEL
    serving: str | None = None  # none: the embedded server, started for the move
    known: str = KNOWN
    questions: tuple[str, ...] = QUESTIONS
    folder: Path = FOLDER
    force: bool = False
    settings: tuple[str, ...] = SETTINGS  # of the training

    def __post_init__(self) -> None:
        if self.to != DEMO_MODEL and not self.serving:
            raise InputError(f"--to {self.to} without --serving: name the server of that base path, which encodes")

    @property
    def index(self) -> str:
        return self.indices[0]

    def file(self, name: str) -> Path:
        return self.folder / name

    @property
    def training(self) -> list[str]:
        return [
            *("--pairs", str(self.file("pairs.tsv")), "--companies", str(self.file("companies.jsonl"))),
            *("--negative", NOT_SIMILAR, "--out", str(self.file("model")), *self.settings),
            *("--cache", str(self.file("cache"))),  # most texts are those of the time before
        ]


def retrain(plan: Retraining) -> int:
    """The exit code: 0, 1 where the candidate is worse and kept back, 2 where a step cannot be done."""
    has_new = has_new_answers(plan)
    move = ("move the index to it", lambda: move_index(plan))
    if not has_new:  # and yet the index is not the live model's: a run was killed before it was moved
        return follow([move])
    return follow(
        [
            ("make pairs of the answers", lambda: label(plan)),
            ("train on them", lambda: train(plan)),
            ("export a SavedModel", lambda: export_unless_there(plan.file("model"), str(plan.file("serving")))),
            ("compare it with the live model", lambda: judge(plan)),
            ("publish it", lambda: publish(plan)),
            move,
        ]
    )


def has_new_answers(plan: Retraining) -> bool:
    """Raises where there is nothing to train on, nor an index left behind."""
    is_moved = holds(plan.to, open_index(plan.index).spec().model)
    now = Answers.of(verdicts(open_feedback(plan.index).scan(), ANONYMOUS_PAIRS))
    if not now.pairs:
        raise InputError(
            f"nobody has answered yet on {plan.index}, so there is nothing to learn from; `make page` serves the page"
        )
    with live_version(plan.to) as version:
        facts = json.loads((version / FACTS_FILE).read_text(encoding="utf-8"))
    then = facts["lineage"].get("answers", {})
    if then.get("sha256") != now.sha256 or (plan.force and is_moved):
        return True
    if is_moved:
        raise InputError(
            f"no new answers on {plan.index} since the live model was trained on {then['pairs']:,} answered pairs; "
            "--force trains on them again"
        )
    return False


@contextmanager
def live_version(base: str) -> Iterator[Path]:
    opened = open_base(base)
    newest = opened.newest()
    if newest is None:
        raise InputError(f"no model in {base}, so there is none to compare with; `make demo` makes one")
    with tempfile.TemporaryDirectory(prefix="live-") as scratch:
        yield opened.fetch(newest, Path(scratch) / "version")


def label(plan: Retraining) -> None:
    where = ("--index", plan.index, "--add", plan.known)  # which only answers with an API key overrule
    names = {"out": "pairs.tsv", "companies": "companies.jsonl", "callers": "callers.json"}
    names |= {"held_out": "held_out.tsv", "answers": "answers.json"}
    command("search.labels", *where, *(word for flag, name in names.items() for word in _flag(plan, flag, name)))
    if len(plan.file("held_out.tsv").read_text(encoding="utf-8").splitlines()) < 2 and not plan.force:
        raise InputError(
            "all answers are on one company or question, and none can be held out to judge a model by; answer on a "
            "second list, or go on with --force"
        )


def _flag(plan: Retraining, flag: str, name: str) -> tuple[str, str]:
    return f"--{flag}", str(plan.file(name))


def train(plan: Retraining) -> None:
    train_unless_there(plan.training)
    shutil.copy(plan.file("answers.json"), plan.file("model") / "answers.json")  # goes into the export's lineage


def judge(plan: Retraining) -> None:
    """Raises Stopped where the candidate is worse on anything, and nobody insists."""
    export = candidate(plan)
    if holds(plan.to, fingerprint_of(plan.file("model"))):
        print(f"{plan.to} serves this model already")
        return
    with live_version(plan.to) as live:
        files = plan.file("companies.jsonl"), plan.file("held_out.tsv"), Path(plan.known)
        found = comparison.Evaluation(*files, [Path(name) for name in plan.questions]).compare(live, export)
    print(*comparison.table(found), sep="\n", flush=True)
    worse = [one.name for one in found if one.is_worse]
    if worse and not plan.force:
        raise Stopped(
            f"the new model is worse on {' and '.join(worse)}: it is not published, and stays in {export}; the live "
            "model and the index are as they were; `make retrain ARGS=--force` publishes it all the same",
            KEPT_BACK,
        )
    if worse:
        print(f"published all the same, by --force: it is worse on {' and '.join(worse)}")


def candidate(plan: Retraining) -> Path:
    base = open_base(str(plan.file("serving")))
    newest = base.newest()
    assert newest is not None  # the step before exported it
    return Path(base.location(newest))


def publish(plan: Retraining) -> None:
    if holds(plan.to, fingerprint_of(plan.file("model"))):
        print(f"{plan.to} serves this model already")
        return
    name_others(plan)
    command("serving.publish", "--from", str(plan.file("serving")), "--to", plan.to)


def name_others(plan: Retraining) -> None:
    """Before anything changes for them."""
    base = open_base(plan.to)
    kept = [version for version in base.versions() if not base.incomplete(version)][-(KEEP - 1) :]
    versions = {base.contract(version).fingerprint: version for version in kept}
    mine, *others = holders(plan.indices)
    print(f"{mine.url} has vectors of model {mine.model}, and is moved to the new one next")
    for line in told(others, versions, plan.serving):
        print(line, flush=True)


def move_index(plan: Retraining) -> None:
    where = ["--index", plan.index, "--dead_letters", str(plan.file("dead_letters"))]
    if plan.serving:
        base = open_base(plan.to)
        newest = base.newest()
        assert newest is not None  # the step before published it
        served = wait_until_served(plan.serving, base.contract(newest).fingerprint)
        _, *others = holders(plan.indices)
        for line in left_behind(others, served, plan.serving):
            print(line, file=sys.stderr, flush=True)
        where += ["--serving", plan.serving]
    command("pipelines.reindex", *where)


def main(argv: list[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    try:
        plan = Retraining(
            indices=tuple(given.index or [DEMO_INDEX]),
            to=given.to,
            serving=given.serving,
            known=given.pairs,
            questions=tuple(given.questions or QUESTIONS),
            folder=given.out,
            force=given.force,
            settings=tuple(shlex.split(given.train)),
        )
        return retrain(plan)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> Parser:
    parser = Parser(
        prog="python -m infra.retrain",
        description="From the answers people gave on the page to a published model. It is compared with the live one\n"
        "on answers that it was not trained on, on the pairs known before and on questions; what is worse is kept\n"
        "back (exit code 1). Without new answers nothing is done (exit code 2).",
        epilog="example:\n"
        "  make retrain\n"
        "  python -m infra.retrain --index http://localhost:9200/companies --to gs://bucket/models/pause \\\n"
        "      --serving localhost:8500 --index http://localhost:9200/suppliers",
    )
    add = parser.add_argument
    others = "further ones are named before they are left behind"
    add("--index", action="append", metavar="URL", help=f"has the answers, and is moved ({DEMO_INDEX}); {others}")
    add("--to", default=DEMO_MODEL, metavar="BASE", help="base path of the live model (%(default)s)")
    add("--serving", metavar="HOST:PORT,...", help="server of --to; default: started for the run")
    add("--pairs", default=KNOWN, metavar="FILE", help="pairs known before (%(default)s)")
    add("--questions", action="append", metavar="FILE", help=f"to compare on ({' and '.join(QUESTIONS)})")
    add("--train", default=shlex.join(SETTINGS), metavar="FLAGS", help="of model.train (%(default)r)")
    add("--out", type=Path, default=FOLDER, metavar="DIR", help="where all is made (%(default)s)")
    add("--force", action="store_true", help="publish what is worse, and train though no answer is new")
    return parser


if __name__ == "__main__":
    sys.exit(main())
