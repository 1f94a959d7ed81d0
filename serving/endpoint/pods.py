"""The servers behind an endpoint's addresses, one connection each: who is next, who is out, who came and who went.

A name such as `dns:///pause-serving:8500` stands for all addresses that it resolves to. gRPC's own round robin looks a
name up again only after a connection broke, so that pods of a scale-up would stay idle; and behind one channel nobody
could tell which pod has which version. So names are looked up here, again and again while requests are sent.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import grpc

from serving.endpoint.connection import Connection

DNS = "dns:///"
RESOLVE_SECONDS = 10.0  # between two look-ups of a name; a cluster keeps its records for 5 to 30
FIRST_OUT, LONGEST_OUT = 1.0, 10.0  # seconds that a server is passed over after a failure
RETIRED_SECONDS = 120.0  # one that has left its name may still answer what it was sent


class Pod:
    """One server. After a failure it is out: passed over for some time, and until it is connected, so that no request
    is spent on finding out."""

    def __init__(self, address: str, connection: Connection):
        self.address, self.connection = address, connection
        self.served: Mapping[str, int] = {}  # fingerprint -> its highest version that answers, as far as is known
        self.looked = float("-inf")  # when it was last asked what it serves
        self.looking = threading.Lock()
        self._failures, self._until, self._connected = 0, 0.0, True
        self._watching = self._closed = False
        self._lock = threading.Lock()

    @property
    def is_out(self) -> bool:
        return self._failures > 0 and (not self._connected or time.monotonic() < self._until)

    def failed(self) -> None:
        with self._lock:
            self._until = time.monotonic() + min(LONGEST_OUT, FIRST_OUT * 2 ** min(self._failures, 16))
            self._failures += 1
            if not self._watching and not self._closed:  # which also has gRPC connect again by itself
                self._watching = True
                self.connection.channel.subscribe(self.heard, try_to_connect=True)

    def answered(self) -> None:
        if self._failures:
            with self._lock:
                self._failures, self._connected, self._watching = 0, True, False
                if not self._closed:
                    self.connection.channel.unsubscribe(self.heard)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self.connection.channel.close()

    def heard(self, state: grpc.ChannelConnectivity) -> None:
        """From gRPC. An idle connection is not tried again but by a request: a server that was lost while it was ready
        would stay out for good if none were sent."""
        self._connected = state not in (
            grpc.ChannelConnectivity.CONNECTING,
            grpc.ChannelConnectivity.TRANSIENT_FAILURE,
        )


class Pods:
    """Those of fixed addresses, and those that names resolve to at this time. For all threads."""

    def __init__(self, addresses: Sequence[str], connect: Callable[[str, str | None], Connection]):
        self._connect = connect
        self._names = [address.removeprefix(DNS) for address in addresses if address.startswith(DNS)]
        fixed = dict.fromkeys(address for address in addresses if not address.startswith(DNS))
        self._fixed = tuple(Pod(address, connect(address, None)) for address in fixed)
        self._found: dict[str, dict[str, Pod]] = {name: {} for name in self._names}
        self._retired: list[tuple[float, Pod]] = []
        self._all = self._fixed
        self._turns = itertools.count()
        self._looked_up = 0.0
        self._changing, self._waiting = threading.Lock(), threading.Lock()
        self._closed = False
        self.unresolved = ""  # why a name has no address

    def all(self) -> tuple[Pod, ...]:
        if self._names and (not self._all or time.monotonic() - self._looked_up >= RESOLVE_SECONDS):
            self._look_up_again()
        return self._all

    def turn(self, prefers: Callable[[Pod], bool] | None = None, spread: bool = True) -> Sequence[Pod]:
        """Each of them once: first those that are well and preferred; with `spread` the next one of them each time."""
        pods = self.all()
        if len(pods) < 2:
            return pods
        first = [pod for pod in pods if not pod.is_out and (prefers is None or prefers(pod))]
        start = next(self._turns) % len(first) if first and spread else 0
        return [*first[start:], *first[:start], *(pod for pod in pods if pod not in first)]

    def close(self) -> None:
        """Ends the requests under way, too."""
        self._closed = True
        with self._changing:
            for pod in (*self._all, *(pod for _, pod in self._retired)):
                pod.close()

    def _look_up_again(self) -> None:
        """Beside the requests, where there is somebody to send them to already."""
        if self._all:
            self._looked_up = time.monotonic()
            threading.Thread(target=self._look_up, name="resolve", daemon=True).start()
            return
        with self._waiting:  # the first request looks it up for all that come with it
            if not self._all:
                self._look_up()

    def _look_up(self) -> None:
        with self._changing:
            for name in self._names:
                try:
                    addresses = resolved(name)
                except OSError as error:  # those that were found before may be well all the same
                    self.unresolved = f"{name} does not resolve: {error.strerror or error}"
                    continue
                if not self._closed:
                    self._follow(name, addresses)
            self._all = (*self._fixed, *(pod for pods in self._found.values() for pod in pods.values()))
            self._looked_up = time.monotonic()

    def _follow(self, name: str, addresses: Sequence[str]) -> None:
        before, now = self._found[name], time.monotonic()
        self._found[name] = {one: before.get(one) or Pod(one, self._connect(one, name)) for one in addresses}
        self._retired += [(now, pod) for one, pod in before.items() if one not in self._found[name]]
        for since, pod in list(self._retired):
            if now - since > RETIRED_SECONDS:
                self._retired.remove((since, pod))
                pod.close()


def resolved(name: str) -> list[str]:
    """All addresses of HOST:PORT, sorted: a name server answers in another order each time."""
    host, _, port = name.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    numbers = {(family, str(address[0])) for family, *_, address in found}
    return sorted(f"[{one}]:{port}" if family is socket.AF_INET6 else f"{one}:{port}" for family, one in numbers)
