"""An index while it is being loaded: no refreshing and no replicas, and the way back even when the load dies.

Who loads is noted in the mapping's `_meta`, each with a time until which that holds, and with the settings from before.
The last to leave restores them; so does whoever next opens or writes to an index whose loaders have all died: their
time is over, or their process on this machine is gone.
"""

from __future__ import annotations

import os
import platform
import uuid
from typing import Any

from elasticsearch import Elasticsearch

from index.elastic.patience import Patience

LEASE_SECONDS = 120.0  # the longest time that a dead load keeps an index from refreshing, once somebody looks
RENEW_SECONDS = LEASE_SECONDS / 4

WHILE_LOADING = {"refresh_interval": "-1", "number_of_replicas": 0, "auto_expand_replicas": "false"}


def new_loader() -> str:
    return f"{platform.node()}/{os.getpid()}/{uuid.uuid4().hex}"


def is_gone(loader: str) -> bool:
    """Only of a process of this machine can that be told."""
    machine, number, _ = loader.split("/")
    if machine != platform.node():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's, and there
        pass
    return False


def joined(note: dict[str, Any] | None, settings: dict[str, Any], loader: str, now: float) -> dict[str, Any]:
    """The note with one loader more; the settings from before are those the first one found."""
    if note is None:
        note = {"was": {name: settings.get(name) for name in WHILE_LOADING}, "loaders": {}}
    return {**note, "loaders": {**note["loaders"], loader: now + LEASE_SECONDS}}


def left(note: dict[str, Any], loader: str, now: float) -> dict[str, Any] | None:
    """The note without that loader and without the dead; None when nobody is left."""
    others = {name: until for name, until in note["loaders"].items() if name != loader}
    loaders = {name: until for name, until in others.items() if until > now and not is_gone(name)}
    return {**note, "loaders": loaders} if loaders else None


class Loads:
    """Of one physical index. Times are those of whoever writes them: clocks may differ by less than a lease."""

    def __init__(self, url: str, client: Elasticsearch, index: str):
        self._url, self._client, self._index = url, client, index

    def begin(self, loader: str, now: float) -> None:
        """Also renews. The note comes first: death between the two leaves a note too many, not one too few."""
        settings = self._settings()  # before the note is looked for: what another loader sets comes after its note
        meta = self._meta()
        self._note(meta, joined(meta.get("loading"), settings, loader, now))
        if "loading" not in meta:
            self._set(WHILE_LOADING)

    def end(self, loader: str, now: float) -> None:
        """With "" for the loader, ends those alone that have died."""
        meta = self._meta()
        if "loading" not in meta:
            return
        rest = left(meta["loading"], loader, now)
        if rest is None:
            self._set(meta["loading"]["was"])
        if rest != meta["loading"]:
            self._note(meta, rest)

    def _meta(self) -> dict[str, Any]:
        answer = self._ask(lambda: self._client.indices.get_mapping(index=self._index))
        meta: dict[str, Any] = answer[self._index]["mappings"]["_meta"]
        return meta

    def _settings(self) -> dict[str, Any]:
        answer = self._ask(lambda: self._client.indices.get_settings(index=self._index))
        settings: dict[str, Any] = answer[self._index]["settings"]["index"]
        return settings

    def _set(self, settings: dict[str, Any]) -> None:
        self._ask(lambda: self._client.indices.put_settings(index=self._index, settings={"index": settings}))

    def _note(self, meta: dict[str, Any], note: dict[str, Any] | None) -> None:
        rest = {name: value for name, value in meta.items() if name != "loading"}
        changed = rest if note is None else {**rest, "loading": note}
        self._ask(lambda: self._client.indices.put_mapping(index=self._index, meta=changed))

    def _ask(self, request: Any) -> Any:
        return Patience(self._url).ask(request)
