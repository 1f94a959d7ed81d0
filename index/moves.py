"""One index after the other at one address, each for another model, without downtime: the part of an index's interface
that a move from one to the next needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from index.base import Index, Spec


class Movable(ABC):
    """What an index offers to whoever moves its address to another one."""

    @abstractmethod
    def fixed(self) -> Index:
        """The very index that is live now, whatever the address answers from later."""

    @abstractmethod
    def successor(self, spec: Spec) -> Index:
        """An index for another model at the same address, unseen until `go_live`; one begun before is gone on with."""

    @abstractmethod
    def former(self) -> Index | None:
        """The index that `rollback` would go back to; it stays that one, whatever the address answers from later."""

    @abstractmethod
    def moving(self, target: Index) -> AbstractContextManager[Callable[[], bool]]:
        """For whoever fills the target from this live index: one at a time, others are refused while it lives. Says
        whether it still is that one, and this index the live one."""

    @abstractmethod
    def frozen(self) -> AbstractContextManager[Callable[[], bool]]:
        """While it lasts nothing is written here: whoever tries waits, and writes to what is live then. Says whether it
        really lasts: a move that was taken to be dead, after seconds of silence, is not waited for."""

    @abstractmethod
    def go_live(self) -> None:
        """From here on the address answers from this index."""

    @abstractmethod
    def rollback(self) -> str:
        """The address answers from the index before again, as it is; its physical name."""

    @abstractmethod
    def drop_former(self) -> list[str]:
        """Removes every index of this address but the live one; their physical names. Refused during a move."""
