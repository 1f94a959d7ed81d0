"""What is left to do for a company, given what the index has of it."""

import pytest

from index.base import Known
from index.document import Document, text_hash
from model.contract import TextRecipe
from pipelines.records import Company
from pipelines.transforms.batch import Task
from pipelines.transforms.skip_unchanged import newest, plan

RECIPE, MODEL = TextRecipe("{industry}. {description}"), "feedfacefeedface"


def company(id="a", version=2, **fields):
    return Company(Document(id, version, **{"description": "Makes anvils", **fields}), "source")


def order(company):
    return company.document.order


def known(version=1, text="Makes anvils", deleted=False, model=MODEL, like=None):
    fields = (like or company()).document.fields_hash
    return {"a": Known(version, text_hash(text), fields, model, deleted)}


def test_of_one_id_the_newest_is_kept_and_of_equals_the_same_one_in_any_order():
    one, other = sorted([company("b", 5, name="one"), company("b", 5, name="other")], key=order)
    for equals in ([one, other], [other, one]):
        batch = [company("a", 1, name="x"), *equals, company("a", 3), company("a", 2)]
        assert newest(batch) == [company("a", 3), other]
    deleted = Company(Document.tombstone("b", 5), "s")
    assert newest([deleted, one]) == newest([one, deleted]) == [deleted]


def test_a_new_company_is_encoded_by_the_recipe():
    task = plan(company(industry="Metal"), {}, RECIPE, MODEL)
    assert isinstance(task, Task)
    assert task.text == "Metal. Makes anvils"
    assert (task.document.model, task.document.text_hash) == (MODEL, text_hash(task.text))
    assert not task.moves_on


def test_older_is_stale_and_equal_is_unchanged():
    assert plan(company(version=2), known(version=3), RECIPE, MODEL) == "stale"
    assert plan(company(version=2), known(version=2), RECIPE, MODEL) == "unchanged"
    deleted = Company(Document.tombstone("a", 2), "s")
    assert plan(deleted, known(version=2, deleted=True), RECIPE, MODEL) == "unchanged"


def test_of_one_version_the_same_content_stays_in_any_order():
    one, other = sorted([company(name="one"), company(name="other")], key=order)
    assert plan(one, known(version=2, like=other), RECIPE, MODEL) == "stale"
    assert plan(other, known(version=2, like=one), RECIPE, MODEL).document.name == other.document.name
    deleted = Company(Document.tombstone("a", 2), "s")
    assert plan(deleted, known(version=2), RECIPE, MODEL) == Task(deleted.document, "s")
    assert plan(company(), known(version=2, deleted=True), RECIPE, MODEL) == "stale"


def test_with_force_an_equal_version_is_written_again_and_only_another_text_is_encoded():
    def forced(company, stored):
        return plan(company, stored, RECIPE, MODEL, force=True)

    assert forced(company(version=2), known(version=3)) == "stale"
    same = forced(company(), known(version=2))
    assert (same.text, same.moves_on) == (None, False)
    for fields in ({"sector": "New"}, {"sector": "Newer"}, {"name": "n"}):  # whatever the order of their hashes
        assert forced(company(**fields), known(version=2)).text is None
    assert forced(company(industry="Metal"), known(version=2)).text == "Metal. Makes anvils"
    assert forced(company(), known(version=2, deleted=True)).text == "Makes anvils"
    assert forced(Company(Document.tombstone("a", 2), "s"), known(version=2, deleted=True)).document.deleted


def test_a_task_gives_back_the_company_that_it_was_made_of():
    for arrived in (company(sector="Metal"), Company(Document.tombstone("a", 2), "s")):
        task = plan(arrived, {}, RECIPE, MODEL)
        assert task.company == arrived


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
