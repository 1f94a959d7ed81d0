"""Leases: who is at work on an index, until when that holds, and a thread that says again and again that it does.

Times are the server's. Workers' clocks may be wrong by hours: by its own clock one of them would end the work of
another that lives, or believe in that of a dead one for ever.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import uuid
from collections.abc import Callable

from elasticsearch import Elasticsearch

from index.elastic.cluster.retry import Retry
from index.elastic.queries import clock

log = logging.getLogger(__name__)


def new_holder() -> str:
    return f"{platform.node()}/{os.getpid()}/{uuid.uuid4().hex}"


def is_gone(holder: str) -> bool:
    """Only of a process of this machine can that be told."""
    machine, number, _ = holder.split("/")
    if machine != platform.node():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's, and there
        pass
    return False


def is_alive(holder: str, until: float, now: float) -> bool:
    return until > now and not is_gone(holder)


def server_time(url: str, client: Elasticsearch, index: str) -> float:
    """In seconds. A question of an aggregation that ends now: the one way that takes no right but to read the index."""
    response = Retry(url).call(lambda: client.search(index=index, body=clock()))
    return float(response["aggregations"]["clock"]["buckets"][0]["to"]) / 1000


class Heartbeat:
    """Calls `renew` every so many seconds while it is entered, whatever its thread of work is waiting for."""

    def __init__(self, renew: Callable[[], object], seconds: float):
        self._renew, self._seconds = renew, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()  # or it could renew what is given up next

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._renew()
            except Exception as error:  # the next beat may do better; a lease that ends is for the others to see
                log.warning("a lease could not be renewed: %s", error)
