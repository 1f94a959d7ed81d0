"""Whether a container is well, for its HEALTHCHECK: `health.py URL`, or without one, the metrics that its command was
told to show. A job that shows none is as well as its process: a dead one has no container to ask."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from urllib.parse import urlsplit

SECONDS = 4.0
FLAG = "--metrics_port"
COMMAND = Path("/proc/1/cmdline")


def metrics_port(arguments: list[str]) -> int:
    """0 where none is asked for; the last one counts, as it does for the command."""
    found = 0
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == FLAG:
            value = value if equals else "".join(arguments[position + 1 : position + 2])
            found = int(value) if value.isdecimal() else 0
    return found


def fault(url: str) -> str:
    """Why `url` does not answer as it should; "" where it does."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
    try:
        connection.request("GET", parts.path or "/")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{url} does not answer: {error}"
    finally:
        connection.close()
    return "" if status == 200 else f"{url} answers {status}"


def main(argv: list[str]) -> int:
    if argv:
        url = argv[0]
    else:
        port = metrics_port(COMMAND.read_bytes().decode(errors="replace").split("\0"))
        url = f"http://127.0.0.1:{port}/metrics" if port else ""
    said = fault(url) if url else ""
    if said:
        print(said, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
