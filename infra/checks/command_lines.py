"""What the commands of this project accept: each is asked for its parser, without running it."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
BEAM_COMMANDS = ("pipelines.encode", "pipelines.reindex")  # all flags that are not theirs go to Beam
_ADDED = re.compile(r"""add_argument\(\s*["'](--[\w-]+)""")


@dataclass(frozen=True)
class CommandLine:
    """Flags of a command, and of each of its subcommands."""

    flags: frozenset[str]
    subcommands: dict[str, frozenset[str]] = field(default_factory=dict)

    def accepted(self, chosen: list[str]) -> frozenset[str]:
        return self.flags.union(*(self.subcommands[name] for name in chosen))


class _Asked(BaseException):
    """Ends a command in the moment it would read its arguments; no `except Exception` of its own may catch it."""

    def __init__(self, parser: argparse.ArgumentParser):
        self.parser = parser


def is_command(root: Path, module: str) -> bool:
    """Whether `python -m module` would run something of the project."""
    path = root / module.replace(".", "/")
    if (path / "__main__.py").exists():
        return True
    file = path.with_suffix(".py")
    return file.exists() and '__name__ == "__main__"' in file.read_text(encoding="utf-8")


@cache
def command_line(module: str) -> CommandLine | None:
    """None for a command without a parser."""
    try:
        parser = _parser(module)
    except ModuleNotFoundError as error:
        if _is_ours(error.name or ""):
            raise
        return _written_flags(module)
    if parser is None:
        return None
    nested = {
        name: _flags(one)
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, one in action.choices.items()
    }
    own = _flags(parser)
    return CommandLine(own | beam_flags() if module in BEAM_COMMANDS else own, nested)


@cache
def beam_flags() -> frozenset[str]:
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = argparse.ArgumentParser(conflict_handler="resolve")
    for options in _below(PipelineOptions):
        options._add_argparse_args(parser)
    return _flags(parser)


def _below(kind: Any) -> Iterator[Any]:
    for one in kind.__subclasses__():
        # Those of Beam itself: a test or a program may have made others.
        if one.__module__.startswith("apache_beam.") and "_add_argparse_args" in vars(one):
            yield one
        yield from _below(one)


def _flags(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(flag for action in parser._actions for flag in action.option_strings)


def _is_ours(module: str) -> bool:
    return (ROOT / module.partition(".")[0]).is_dir()


def _written_flags(module: str) -> CommandLine:
    """Of a command that runs in an environment of its own, such as that of the validators: as its source has them."""
    path = ROOT / module.replace(".", "/")
    source = (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    return CommandLine(frozenset({"-h", "--help", *_ADDED.findall(source)}))


def _parser(module: str) -> argparse.ArgumentParser | None:
    path = ROOT / module.replace(".", "/")
    program = importlib.import_module(f"{module}.__main__" if path.is_dir() else module)
    with _asking():
        try:
            program.main([])
        except _Asked as asked:
            return asked.parser
    return None


@contextmanager
def _asking() -> Iterator[None]:
    usual = argparse.ArgumentParser.parse_known_args

    def ask(self: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        raise _Asked(self)

    argparse.ArgumentParser.parse_known_args = ask  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_known_args = usual  # type: ignore[method-assign]
