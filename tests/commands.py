"""How several tests ask a command line: through its `main`, with what it says caught."""

from collections.abc import Callable

import pytest


def answer(capture: pytest.CaptureFixture[str], main: Callable[[list[str]], int], *arguments: object):
    """Exit code, stdout, stderr; argparse leaves by SystemExit."""
    capture.readouterr()  # what was said before the command is not its answer
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        code = leaving.code
    said = capture.readouterr()
    return code, said.out, said.err


def refusal(capture: pytest.CaptureFixture[str], main: Callable[[list[str]], int], *arguments: object) -> str:
    """What a mistake is answered with: one line on stderr, which comes back without `error: `, and exit code 2."""
    code, stdout, stderr = answer(capture, main, *arguments)
    assert (code, stdout) == (2, ""), stderr
    assert stderr.startswith("error: ") and stderr.endswith("\n") and stderr.count("\n") == 1, stderr
    return stderr.removeprefix("error: ").rstrip("\n")
