"""The flags of the pipeline as one frozen object; what is not ours is Beam's, and Beam must know it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from model.command import Parser
from model.errors import InputError
from pipelines.company import FIELDS, SAME_NAMES, Columns

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

EXAMPLES = "examples/companies.jsonl"
DEMO_MODEL, DEMO_INDEX, DEMO_DEAD_LETTERS = "build/demo/serving/pause", "build/demo/index", "build/demo/dead_letters"
TOPIC = re.compile(r"projects/[^/]+/topics/[^/]+")
SUBSCRIPTION = re.compile(r"projects/[^/]+/subscriptions/[^/]+")
SECRET = re.compile(r"(?P<variable>PAUSE_[A-Z_]+)=(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/]+)")
DIRECT = ("DirectRunner", "SwitchingDirectRunner", "BundleBasedDirectRunner", "FnApiRunner")
LOCAL = (*DIRECT, "PrismRunner")  # workers are in this process


@dataclass(frozen=True)
class Options:
    input: str | None = None
    watch: str | None = None
    subscription: str | None = None
    topic: str | None = None
    replay: str | None = None  # files or a subscription of dead letters
    serving: tuple[str, ...] = ()  # none: the embedded server, started for the run
    index: str = DEMO_INDEX
    dead_letters: str = DEMO_DEAD_LETTERS
    columns: Columns = SAME_NAMES
    batch_size: int = 512
    in_flight: int = 3
    max_wait: float = 1.0
    watch_interval: float = 10.0
    secrets: Mapping[str, str] = field(default_factory=dict)
    runner: str = "DirectRunner"
    beam: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("batch_size", "in_flight"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, got {getattr(self, name)}")
        for name in ("max_wait", "watch_interval"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"--{name} must be above 0 seconds, got {getattr(self, name)}")
        if urlsplit(self.index).username or urlsplit(self.index).password:
            raise InputError("--index must not hold a password, which consoles show; put it into PAUSE_ES_PASSWORD")
        if self.watch and self.runner in DIRECT:
            raise InputError("--watch does not work on the DirectRunner; use --runner=PrismRunner, or Dataflow")
        for name in ("subscription", "topic"):
            pattern, given = {"subscription": SUBSCRIPTION, "topic": TOPIC}[name], getattr(self, name)
            if given and not pattern.fullmatch(given):
                raise InputError(f"--{name} {given!r} is not projects/PROJECT/{name}s/NAME")
        if not self.is_local:
            self._require_reachable()

    def _require_reachable(self) -> None:
        """Workers elsewhere see neither this machine's disk nor a server on it."""
        wanted = {
            "--serving HOST:PORT": bool(self.serving),
            "--index http(s)://host:9200/alias": self.index.startswith(("http://", "https://")),
            "--dead_letters as gs://... or a topic": bool(
                "://" in self.dead_letters or TOPIC.fullmatch(self.dead_letters)
            ),
        }
        missing = [flag for flag, given in wanted.items() if not given]
        if missing:
            raise InputError(f"--runner={self.runner} runs on other machines, and needs {missing[0]}")

    @property
    def files(self) -> str | None:
        """The pattern that must name a file before the job starts."""
        return self.input if self.input else self.replay if self.replay and not self.replays_messages else None

    @property
    def replays_messages(self) -> bool:
        return bool(self.replay and SUBSCRIPTION.fullmatch(self.replay))

    @property
    def reads_messages(self) -> bool:
        return bool(self.subscription or self.topic or self.replays_messages)

    @property
    def is_streaming(self) -> bool:
        return bool(self.watch or self.reads_messages)

    @property
    def is_local(self) -> bool:
        return self.runner in LOCAL

    def pipeline_options(self) -> PipelineOptions:
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

        options = PipelineOptions([*self.beam])
        options.view_as(StandardOptions).streaming = self.is_streaming
        return options


