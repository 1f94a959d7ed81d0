"""The flags of the pipeline as one frozen object; what is not ours is Beam's, and Beam must know it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import urlsplit

from common.command import Parser, truth
from common.errors import InputError
from index.open import backend_of
from pipelines.metrics.max_bad import ALL_BUT_ONE, MaxBad, max_bad
from pipelines.records import FIELDS, SAME_NAMES, Columns

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

EXAMPLES = "examples/companies.jsonl"
DEMO_MODEL, DEMO_INDEX = "build/demo/serving/pause", "build/demo/index"
TOPIC = re.compile(r"projects/[^/]+/topics/[^/]+")
SUBSCRIPTION = re.compile(r"projects/[^/]+/subscriptions/[^/]+")
SECRET = re.compile(r"(?P<variable>PAUSE_[A-Z_]+)=(?P<name>projects/[^/]+/secrets/[^/]+/versions/[^/]+)")
DIRECT = ("DirectRunner", "SwitchingDirectRunner", "BundleBasedDirectRunner", "FnApiRunner")
LOCAL = (*DIRECT, "PrismRunner")  # workers are in this process
YEAR_SECONDS = 365 * 24 * 3600
BATCH_SIZE = 512  # companies: looked up, written, and read by a move, at once
IN_FLIGHT = 3  # batches being encoded by a worker
WRITES = 3  # batches being written: one is made ready while others are with the index
SOURCES = {  # flags that say where records come from, one of them in a run: what each takes, and its help
    "input": ("GLOB", ".jsonl, .csv, .tsv or .parquet, also .gz; local, gs://, s3:// ..."),
    "watch": ("GLOB", "such files as they appear or change, until stopped"),
    "subscription": ("S", "projects/PROJECT/subscriptions/NAME"),
    "topic": ("T", "projects/PROJECT/topics/NAME; a subscription is made for the run"),
    "replay": ("GLOB|S", "dead letters, put right, in files or from a subscription"),
}


@dataclass(frozen=True)
class Options:
    """What a run is told; a flag each."""

    input: str | None = None
    watch: str | None = None
    subscription: str | None = None
    topic: str | None = None
    replay: str | None = None  # files or a subscription of dead letters
    serving: tuple[str, ...] = ()  # none: the embedded server, started for the run
    index: str = DEMO_INDEX
    dead_letters: str = ""  # beside the index
    columns: Columns = SAME_NAMES
    batch_size: int = BATCH_SIZE
    in_flight: int = IN_FLIGHT
    max_wait: float = 1.0
    watch_interval: float = 10.0
    force: bool = False
    max_bad: MaxBad = ALL_BUT_ONE
    secrets: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int = 0  # none
    metrics_host: str = "127.0.0.1"
    runner: str = "DirectRunner"
    beam: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dead_letters", self.dead_letters or letters_beside(self.index))
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
        for name, pattern in (("subscription", SUBSCRIPTION), ("topic", TOPIC)):
            if (given := getattr(self, name)) and not pattern.fullmatch(given):
                raise InputError(f"--{name} {given!r} is not projects/PROJECT/{name}s/NAME")
        if not self.is_local:
            self._require_reachable()
        if self.metrics_port:
            self._require_workers_here()

    def _require_reachable(self) -> None:
        """Workers elsewhere see neither this machine's disk nor a server on it."""
        wanted = {
            "--serving HOST:PORT": bool(self.serving),
            "--index http(s)://host:9200/alias": backend_of(self.index).is_remote,
            "--dead_letters as gs://... or a topic": bool(
                "://" in self.dead_letters or TOPIC.fullmatch(self.dead_letters)
            ),
        }
        missing = [flag for flag, given in wanted.items() if not given]
        if missing:
            raise InputError(f"--runner={self.runner} runs on other machines, and needs {missing[0]}")

    def _require_workers_here(self) -> None:
        """A process can serve only what it counts itself."""
        from apache_beam.options.pipeline_options import DebugOptions, DirectOptions, PortableOptions

        if not 0 <= self.metrics_port <= 65535:
            raise InputError(f"--metrics_port must be from 0, which is none, to 65535, got {self.metrics_port}")
        settings = self.pipeline_options()
        modes = {
            f"--runner={self.runner}": not self.is_local,
            "--direct_running_mode": settings.view_as(DirectOptions).direct_running_mode == "multi_processing",
            "--environment_type": settings.view_as(PortableOptions).environment_type not in (None, "LOOPBACK"),
            "--experiments": settings.view_as(DebugOptions).lookup_experiment("use_loopback_process_worker", False),
        }
        for flag in (flag for flag, elsewhere in modes.items() if elsewhere):
            raise InputError(f"--metrics_port: with {flag} workers are other processes, and this one counts nothing")

    @property
    def source(self) -> Literal["messages", "watch", "replay", "files"]:
        """Where records come from, as metrics tell it."""
        if self.replay:
            return "replay"
        return "messages" if self.reads_messages else "watch" if self.watch else "files"

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
        from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

        options = PipelineOptions([*self.beam])
        options.view_as(StandardOptions).streaming = self.is_streaming
        # Beam 2.77 also stops following a job after so many seconds, and then fails it: whoever takes longer than the
        # five minutes it comes with would end there. Whether the server is there is asked for before, in preflight.py.
        options.view_as(PortableOptions).job_server_timeout = YEAR_SECONDS
        return options

    @property
    def job_server(self) -> str:
        """HOST:PORT of the one that was named; "" where Beam starts its own, or has none."""
        from apache_beam.options.pipeline_options import PortableOptions

        named = self.pipeline_options().view_as(PortableOptions).job_endpoint or ""
        return named if ":" in named else ""


