from pathlib import Path

import pytest
from trades import TINY, write_pairs


@pytest.fixture(scope="session")
def similar_pairs(tmp_path_factory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "similar.tsv")


@pytest.fixture(scope="session")
def trained(similar_pairs, tmp_path_factory) -> Path:
    """A small trained model's directory."""
    from model.train import main

    out = tmp_path_factory.mktemp("trained") / "run"
    arguments = ["--pairs", str(similar_pairs), "--out", str(out), "--prior", "0.33", "--contrastive", "1"]
    assert main([*arguments, *TINY, "--epochs", "6", "--dev", "20%"]) == 0
    return out
