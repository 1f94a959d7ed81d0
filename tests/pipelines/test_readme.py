"""The example of pipelines/README.md is run as it stands there, but for its addresses."""

import re
from pathlib import Path

import pytest
from companies import MODEL
from encoder import POISON, vector_of

from index.open import open_index
from pipelines import services

README = Path(__file__).parents[2] / "pipelines" / "README.md"


@pytest.fixture
def run(tmp_path, encoder):
    """The example, with other words in place of some of its own, on an index of LanceDB."""
    (code,) = [
        code for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "EncodeTexts" in code
    ]
    places = {"localhost:8500": encoder.address, "build/my_index": str(tmp_path / "my_index")}
    assert all(place in code for place in places)  # the premise

    def run(**words: str) -> None:
        text = code
        for old, new in {**places, **words}.items():
            text = text.replace(old, new)
        exec(compile(text, str(README), "exec"), {})

    yield run
    services.forget(places["build/my_index"])


def test_the_example_takes_a_company_into_the_index(run, tmp_path, encoder):
    run()
    (found,) = [one for page in open_index(str(tmp_path / "my_index")).scan() for one in page]
    assert (found.id, found.version, found.model) == ("acme", 1, MODEL)
    assert found.embedding == pytest.approx(vector_of("Forges anvils"))
    assert not list(tmp_path.glob("my_index-dead_letters/*"))


def test_run_again_it_encodes_only_what_is_new(run, encoder):
    run()
    run()
    assert encoder.texts == ["Forges anvils"]
    run(**{"version=1": "version=2", "anvils": "hammers"})
    assert encoder.texts == ["Forges anvils", "Forges hammers"]


def test_what_the_encoder_refuses_is_a_dead_letter(run, tmp_path):
    run(anvils=POISON)
    (letters,) = (tmp_path / "my_index-dead_letters").glob("*.jsonl")
    assert POISON in letters.read_text() and "my register" in letters.read_text()
    assert open_index(str(tmp_path / "my_index")).status().live == 0
