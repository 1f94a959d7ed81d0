"""Resident memory of a process under attack, and how much it may grow."""

from __future__ import annotations

from pathlib import Path

GROWTH = 64 * 2**20  # bytes that it may grow by after the first fifth of the requests


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
