"""An index while it is being loaded: no refreshing and no replicas, and the way back even when the load dies.

Who loads is noted in the mapping's `_meta`, each with a time until which that holds, and with the settings from before.
A thread of the loader renews its lease, whoever writes and however seldom. The last to leave restores the settings; so
does whoever next opens or writes to an index whose loaders have all died: their time is over, or their process on this
machine is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elasticsearch import Elasticsearch

from index.elastic.cluster.lease import Heartbeat, is_alive, new_holder, server_time
from index.elastic.cluster.meta import Meta
from index.elastic.cluster.retry import Retry

LEASE_SECONDS = 120.0  # the longest time that a dead load keeps an index from refreshing, once somebody looks
RENEW_SECONDS = LEASE_SECONDS / 4

WHILE_LOADING = {"refresh_interval": "-1", "number_of_replicas": 0, "auto_expand_replicas": "false"}


def joined(note: dict[str, Any] | None, settings: dict[str, Any], loader: str, now: float) -> dict[str, Any]:
    """The note with one loader more; the settings from before are those the first one found."""
    if note is None:
        note = {"was": {name: settings.get(name) for name in WHILE_LOADING}, "loaders": {}}
    return {**note, "loaders": {**note["loaders"], loader: now + LEASE_SECONDS}}


def left(note: dict[str, Any], loader: str, now: float) -> dict[str, Any] | None:
    """The note without that loader and without the dead; None when nobody is left."""
    others = {name: until for name, until in note["loaders"].items() if name != loader}
    loaders = {name: until for name, until in others.items() if is_alive(name, until, now)}
    return {**note, "loaders": loaders} if loaders else None


class BulkLoad:
    """Of one physical index. Times are the server's, in seconds."""

    def __init__(self, url: str, client: Elasticsearch, index: str):
        self._url, self._client, self._index = url, client, index
        self._meta = Meta(url, client, index)

    @contextmanager
    def running(self) -> Iterator[None]:
        loader = new_holder()
        self.begin(loader, self.now())
        try:
            with Heartbeat(lambda: self.begin(loader, self.now()), RENEW_SECONDS):
                yield
        finally:
            self.end(loader, self.now())

    def now(self) -> float:
        return server_time(self._url, self._client, self._index)

    def begin(self, loader: str, now: float) -> None:
        """Also renews. The note comes first: death between the two leaves a note too many, not one too few."""
        settings = self._settings()  # before the note is looked for: what another loader sets comes after its note
        meta = self._meta.read()
        self._meta.write("loading", joined(meta.get("loading"), settings, loader, now))
        if "loading" not in meta:
            self._set(WHILE_LOADING)

    def end(self, loader: str, now: float) -> None:
        """With "" for the loader, ends those alone that have died."""
        note = self._meta.read().get("loading")
        if note is None:
            return
        rest = left(note, loader, now)
        if rest is None:
            self._set(note["was"])
        if rest != note:
            self._meta.write("loading", rest)

    def _settings(self) -> dict[str, Any]:
        response = Retry(self._url).call(lambda: self._client.indices.get_settings(index=self._index))
        settings: dict[str, Any] = response[self._index]["settings"]["index"]
        return settings

    def _set(self, settings: dict[str, Any]) -> None:
        change = {"index": settings}
        Retry(self._url).call(lambda: self._client.indices.put_settings(index=self._index, settings=change))
