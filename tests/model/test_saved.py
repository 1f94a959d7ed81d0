import json

import numpy as np
import pytest

from model.contract import TextRecipe
from model.network.encoder import load_encoder
from model.network.pair_head import PairHead
from model.network.saved import PauseModel, open_model, save_model
from model.network.sources import EncoderError

RECIPE = TextRecipe("{industry}. {description}")


def built(directory, projection=None, names=("rival", "buyer")):
    encoder = load_encoder(str(directory), max_tokens=20, projection=projection)
    return PauseModel(encoder, RECIPE, PairHead(encoder.dimension, len(names)), names)


def logits(model, texts):
    vectors = model.encoder.encode(texts, project=True)
    return np.asarray(model.head(vectors[:-1], vectors[1:]))


@pytest.mark.parametrize("projection", [None, 32, 8])
def test_a_model_is_opened_as_it_was_saved(tmp_path, scratch_directory, texts, projection):
    model = built(scratch_directory, projection)
    for variable in [*model.encoder.trainable_variables, *model.head.trainable_variables]:
        variable.assign(variable + 0.01)  # a model that was trained is no longer the one it came from
    save_model(model, tmp_path / "model")
    opened = open_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(opened.encoder.encode(texts), model.encoder.encode(texts))
    np.testing.assert_array_equal(logits(opened, texts), logits(model, texts))
    assert np.abs(logits(opened, texts) - logits(built(scratch_directory, projection), texts)).max() > 1e-3
    assert opened.names == ("rival", "buyer")
    assert opened.recipe == RECIPE
    assert opened.contract == model.contract
    assert opened.contract.max_tokens == 20
    assert opened.contract.dimension == (projection or 32)


def test_a_model_without_a_head_is_saved_and_opened_too(tmp_path, scratch_directory):
    model = PauseModel(load_encoder(str(scratch_directory), projection=8), RECIPE)
    save_model(model, tmp_path / "model")
    opened = open_model(str(tmp_path / "model"))
    assert opened.head is None
    assert opened.names == ()
    assert opened.contract == model.contract


def test_saving_again_replaces_the_former_model(tmp_path, scratch_directory, texts):
    model = built(scratch_directory, projection=32)
    save_model(model, tmp_path / "model")
    before = model.contract.fingerprint
    model.encoder.projection.kernel.assign(np.flip(np.eye(32, dtype=np.float32), axis=0))
    save_model(model, tmp_path / "model")
    opened = open_model(str(tmp_path / "model"))
    assert opened.contract.fingerprint == model.contract.fingerprint != before


def test_an_encoder_source_is_opened_without_a_head_and_encodes_descriptions(scratch_directory):
    opened = open_model(str(scratch_directory))
    assert opened.head is None
    assert opened.recipe.template == "{description}"
    assert opened.contract.dimension == 32


def test_the_body_of_a_saved_model_is_a_source_of_its_own(tmp_path, scratch_directory, texts):
    model = built(scratch_directory)
    save_model(model, tmp_path / "model")
    body = load_encoder(str(tmp_path / "model" / "encoder"), max_tokens=20)
    np.testing.assert_array_equal(body.encode(texts), model.encoder.encode(texts))


def test_a_run_that_has_not_ended_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"config": {}, "data": {}}))
    (tmp_path / "history.jsonl").write_text("")
    with pytest.raises(EncoderError) as refused:
        open_model(str(tmp_path))
    message = str(refused.value)
    assert repr(str(tmp_path)) in message
    assert "has not ended" in message
    assert "run the same model.train command again" in message
    assert "\n" not in message


def test_a_model_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(EncoderError, match="no such directory"):
        open_model(str(tmp_path / "nothing"))
