"""Command lines of ours, as deployments write them down, held against the parsers that will read them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from common.errors import CommandError

VARIABLE = re.compile(r"PAUSE_[A-Z_]*[A-Z]")
ROOMS = ("common", "model", "serving", "index", "pipelines", "search")


def _encode(argv: list[str]) -> object:
    from pipelines.options import parse  # not its parser alone: Beam must know what is not ours

    return parse(argv)


def _by_parser(module: str) -> Callable[[list[str]], object]:
    def parse(argv: list[str]) -> object:
        return import_module(module)._parser().parse_args(argv)

    return parse


# what follows `python -m`
PARSERS: dict[str, Callable[[list[str]], object]] = {
    "pipelines.encode": _encode,
    "pipelines.reindex": _by_parser("pipelines.reindex.__main__"),
    "index": _by_parser("index.__main__"),
    "search": _by_parser("search.__main__"),
    "serving.publish": _by_parser("serving.publish"),
}


def fault(words: Sequence[str]) -> str:
    """What is wrong with `python -m MODULE FLAGS...`; "" where it is taken, and where it is no command of ours."""
    if list(words[:2]) != ["python", "-m"] or len(words) < 3:
        return ""
    module, argv = words[2], list(words[3:])
    if module not in PARSERS:
        return f"python -m {module} is not a command that can be deployed; there are {', '.join(PARSERS)}"
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            PARSERS[module](argv)
    except CommandError as error:
        return str(error)
    except SystemExit as error:
        return said.getvalue().strip().removeprefix("error: ") if error.code else ""
    return ""


def variables(root: Path) -> set[str]:
    """Environment variables that the code reads, by their names in it."""
    texts = (path.read_text(encoding="utf-8") for room in ROOMS for path in (root / room).rglob("*.py"))
    return {name for text in texts for name in VARIABLE.findall(text)}
