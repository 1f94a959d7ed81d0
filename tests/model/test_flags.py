"""A training run's settings are defined once: flags, defaults and documentation are made of them."""

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from model.train import parser
from model.training.config import SETTINGS, TrainConfig
from model.training.flags import flag_table

README = Path(__file__).parents[2] / "model" / "README.md"


def test_the_defaults_of_the_flags_are_those_of_the_settings():
    assert len(fields(TrainConfig)) > 20
    assert TrainConfig(**vars(parser().parse_args(["--pairs", "p", "--out", "o"]))) == TrainConfig("p", "o")


def test_a_flag_has_the_type_of_its_setting():
    given = ["--pairs", "p", "--out", "o", "--epochs", "3", "--learning_rate", "1e-3", "--projection", "8", "--frozen"]
    config = TrainConfig(**vars(parser().parse_args([*given, "--labels", "10%", "--columns", "left=A"])))
    assert (config.epochs, config.learning_rate, config.projection, config.frozen) == (3, 1e-3, 8, True)
    assert (config.labels, config.columns) == (0.1, {"left": "A"})


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.least is not None])
def test_a_setting_below_its_least_value_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"{name} must be (at least|from) "):
        TrainConfig("p", "o", **{name: SETTINGS[name].least - 1})


def test_the_readme_has_the_table_of_all_flags():
    required = {one.name for one in fields(TrainConfig) if one.default is MISSING and one.default_factory is MISSING}
    assert required == {"pairs", "out"}
    assert "| `--epochs` | `2` |" in flag_table() and "| `--pairs` | required |" in flag_table()
    assert flag_table() in README.read_text(encoding="utf-8")
