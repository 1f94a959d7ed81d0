"""A version tried out by a process of its own: where a CPU's arithmetic kills, it must not be the server it kills.

A CPU may claim instructions that it does not have, and oneDNN believes it; float32 does without those.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from common.command import Parser, exit_code
from model.contract import FLOAT32
from model.errors import ExportError
from model.export import EXTRA, FACTS

SECONDS = 300  # for all of it; it takes some ten
LOOK_SECONDS = 0.2  # between two looks at whether it is still wanted
ADVICE = {
    signal.SIGILL: "this CPU lacks instructions that oneDNN takes it to have; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 "
    "(or less, AVX2 say) for the server, or export the model with --precision float32",
    signal.SIGKILL: "was there too little memory?",
    signal.SIGALRM: f"it was not done after {SECONDS} s",
}


def prove(directory: Path) -> None:
    """Raises ExportError unless the version is complete, loads, and reproduces its golden vectors."""
    if precision(directory) != FLOAT32:
        prove_apart(directory)
        return
    from serving.server.models import loaded  # and with it TensorFlow

    loaded.prove(directory)


def precision(directory: Path) -> str:
    """Of the version's matrix products; float32 where that cannot be read, and whoever loads it will say why."""
    try:
        facts = json.loads((directory / EXTRA / FACTS).read_bytes())
    except (OSError, ValueError):
        return FLOAT32
    return str(facts.get("precision", FLOAT32)) if isinstance(facts, dict) else FLOAT32


def prove_apart(directory: Path, max_texts: int = 256, check: Callable[[], None] = lambda: None) -> None:
    """As `prove`, in a process with this one's environment; whatever `check` raises meanwhile ends it."""
    # The child holds the end that is read from, and ends when nobody holds the other, however this process ended.
    held, holding = os.pipe()
    command = [sys.executable, "-m", "serving.server.models.proof", str(directory), "--max_texts", str(max_texts)]
    try:
        child = subprocess.Popen(
            command, stdin=held, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
        try:
            said = _last_words(child, check)
        finally:
            child.kill()
            child.communicate()
    finally:
        os.close(held)
        os.close(holding)
    if child.returncode < 0:
        killer = signal.Signals(-child.returncode)
        advice = ADVICE.get(killer, "export the model with --precision float32")
        raise ExportError(f"the process that tried it out ({precision(directory)}) died of {killer.name}: {advice}")
    if child.returncode:
        raise ExportError(
            said.removeprefix("error: ") or f"the process that tried it out ended with {child.returncode}"
        )


def _last_words(child: subprocess.Popen[str], check: Callable[[], None]) -> str:
    while True:
        check()
        try:
            _, said = child.communicate(timeout=LOOK_SECONDS)
            return said.strip().rpartition("\n")[2]
        except subprocess.TimeoutExpired:
            continue


def _end_with_stdin() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(1)


def _try(directory: Path, max_texts: int) -> None:
    from serving.server.compute.threads import one_core_a_run

    one_core_a_run()
    from serving.server.models.loaded import LoadedModel

    LoadedModel(directory, compile=False, max_texts=max_texts)


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m serving.server.models.proof", description="Load a version as a server does, and end."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--max_texts", type=int, default=256, help="in one run (default: %(default)s)")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: _try(arguments.directory, arguments.max_texts))


if __name__ == "__main__":
    signal.alarm(SECONDS)  # kills it wherever it hangs
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.exit(main())
