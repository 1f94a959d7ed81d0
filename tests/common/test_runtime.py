import os
import subprocess
import sys


def test_tensorflow_starts_without_a_word_and_errors_are_still_told_afterwards():
    code = "import common.runtime, sys, tensorflow; print('told', file=sys.stderr)"
    quiet = {**os.environ, "ONEDNN_MAX_CPU_ISA": "ALL"}  # on some CPUs a line tells what is set instead
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=quiet)
    assert done.stdout == "" and done.stderr == "told\n"


def test_products_of_bfloat16_live_on_any_cpu_where_nobody_has_chosen_its_instructions():
    code = """
from common.runtime import tensorflow as tf
left, right = (tf.ones([256, 384], tf.bfloat16) for _ in range(2))
print(float(tf.function(tf.matmul)(left, right, transpose_b=True)[0, 0]))
"""
    unset = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=unset)
    assert done.returncode == 0, f"died of signal {-done.returncode}"
    assert done.stdout == "384.0\n"  # 384 x 1 x 1, which bfloat16 holds exactly