def parse(argv: Sequence[str] | None = None) -> Options:
    known, beam = _parser().parse_known_args(argv)
    given = vars(known)
    given["beam"], given["runner"] = tuple(beam), _runner(beam)
    if not any(given[name] for name in ("input", "watch", "subscription", "topic", "replay")):
        given["input"] = EXAMPLES
    given["secrets"] = dict(given.pop("secret"))
    return Options(**given)


def _runner(flags: list[str]) -> str:
    """Raises for a flag that Beam does not know: it would drop it with a warning."""
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

    def check(parser: Any) -> None:
        parser.error = _refuse
        _, unknown = parser.parse_known_args(flags)
        if unknown:
            _refuse(f"neither this pipeline nor Beam knows {unknown[0]}")

    PipelineOptions(flags).get_all_options(add_extra_args_fn=check)
    return PipelineOptions(flags).view_as(StandardOptions).runner or "DirectRunner"


def _refuse(message: str) -> NoReturn:
    raise InputError(f"{message}; `python -m pipelines.encode --help` shows what is accepted")


def _columns(text: str) -> Columns:
    pairs = [pair.partition("=") for pair in text.split(",")]
    bad = [column for column, equals, name in pairs if column not in FIELDS or not equals or not name]
    if bad:
        raise argparse.ArgumentTypeError(f"{text!r} is not field=name,...; fields are {', '.join(FIELDS)}")
    return Columns({column: name for column, _, name in pairs})


def _secret(text: str) -> tuple[str, str]:
    match = SECRET.fullmatch(text)
    if not match:
        # The text itself might be the secret: it is not repeated.
        raise argparse.ArgumentTypeError("takes PAUSE_VARIABLE=projects/PROJECT/secrets/NAME/versions/VERSION")
    return match["variable"], match["name"]


def addresses(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _parser() -> Parser:
    parser = Parser(
        prog="python -m pipelines.encode",
        description="Company descriptions in, searchable vectors out. Without flags: the examples, encoded by the\n"
        "model of `make demo` on a server started for the run, into an index beside it.",
        epilog="All other flags are Beam's, such as --runner=DirectRunner|PrismRunner|DataflowRunner. Passwords and\n"
        "keys come from the environment (PAUSE_ES_API_KEY, ...) or by --secret, never from another flag.",
    )
    add: Callable[..., Any] = parser.add_argument
    sources = parser.add_mutually_exclusive_group()
    source: Callable[..., Any] = sources.add_argument
    source("--input", metavar="GLOB", help=".jsonl, .csv, .tsv or .parquet, also .gz; local, gs://, s3:// ...")
    source("--watch", metavar="GLOB", help="such files as they appear or change, until stopped")
    source("--subscription", metavar="S", help="projects/PROJECT/subscriptions/NAME")
    source("--topic", metavar="T", help="projects/PROJECT/topics/NAME; a subscription is made for the run")
    source("--replay", metavar="GLOB|S", help="dead letters, put right, in files or from a subscription")
    add("--serving", type=addresses, default=(), metavar="HOST:PORT,...", help="gRPC; default: started for the run")
    add("--index", default=DEMO_INDEX, metavar="URL", help="a path or http(s)://host:9200/alias; %(default)s")
    add("--dead_letters", default=DEMO_DEAD_LETTERS, metavar="PATH|TOPIC", help="a folder or a topic; %(default)s")
    add("--columns", type=_columns, default=SAME_NAMES, metavar="id=cik,...", help="other names of the fields")
    add("--batch_size", type=int, default=512, metavar="N", help="companies looked up and written at once; %(default)s")
    add("--in_flight", type=int, default=3, metavar="N", help="batches encoded at a time by a worker; %(default)s")
    add("--max_wait", type=float, default=1.0, metavar="S", help="seconds a stream's batch may fill; %(default)s")
    add("--watch_interval", type=float, default=10.0, metavar="S", help="seconds between looks; %(default)s")
    add("--secret", type=_secret, action="append", default=[], metavar="VARIABLE=NAME", help="from Secret Manager")
    return parser
