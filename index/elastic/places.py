"""The physical indices behind an alias: <alias>-<fingerprint>-<number>, numbered in order of creation."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from elasticsearch import ApiError, BadRequestError, Elasticsearch, NotFoundError

from index.base import Spec
from index.elastic.mapping import mappings, settings
from index.elastic.patience import SECONDS, Patience
from index.errors import IndexUnusable

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

OLD = 5  # times as long as a reader remembers the live index: then it waits for a look


@dataclass(frozen=True)
class Place:
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


class Places:
    def __init__(self, url: str, client: Elasticsearch, alias: str):
        self.url, self.client, self.alias = url, client, alias
        self.patience = SECONDS
        self.memory = 0.0  # seconds for which a reader takes the live index to be the one it was
        self._seen: tuple[Place | None, float] = (None, 0.0)
        self._looking = threading.Lock()
        self._name = re.compile(rf"{re.escape(alias)}-(?P<model>[0-9a-f]{{16}})-(?P<number>\d+)")

    def ask(self, request: Callable[[], Answer]) -> Answer:
        return Patience(self.url, self.patience).ask(request)

    def live(self) -> Place | None:
        """Asked anew each time: whoever swaps it is another process."""
        place = self.at(self.alias)
        self._seen = (place, time.monotonic())
        return place

    def remembered(self) -> Place | None:
        """The live one, as a reader may have seen it a moment ago: the one before it stays as it was.

        A look takes as long as half a search, so whoever asks again and again has it taken beside the question.
        """
        place, seen = self._seen
        age = time.monotonic() - seen
        if place is None or age >= OLD * self.memory:
            return self.live()
        if age >= self.memory and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="look-for-alias", daemon=True).start()
        return place

    def _look(self) -> None:
        try:
            self.live()
        except Exception as error:  # whoever asks next finds out by itself
            log.info("%s: the live index could not be looked for: %s", self.url, error)
        finally:
            self._looking.release()

    def at(self, name: str) -> Place | None:
        """By alias or physical name."""
        wanted = ["*.mappings._meta", "*.mappings.dynamic"]
        try:
            answer = self.ask(lambda: self.client.indices.get_mapping(index=name, filter_path=wanted)).body
        except NotFoundError:
            return None
        if len(answer) != 1 or not all(self._name.fullmatch(found) for found in answer):
            found = ", ".join(sorted(answer)) or "what is not of this project"
            raise IndexUnusable(
                f"{self.url} is taken: {self.alias!r} is {found}, not an alias of {self.alias}-<model>-<number>; "
                f"give another name"
            )
        ((physical, content),) = answer.items()
        return Place(physical, content["mappings"]["_meta"])

    def begun(self, spec: Spec) -> str:
        """The physical name for a model after the live one: one begun before, or the next."""
        pattern = f"{self.alias}-*"
        answer = self.ask(lambda: self.client.indices.get_alias(index=pattern, allow_no_indices=True)).body
        matches = filter(None, map(self._name.fullmatch, answer))
        numbers = {match[0]: int(match["number"]) for match in matches}
        live = self.live()
        after = {name: number for name, number in numbers.items() if live is None or number > numbers[live.name]}
        same = [name for name in after if name.startswith(f"{self.alias}-{spec.model}-")]
        if same:
            return max(same, key=numbers.__getitem__)
        return f"{self.alias}-{spec.model}-{max(numbers.values(), default=0) + 1}"

    def create(self, name: str, spec: Spec, created_at: int, companies: int = 0) -> None:
        """Nothing is done where it is there already: made by another a moment ago, or by one that died."""
        wanted = mappings(spec, created_at, companies)
        for whole_source in (True, False):
            try:
                chosen = settings(whole_source)
                self.ask(lambda: self.client.indices.create(index=name, mappings=wanted, settings=chosen))  # noqa: B023
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

    def go_live(self, name: str) -> None:
        """In one step for whoever reads; the former one is noted, for the way back."""
        live, place = self.live(), self.at(name)
        if place is None or (live and live.name == name):
            return
        if live:
            meta = {**place.meta, "before": live.name}
            self.ask(lambda: self.client.indices.put_mapping(index=name, meta=meta))
        self._move(live.name if live else None, name)

    def go_back(self) -> str | None:
        """The index that was live before and is again, if there is one."""
        live, before = self.live(), self.former()
        if live and before:
            self._move(live.name, before)
        return before

    def former(self) -> str | None:
        live = self.live()
        before = live.meta.get("before") if live else None
        return None if before is None or self.at(before) is None else str(before)

    def _move(self, former: str | None, name: str) -> None:
        """Refused by the server where another is live than `former`: there is one write index behind an alias."""
        removed = [{"remove": {"index": former, "alias": self.alias, "must_exist": True}}] if former else []
        added = {"add": {"index": name, "alias": self.alias, "is_write_index": True}}
        self.ask(lambda: self.client.indices.update_aliases(actions=[*removed, added]))
