"""Which index has vectors of which model, where a model is about to be published: none may be taken by surprise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import CommandError, InputError
from index.open import backend_of, indices_in, open_index
from serving.client import EmbeddingClient

BUILD = Path("build")
LOAD_SECONDS = 300.0  # until a server has a version that was published
ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Holder:
    """An index, and the model whose vectors it holds."""

    url: str
    model: str  # fingerprint


def holders(urls: Sequence[str], build: Path = BUILD) -> list[Holder]:
    """The named ones, and the embedded ones in the folder of all that is built here. One that cannot be read is told
    of and left out: it is nobody's search."""
    found = {}
    for url in [*urls, *indices_in(build)]:
        try:
            identity = backend_of(url).identity(url)
            if identity not in found:
                found[identity] = Holder(url, open_index(url).spec().model)
        except CommandError as error:
            print(f"{url} is left out: {error}", file=sys.stderr)
    return list(found.values())


def told(others: Sequence[Holder], versions: Mapping[str, int], serving: str | None) -> Iterator[str]:
    """What becomes of each that is not moved; `versions` are those kept, by fingerprint."""
    where = f" --serving {serving}" if serving else ""
    for one in others:
        move = f"`python -m pipelines.reindex --index {one.url}{where}` moves it to the new one"
        if one.model in versions:
            goes_on = f"goes on with version {versions[one.model]}, for as long as that is kept"
        else:
            goes_on = "of which no version is kept: texts cannot be encoded for it"
        yield f"{one.url} has vectors of model {one.model}, {goes_on}; {move}"


def wait_until_served(addresses: str, fingerprint: str) -> dict[str, int]:
    """All that the endpoint answers by, once the published model is among it: fingerprint -> version."""
    deadline = time.monotonic() + LOAD_SECONDS
    with EmbeddingClient(addresses.split(","), deadline=ANSWER_SECONDS) as client:
        while fingerprint not in (served := client.served()):
            if time.monotonic() > deadline:
                raise InputError(f"{addresses} does not serve model {fingerprint} after {LOAD_SECONDS:.0f} s")
            time.sleep(0.5)
    return served


def left_behind(others: Sequence[Holder], served: Mapping[str, int], addresses: str) -> Iterator[str]:
    """Those whose model the endpoint serves no more, though it might."""
    for one in others:
        if one.model not in served:
            yield (
                f"{one.url} has vectors of model {one.model}, which {addresses} serves no more: start it with "
                f"--keep_versions 2, or `python -m pipelines.reindex --index {one.url} --serving {addresses}`"
            )