def parse(argv: Sequence[str] | None = None) -> Options:
    known, beam = command_parser().parse_known_args(argv)
    given = vars(known) | {"beam": tuple(beam), "runner": _runner(beam), "secrets": dict(known.secret)}
    del given["secret"]
    if not any(given[name] for name in SOURCES):
        given["input"] = EXAMPLES
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


def letters_beside(index: str) -> str:
    """A folder of their own for the dead letters of each index: beside an embedded one, else under build/."""
    return str(backend_of(index).local(index, "dead_letters"))


def _secrets(text: str) -> list[tuple[str, str]]:
    """Several by commas: a template gives each flag but once."""
    matches = [SECRET.fullmatch(one) for one in text.split(",")]
    if not all(matches):  # the text itself might be the secret: it is not repeated
        raise argparse.ArgumentTypeError("takes PAUSE_VARIABLE=projects/PROJECT/secrets/NAME/versions/VERSION,...")
    return [(match["variable"], match["name"]) for match in matches if match]


def addresses(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def adding(parser: Parser, options: type) -> Callable[..., None]:
    """Adds flags by whose names `options` has fields: their defaults stand there alone."""

    def add(flag: str, **settings: Any) -> None:
        parser.add_argument(flag, default=getattr(options, flag.removeprefix("--")), **settings)

    return add


def command_parser() -> Parser:
    parser = Parser(
        prog="python -m pipelines.encode",
        description="Company descriptions in, searchable vectors out. Without flags: the examples, encoded by the\n"
        "model of `make demo` on a server started for the run, into an index beside it.",
        epilog="A record without updated_at is as old as its file or message.\n"
        "All other flags are Beam's, such as --runner=DirectRunner|PrismRunner|DataflowRunner. Passwords and\n"
        "keys come from the environment (PAUSE_ES_API_KEY, ...) or by --secret, never from another flag.",
    )
    add = adding(parser, Options)
    sources = parser.add_mutually_exclusive_group()
    for name, (taken, told) in SOURCES.items():
        sources.add_argument(f"--{name}", metavar=taken, help=told)
    add("--serving", type=addresses, metavar="HOST:PORT,...", help="gRPC; default: started for the run")
    add("--index", metavar="URL", help="a path or http(s)://host:9200/alias; %(default)s")
    add("--dead_letters", metavar="PATH|TOPIC", help="a folder or a topic; default: beside the index")
    add("--max_bad", type=max_bad, metavar="SHARE|N", help="more bad ones, 1%% or 5, fail a run; default: none is good")
    add("--force", type=truth, nargs="?", const=True, metavar="true|false", help="write equal versions again: repairs")
    add("--columns", type=_columns, metavar="id=cik,...", help="other names of the fields")
    add("--batch_size", type=int, metavar="N", help="companies looked up and written at once; %(default)s")
    add("--in_flight", type=int, metavar="N", help="batches encoded at a time by a worker; %(default)s")
    add("--max_wait", type=float, metavar="S", help="seconds a stream's batch may fill; %(default)s")
    add("--watch_interval", type=float, metavar="S", help="seconds between looks; %(default)s")
    add("--metrics_port", type=int, metavar="N", help="Prometheus' page, /metrics; 0, the default, is none")
    add("--metrics_host", metavar="HOST", help="where that listens; %(default)s")
    secret: Callable[..., Any] = parser.add_argument
    secret("--secret", type=_secrets, action="extend", default=[], metavar="VARIABLE=NAME,...", help="Secret Manager's")
    return parser
