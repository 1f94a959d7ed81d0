"""Which of the instructions that this CPU shows can be used. Nothing heavy is imported: every process that multiplies
matrices asks here first, the peers of the benchmarks in their own environment too."""

from __future__ import annotations

import logging
import os
from collections.abc import MutableMapping
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
CAP = "ONEDNN_MAX_CPU_ISA"  # TensorFlow, torch and OpenVINO multiply by oneDNN, which reads it before its first product
WITHOUT_TILES = "AVX512_CORE_BF16"
TILE_LEAF = 0x1D  # of CPUID: how large a tile of AMX is


def cap_instruction_set(environment: MutableMapping[str, str] = os.environ, cpuinfo: Path = CPUINFO) -> None:
    """Keeps oneDNN off instructions that would kill the process; what a person has chosen stays."""
    if CAP in environment:
        return
    try:
        told = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # no Linux
    fault = hidden_tiles(told)
    if fault:
        environment[CAP] = WITHOUT_TILES
        logging.getLogger(__name__).warning("%s; %s is set to %s", fault, CAP, WITHOUT_TILES)


def hidden_tiles(cpuinfo: str) -> str | None:
    """What is wrong with AMX on this CPU, or None.

    Some hypervisors show its flags and end CPUID before the leaf with the size of its tiles. oneDNN reads zero there,
    configures tiles of no size, and the first product of bfloat16 or int8 dies of SIGILL.
    """
    for processor in cpuinfo.split("\n\n"):
        facts = dict(_fact(line) for line in processor.splitlines())
        level = facts.get("cpuid level", "")
        if "amx_tile" in facts.get("flags", "").split() and level.isdecimal() and int(level) < TILE_LEAF:
            return f"this CPU shows AMX but not its tiles (cpuid level {level}, {TILE_LEAF} would tell)"
    return None


def _fact(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
