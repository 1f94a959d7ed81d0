"""What a model may be called, wherever the name comes from: a word, and never a path."""

import grpc
import pytest
from commands import refusal
from tensorflow_serving.config.model_server_config_pb2 import ModelConfig, ModelServerConfig

from common.command import exit_code
from serving.server.api.status import Failure
from serving.server.config.options import parse
from serving.server.metrics import Metrics
from serving.server.models.registry import Models
from serving.server.models.versions import Loading, Versions

LOADING = Loading(compile=False, max_texts=256, threads=1, retries=0, retry_seconds=0.0)
PATHS = ["/etc", "../up", "a/b", "..", ".", "a\\b", "~", "$HOME", "a b", "a\n", "ü", "\0", "%2e%2e", "a:b"]
WORDS = ["pause", "Pause-2", "v1.5", "_", "...", "-x", "9"]


def configs(name, base) -> ModelServerConfig:
    made = ModelServerConfig()
    made.model_config_list.config.add(name=name, base_path=str(base), model_platform="tensorflow")
    return made


@pytest.fixture
def models(base):
    made = Models(configs("pause", base), LOADING, 0, Metrics())
    yield made
    made.stop()


@pytest.fixture
def broken(tmp_path):
    """A base path whose version 7 does not load: what was copied of it is then removed."""
    (tmp_path / "broken" / "7").mkdir(parents=True)
    return tmp_path / "broken"


def test_a_reload_with_a_path_for_a_name_removes_nothing(models, victim, broken):
    with pytest.raises(Failure) as caught:
        models.reload(configs(str(victim.parent), broken))
    assert (victim / "letters.txt").read_text() == "kept"
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert str(victim.parent) in caught.value.message and "a-z" in caught.value.message


@pytest.mark.parametrize("name", PATHS)
def test_a_name_that_is_no_word_is_refused_by_reload_flag_and_file(models, base, tmp_path, capsys, name):
    with pytest.raises(Failure, match="letters") as caught:
        models.reload(configs(name, base))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    flags = [f"--model_name={name}", f"--model_base_path={base}"]
    file = tmp_path / "models.config"
    file.write_text(str(configs(name, base)))
    for given in (flags, [f"--model_config_file={file}"]):
        assert "letters" in refusal(capsys, lambda argv: exit_code(lambda: parse(argv)), *given)


@pytest.mark.parametrize("name", WORDS)
def test_a_word_is_taken(base, name):
    (model,) = parse([f"--model_name={name}", f"--model_base_path={base}"]).models.model_config_list.config
    assert model.name == name


def test_the_folder_of_copies_is_never_outside_of_the_scratch_folder(tmp_path, base, victim):
    """Even where a name got past the checks above."""
    for name in (str(victim.parent), "../victim"):
        config = ModelConfig(name=name, base_path=str(base))
        with pytest.raises(ValueError, match="letters"):
            Versions(config, LOADING, Metrics(), tmp_path / "scratch")
    assert (victim / "letters.txt").read_text() == "kept"
