"""The flags of a training run and their documentation, both made of the fields of TrainConfig."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from model.training.config import GROUPS, SETTINGS, Setting, TrainConfig


def add_flags(parser: argparse.ArgumentParser) -> None:
    """A flag for every setting, group by group, those without a group last."""
    types = get_type_hints(TrainConfig)
    groups = {name: parser.add_argument_group(name) for name in GROUPS}
    for one, setting in _listed():
        target = groups[setting.group] if setting.group else parser
        target.add_argument(f"--{one.name}", **_options(one, setting, types[one.name]))


def flag_table() -> str:
    """All flags as a table in Markdown, in the order of `--help`."""
    rows = ["| flag | default | meaning |", "| --- | --- | --- |"]
    for one, setting in _listed():
        flag = f"--{one.name}" + (f" {setting.metavar}" if setting.metavar else "")
        blank = any(one.default is none for none in (None, "", False, MISSING))
        shown = "" if blank else f"`{one.default}`"
        meaning = (setting.help or "").replace(" (default: %(default)s)", "")
        rows.append(f"| `{flag}` | {'required' if _required(one) else shown} | {meaning} |".replace("F|5%", "F\\|5%"))
    return "\n".join(rows)


def _listed() -> Iterator[tuple[Field, Setting]]:
    for group in (*GROUPS, None):
        yield from ((one, SETTINGS[one.name]) for one in fields(TrainConfig) if SETTINGS[one.name].group == group)


def _required(one: Field) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _options(one: Field, setting: Setting, kind: Any) -> dict[str, Any]:
    if kind is bool:
        return {"action": "store_true", "help": setting.help}
    options: dict[str, Any] = {"help": setting.help, "metavar": setting.metavar}
    options["type"] = setting.parse or next((number for number in (int, float) if kind in (number, number | None)), str)
    if _required(one):
        return {**options, "required": True}
    return {**options, "default": one.default if one.default_factory is MISSING else one.default_factory()}
