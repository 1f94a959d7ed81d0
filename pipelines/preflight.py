"""What must be true before a job starts: the endpoint answers, the index fits it, there is something to read."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions

from common.errors import InputError
from index.base import Index
from index.open import backend_of
from pipelines.io.files import PART_BYTES, format_of, read
from pipelines.options import DEMO_MODEL, Options
from pipelines.records import BadRecord, Columns, RawRecord, decode
from pipelines.services import Services, connect, provide
from serving.own_server import OwnServer
from serving.tracing.start import settings

ANSWER_SECONDS = 10.0
WORTH_COMPILING = 5 << 20  # bytes of input: compiling takes longer than encoding fewer
FILES = 10  # that are looked into
LINES = 10_000  # of JSON in each of them: a record leaves out what it has not, and some fields are rare
MOST_NAMES = 10_000  # nobody could tell what is missing from more
NAMES, LETTERS = 20, 40  # that are told


def require_job_server(options: Options) -> None:
    """Raises where the runner that was named by its address is not there: Beam would wait for it for a long time."""
    host, _, port = options.job_server.rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"--job_endpoint {options.job_server}: no job server answers there ({error})") from error


def input_bytes(options: Options) -> int:
    """Of all files to be read at once; raises where there is none, or one that is not what it must be."""
    if not options.files:
        return 0
    files = matched(options.files)
    if options.input:  # the names in dead letters are of any stage
        check_columns(options.columns, (file.path for file in files))
    return sum(file.size_in_bytes for file in files)


def matched(pattern: str) -> Sequence[FileMetadata]:
    """Raises where there is no file, or one that cannot be told by its name."""
    try:
        files: Sequence[FileMetadata] = FileSystems.match([pattern])[0].metadata_list
    except Exception as error:  # each store has exceptions of its own
        raise InputError(f"{pattern} cannot be read: {' '.join(str(error).split())}") from error
    if not files:
        raise InputError(f"{pattern} matches no file")
    for file in files:
        format_of(file.path)
    return files


def services(options: Options, size: int) -> tuple[Services, Index]:
    """How the job reaches an endpoint that answers and an index that fits it; `size` is the input's, in bytes."""
    provide(options.secrets)
    compiled = options.is_streaming or size >= WORTH_COMPILING
    found = replace(reach(options.serving, options.index, compiled, options.secrets), force=options.force)
    return found, found.created_index()


def reach(
    serving: tuple[str, ...], index: str, compiled: bool = False, secrets: Mapping[str, str] | None = None
) -> Services:
    """By the addresses of an endpoint that answers, or by a server of our own."""
    if serving:
        with connect(serving, ANSWER_SECONDS) as client:
            return Services(serving, index, client.contract(), secrets or {}, tracing=settings())
    own = OwnServer(DEMO_MODEL, compiled)
    return Services(own, index, own.contract(), secrets or {}, tracing=settings())


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


def template_location(options: Options) -> str:
    """Where the job's description goes, which a template's launcher then submits; "" where we start the job."""
    return options.pipeline_options().view_as(GoogleCloudOptions).template_location or ""


@contextmanager
def loading(index: Index, options: Options) -> Iterator[None]:
    """Only where nobody searches yet, or where it costs no one anything: replicas are dear to build again."""
    embedded = not backend_of(options.index).is_remote
    here = not options.is_streaming and not template_location(options)  # a launcher is gone before the first write
    first = here and (embedded or index.status().live == 0)
    with index.loading() if first else nullcontext():
        yield


def check_columns(columns: Columns, paths: Iterable[str]) -> None:
    """Raises for a name that none of the first files has; a header or schema tells for a file, else its records do.

    A misspelt one would leave its field out of every company, and the run would say that all went well."""
    wanted, found, looked = dict(columns.names), dict[str, None](), 0
    for path in islice(paths, FILES if wanted else 0):
        looked += 1
        for names in _names_in(path, columns):
            found |= dict.fromkeys(names)
            if len(found) > MOST_NAMES or all(name in found for name in wanted.values()):
                return
    for field, name in wanted.items():
        if found and name not in found:
            raise InputError(_misspelt(field, name, list(found), path if looked == 1 else f"the first {looked} files"))


def _names_in(path: str, columns: Columns) -> Iterator[Iterable[str]]:
    lines = format_of(path) == "jsonl"
    for raw in islice(read(path, 0, PART_BYTES, columns), LINES):
        names = _names_of(raw)
        if names is not None:
            yield names
            if not lines:
                return


def _names_of(raw: RawRecord) -> Iterable[str] | None:
    """None of what is no record."""
    if raw.fault:
        return None
    try:
        return decode(raw.record) if isinstance(raw.record, bytes) else raw.record
    except BadRecord:
        return None


def _misspelt(field: str, name: str, found: list[str], where: str) -> str:
    names = [ascii(one[:LETTERS])[1:-1] for one in found[:NAMES]]
    more = f" and {len(found) - NAMES:,} more" if len(found) > NAMES else ""
    near = get_close_matches(name, found, 1)
    return f"--columns {field}={name}: there is no {name!r} in {where}, which has {', '.join(names)}{more}" + (
        f"; is it {near[0]!r}?" if near else ""
    )
