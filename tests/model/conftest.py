"""Encoders that are dear to build, shared by all tests that only read them."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import pytest

BREWERY = "a brewery that sells craft lager to pubs"
TEXTS = (BREWERY, "a bank for farmers", "rockets for small satellites", "rents out tractors by the hour")


@pytest.fixture(scope="session")
def texts():
    return TEXTS


@pytest.fixture(scope="session")
def minilm():
    """The base encoder: do not train it."""
    from model.network.encoder import load_encoder
    from model.training.config import BASE_ENCODER

    return load_encoder(BASE_ENCODER)


@pytest.fixture(scope="session")
def scratch_directory(tmp_path_factory):
    """A Keras Hub directory: one layer, 32 wide, its vocabulary learnt from TEXTS."""
    from model.network.sources import load_source

    directory = tmp_path_factory.mktemp("scratch") / "encoder"
    load_source("scratch:L1-H32", TEXTS).save(directory)
    return directory
