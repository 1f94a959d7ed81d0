"""What all command lines share: one line for a mistake, exit code 2, no traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from common.errors import CommandError


class Parser(argparse.ArgumentParser):
    """Takes no shortened flags, so that a misspelt one is never silently another; tells a mistake in one line."""

    def __init__(self, **options: Any):
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}; `{self.prog} --help` shows what is accepted\n")


def truth(text: str) -> bool:
    """The value of a switch where whoever calls gives every flag one, as templates and charts do."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def exit_code(work: Callable[[], object]) -> int:
    """The exit code of `work`: 0, or 2 after one line that says what a person can put right."""
    try:
        work()
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
