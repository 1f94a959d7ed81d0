"""The end of a move from one physical index to the next, on the side of the live one.

A lease, noted in the live index, says that a move is under way: there is one at a time. For its last pass the index is
frozen: a block on writes, which the server sets when none is under way any more. Whoever writes meanwhile waits and
looks for the live index again. After the swap the block stays, so that nothing can get into an index that nobody reads.
A marker, an alias, tells this block from one that an administrator has set. Where the move has died before the swap,
the next writer, or the next move, thaws the index: its lease is over, or its process on this machine is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from index.elastic.cluster.aliases import Aliases
from index.elastic.cluster.lease import Heartbeat, is_alive, new_holder, server_time
from index.elastic.cluster.meta import Meta
from index.errors import IndexUnusable

LEASE_SECONDS = 30.0  # the longest time that writers wait for a dead move
RENEW_SECONDS = LEASE_SECONDS / 4


class Moves:
    """From one physical index."""

    def __init__(self, aliases: Aliases, name: str):
        self._aliases, self._client, self._name = aliases, aliases.client, name
        self._meta = Meta(aliases.url, aliases.client, name)
        self._marker = f"{name}.frozen"

    @contextmanager
    def to(self, target: str) -> Iterator[Callable[[], bool]]:
        """One at a time; what a dead one left frozen is thawed, and so is the target. Says whether it still is the one:
        a lease that ended in a long silence may be another's, and the index no longer live."""
        self.require_none()
        holder = new_holder()
        self._renew(holder, target)

        def holds() -> bool:
            live = self._aliases.live()
            return bool(live and live.name == self._name) and self._holder() == holder

        if self._holder() != holder:  # of two that begin at once
            raise IndexUnusable(self._said(target, "another"))
        for name in (self._name, target):
            Moves(self._aliases, name).thaw()
        try:
            with Heartbeat(lambda: self._renew(holder, target), RENEW_SECONDS):
                yield holds
        finally:
            if self._holder() == holder:
                self._meta.write("moving", None)

    def require_none(self) -> None:
        """Raises where a move is under way that lives."""
        note = self._meta.read().get("moving")
        if note and self._lives(note):
            raise IndexUnusable(self._said(note["to"], note["by"]))

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Nothing is written any more. Thawed in the end only where it still is the live one."""
        self._change("add")
        self._aliases.call(lambda: self._client.indices.add_block(index=self._name, block="write"))
        try:
            yield
        finally:
            live = self._aliases.live()
            if live and live.name == self._name:
                self.thaw()

    def is_frozen(self) -> bool:
        """Never thawed since, by one who took the move to be dead."""
        found = self._look()
        return self._marker in found["aliases"] and _is_blocked(found)

    def thaw(self) -> None:
        found = self._look()
        if self._marker not in found["aliases"]:
            return
        if _is_blocked(found):
            change = {"index": {"blocks.write": None}}
            self._aliases.call(lambda: self._client.indices.put_settings(index=self._name, settings=change))
        self._change("remove")

    def thaw_what_died(self) -> None:
        """By who waits to write."""
        note = self._meta.read().get("moving")
        if not (note and self._lives(note)):
            self.thaw()

    def _lives(self, note: dict[str, Any]) -> bool:
        now = server_time(self._aliases.url, self._client, self._name)
        return is_alive(note["by"], note["until"], now)

    def _holder(self) -> str | None:
        note = self._meta.read().get("moving")
        return note["by"] if note else None

    def _renew(self, holder: str, target: str) -> None:
        note = self._meta.read().get("moving")
        if note and note["by"] != holder and self._lives(note):  # taken over: a heartbeat too late changes nothing
            return
        until = server_time(self._aliases.url, self._client, self._name) + LEASE_SECONDS
        self._meta.write("moving", {"by": holder, "until": until, "to": target})

    def _change(self, what: str) -> None:
        actions = [{what: {"index": self._name, "alias": self._marker}}]
        self._aliases.call(lambda: self._client.indices.update_aliases(actions=actions))

    def _look(self) -> Any:
        features = ["aliases", "settings"]
        return self._aliases.call(lambda: self._client.indices.get(index=self._name, features=features))[self._name]

    def _said(self, target: str, holder: str) -> str:
        return (
            f"{self._aliases.url} is being moved to {target} by {holder} (machine/process/...); wait until that ends. "
            f"A move that died is over {LEASE_SECONDS:.0f} s later"
        )


def _is_blocked(found: Any) -> bool:
    return str(found["settings"]["index"].get("blocks", {}).get("write")) == "true"
