"""What is left to do for a company, given what the index has of it."""

import pytest

from index.base import Known
from index.document import Document, text_hash
from model.contract import TextRecipe
from pipelines.company import Company
from pipelines.unchanged import Task, newest, plan

RECIPE, MODEL = TextRecipe("{industry}. {description}"), "feedfacefeedface"


def company(id="a", version=2, **fields):
    return Company(Document(id, version, **{"description": "Makes anvils", **fields}), "source")


def known(version=1, text="Makes anvils", deleted=False, model=MODEL, like=None):
    fields = (like or company()).document.fields_hash
    return {"a": Known(version, text_hash(text), fields, model, deleted)}


def test_of_one_id_the_newest_is_kept_and_of_equals_the_first():
    batch = [
        company("a", 1, name="x"),
        company("b", 5, name="first"),
        company("a", 3),
        company("a", 2),
        company("b", 5),
    ]
    assert newest(batch) == [company("a", 3), company("b", 5, name="first")]


def test_a_new_company_is_encoded_by_the_recipe():
    task = plan(company(industry="Metal"), {}, RECIPE, MODEL)
    assert isinstance(task, Task)
    assert task.text == "Metal. Makes anvils"
    assert (task.document.model, task.document.text_hash) == (MODEL, text_hash(task.text))
    assert not task.moves_on


def test_older_is_stale_and_equal_is_unchanged_whatever_it_holds():
    assert plan(company(version=2), known(version=3), RECIPE, MODEL) == "stale"
    assert plan(company(version=2, description="Other"), known(version=2), RECIPE, MODEL) == "unchanged"
    assert plan(Company(Document.tombstone("a", 2), "s"), known(version=2), RECIPE, MODEL) == "unchanged"


def test_a_newer_version_of_the_same_content_moves_on_without_encoding():
    task = plan(company(), known(), RECIPE, MODEL)
    assert (task.text, task.moves_on, task.document.version) == (None, True, 2)


def test_changed_fields_around_an_unchanged_text_are_written_without_encoding():
    task = plan(company(sector="New"), known(), RECIPE, MODEL)
    assert (task.text, task.moves_on, task.document.sector) == (None, False, "New")


@pytest.mark.parametrize("stored", [known(text="Other"), known(model="0123456789abcdef"), known(deleted=True)])
def test_another_text_another_model_or_a_tombstone_before_it_means_encoding(stored):
    assert plan(company(), stored, RECIPE, MODEL).text == "Makes anvils"


def test_a_delete_is_written_as_it_is():
    assert plan(Company(Document.tombstone("a", 2), "s"), known(), RECIPE, MODEL) == Task(
        Document.tombstone("a", 2), "s"
    )
    assert plan(Company(Document.tombstone("z", 2), "s"), known(), RECIPE, MODEL).text is None
