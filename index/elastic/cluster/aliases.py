"""The physical indices behind an alias: <alias>-<fingerprint>-<number>, numbered in order of creation."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from elasticsearch import ApiError, BadRequestError, Elasticsearch, NotFoundError

from index.base import Spec
from index.elastic.cluster.meta import Meta
from index.elastic.cluster.retry import SECONDS, Retry
from index.elastic.mapping import mappings, settings
from index.errors import IndexUnusable

Result = TypeVar("Result")

log = logging.getLogger(__name__)


def writes_to(name: str) -> str:
    """An alias that only the physical index of that name has."""
    return f"{name}.writes"


OLD = 5  # times as long as a reader remembers the live index: then it waits for a look


@dataclass(frozen=True)
class PhysicalIndex:
    """A physical index, and what its mapping's `_meta` says of it."""

    name: str
    meta: dict[str, Any]

    @property
    def spec(self) -> Spec:
        return Spec(self.meta["model"], self.meta["dimension"])

    @property
    def kind(self) -> str:
        """How its vectors are kept for searching."""
        return str(self.meta["vectors"])


class Aliases:
    """The alias of an address and the physical indices behind it, now and before."""

    def __init__(self, url: str, client: Elasticsearch, alias: str):
        self.url, self.client, self.alias = url, client, alias
        self.retry_seconds = SECONDS
        self.abandoned: deque[str] = deque()  # points in time that nobody reads any more
        self.cache_seconds = 0.0  # seconds for which a reader takes the live index to be the one it was
        self._seen: tuple[PhysicalIndex | None, float] = (None, 0.0)
        self._looking = threading.Lock()
        self._name = re.compile(rf"{re.escape(alias)}-(?P<model>[0-9a-f]{{16}})-(?P<number>\d+)")

    def call(self, request: Callable[[], Result]) -> Result:
        return Retry(self.url, self.retry_seconds).call(request)

    def live(self) -> PhysicalIndex | None:
        """Asked anew each time: whoever swaps it is another process."""
        physical = self.at(self.alias)
        self._seen = (physical, time.monotonic())
        return physical

    def cached(self) -> PhysicalIndex | None:
        """The live one, as a reader may have seen it a moment ago: the one before it stays as it was.

        A look takes as long as half a search, so whoever asks again and again has it taken beside the question.
        """
        physical, seen = self._seen
        age = time.monotonic() - seen
        if physical is None or age >= OLD * self.cache_seconds:
            return self.live()
        if age >= self.cache_seconds and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="look-for-alias", daemon=True).start()
        return physical

    def _look(self) -> None:
        try:
            self.live()
        except Exception as error:  # whoever asks next finds out by itself
            log.info("%s: the live index could not be looked for: %s", self.url, error)
        finally:
            self._looking.release()

    def at(self, name: str) -> PhysicalIndex | None:
        """By alias or physical name."""
        wanted = ["*.mappings._meta", "*.mappings.dynamic"]
        try:
            response = self.call(lambda: self.client.indices.get_mapping(index=name, filter_path=wanted)).body
        except NotFoundError:
            return None
        if len(response) != 1 or not all(self._name.fullmatch(found) for found in response):
            found = ", ".join(sorted(response)) or "what is not of this project"
            raise IndexUnusable(
                f"{self.url} is taken: {self.alias!r} is {found}, not an alias of {self.alias}-<model>-<number>; "
                f"give another name"
            )
        ((physical, content),) = response.items()
        return PhysicalIndex(physical, content["mappings"]["_meta"])

    def begun(self, spec: Spec) -> str:
        """The physical name for a model after the live one: one begun before, or the next."""
        live, numbers = self.live(), self._numbers()
        after = {name: number for name, number in numbers.items() if live is None or number > numbers[live.name]}
        same = [name for name in after if name.startswith(f"{self.alias}-{spec.model}-")]
        if same:
            return max(same, key=numbers.__getitem__)
        return f"{self.alias}-{spec.model}-{max(numbers.values(), default=0) + 1}"

    def names(self) -> list[str]:
        """Of all physical indices, oldest first."""
        numbers = self._numbers()
        return sorted(numbers, key=numbers.__getitem__)

    def _numbers(self) -> dict[str, int]:
        pattern = f"{self.alias}-*"
        response = self.call(lambda: self.client.indices.get_alias(index=pattern, allow_no_indices=True)).body
        return {match[0]: int(match["number"]) for match in filter(None, map(self._name.fullmatch, response))}

    def create(self, name: str, spec: Spec, created_at: int, companies: int = 0) -> None:
        """Nothing is done where it is there already: made by another a moment ago, or by one that died."""
        wanted = mappings(spec, created_at, companies)
        for whole_source in (True, False):
            try:
                chosen, aliases = settings(whole_source), {writes_to(name): dict[str, Any]()}
                make = partial(self.client.indices.create, index=name, mappings=wanted, aliases=aliases)
                self.call(partial(make, settings=chosen))
                return
            except BadRequestError as error:
                if error.error == "resource_already_exists_exception":
                    return
                if not (whole_source and "exclude_source_vectors" in str(error)):
                    raise IndexUnusable(f"{self.url} cannot be created: {error.message}: {error.body}") from error

    def claim(self, name: str) -> None:
        """Makes it live where nothing is: of several that create at once, one wins and all go on with that one."""
        try:
            self._move(None, name)
        except ApiError:
            if self.live() is None:
                raise

    def let_write(self, name: str) -> None:
        """For an index from before there was an alias to write by."""
        if self.at(writes_to(name)) is None:
            self._change({"add": {"index": name, "alias": writes_to(name)}})

    def go_live(self, name: str, instead_of: str | None = None) -> None:
        """In one step for whoever reads; the former one is noted, for the way back."""
        live, physical = self.live(), self.at(name)
        if physical is None or (live and live.name == name):
            return
        self._still(live, instead_of)
        if live:
            Meta(self.url, self.client, name).write("before", live.name)
        self._move(live.name if live else None, name)

    def go_back(self, instead_of: str | None = None) -> str | None:
        """The index that was live before and is again, if there is one."""
        live, before = self.live(), self.former()
        self._still(live, instead_of)
        if live and before:
            self._move(live.name, before)
        return before

    def drop(self, name: str) -> None:
        with suppress(NotFoundError):  # by another, a moment ago
            self.call(lambda: self.client.indices.delete(index=name))

    def _still(self, live: PhysicalIndex | None, expected: str | None) -> None:
        if expected and (live is None or live.name != expected):
            found = live.name if live else "nothing"
            raise IndexUnusable(f"{self.url} answers from {found} by now, not from {expected}; nothing was changed")

    def former(self) -> str | None:
        live = self.live()
        before = live.meta.get("before") if live else None
        return None if before is None or self.at(before) is None else str(before)

    def _move(self, former: str | None, name: str) -> None:
        """Refused by the server where another is live than `former`: there is one write index behind an alias."""
        removed = [{"remove": {"index": former, "alias": self.alias, "must_exist": True}}] if former else []
        added = {"add": {"index": name, "alias": self.alias, "is_write_index": True}}
        self._change(*removed, added)

    def _change(self, *actions: dict[str, Any]) -> None:
        self.call(lambda: self.client.indices.update_aliases(actions=actions))
