"""Imports TensorFlow without its start-up chatter; for command lines, before anything else imports it."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3":
    # Its first lines are written before it reads that setting, straight to the file descriptor.
    _stderr = os.dup(2)
    _nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(_nowhere, 2)
        import tensorflow  # noqa: F401
    finally:
        os.dup2(_stderr, 2)
        os.close(_stderr)
        os.close(_nowhere)
