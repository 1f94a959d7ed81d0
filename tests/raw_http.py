"""The service on a real port, and a client that sends bytes as it likes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

SECONDS = 30.0  # in which anything that is to happen has happened


@contextmanager
def running(config: uvicorn.Config) -> Iterator[int]:
    """The port of a server that runs in a thread; whoever comes before it is up waits at the open port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS)


def rest(client: socket.socket) -> bytes:
    """All that comes until the server closes; TimeoutError where it does not."""
    parts = []
    try:
        while part := client.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def drip(client: socket.socket, data: bytes, pause: float) -> bytes:
    """A byte at a time, until the server has enough of it or it ends; then what the server said."""
    client.settimeout(pause)
    for place in range(len(data)):
        try:
            client.sendall(data[place : place + 1])
            said = client.recv(1 << 16)
        except TimeoutError:
            continue
        except OSError:
            break
        client.settimeout(SECONDS)
        return said + rest(client) if said else b""
    client.settimeout(SECONDS)
    return rest(client)
