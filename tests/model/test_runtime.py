import subprocess
import sys


def test_tensorflow_starts_without_a_word_and_errors_are_still_told_afterwards():
    code = "import model.runtime, sys, tensorflow; print('told', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "" and done.stderr == "told\n"
