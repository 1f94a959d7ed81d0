"""What must be true before a job starts: the endpoint answers, the index fits it, there is something to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from apache_beam.io.filesystems import FileSystems

from index.base import Index
from model.errors import InputError
from pipelines.files import format_of
from pipelines.options import DEMO_MODEL, Options
from pipelines.own_server import OwnServer
from pipelines.services import Services, connect, provide

ANSWER_SECONDS = 10.0
WORTH_COMPILING = 5 << 20  # bytes of input: compiling takes longer than encoding fewer


def input_bytes(pattern: str) -> int:
    """Of all files that a pattern names; raises where there is none, or one that cannot be told by its name."""
    try:
        files = FileSystems.match([pattern])[0].metadata_list
    except Exception as error:  # each store has exceptions of its own
        raise InputError(f"{pattern} cannot be read: {' '.join(str(error).split())}") from error
    if not files:
        raise InputError(f"{pattern} matches no file")
    for file in files:
        format_of(file.path)
    return sum(file.size_in_bytes for file in files)


def services(options: Options, size: int) -> tuple[Services, Index]:
    """How the job reaches an endpoint that answers and an index that fits it; `size` is the input's, in bytes."""
    provide(options.secrets)
    compiled = options.is_streaming or size >= WORTH_COMPILING
    found = reach(options.serving, options.index, compiled, options.secrets)
    return found, found.created_index()


def reach(serving: tuple[str, ...], index: str, compiled: bool, secrets: Mapping[str, str] | None = None) -> Services:
    """By the addresses of an endpoint that answers, or by a server of our own."""
    if serving:
        with connect(serving, ANSWER_SECONDS) as client:
            return Services(serving, index, client.contract(), secrets or {})
    own = OwnServer(DEMO_MODEL, compiled)
    return Services(own, index, own.contract(), secrets or {})


@contextmanager
def serving(services: Services, options: Options) -> Iterator[None]:
    """With the embedded server at hand where no other was named; a stream's is up before the first message."""
    if not isinstance(services.serving, OwnServer):
        yield
        return
    with services.serving.stopped_after():
        if options.is_streaming:
            services.serving.address()
        yield


@contextmanager
def loading(index: Index, options: Options) -> Iterator[None]:
    """Only where nobody searches yet, or where it costs no one anything: replicas are dear to build again."""
    embedded = not options.index.startswith(("http://", "https://"))
    first = not options.is_streaming and (embedded or index.status().live == 0)
    with index.loading() if first else nullcontext():
        yield
