"""What the contract suite cannot see from outside: the writes that come of a call."""

from dataclasses import replace

from companies import company, statuses, vector

from index.document import Document
from index.merge_versions import describe, merge_versions


def test_one_write_an_id_however_many_documents():
    outcomes, changed = merge_versions([company("a", 1), company("a", 3), company("a", 2)], {}, {}, 4)
    assert statuses(outcomes) == ["indexed", "indexed", "stale"]
    assert [one.version for one in changed] == [3]


def test_a_kept_vector_may_come_from_the_same_call():
    outcomes, changed = merge_versions([company("a", 1, (0, 1, 0, 0)), company("a", 2, None, sector="new")], {}, {}, 4)
    assert statuses(outcomes) == ["indexed", "indexed"]
    assert (changed[0].sector, changed[0].embedding.tolist()) == ("new", [0, 1, 0, 0])


def test_a_vector_is_not_kept_across_a_delete_in_the_same_call():
    stored = company("a", 1)
    documents = [Document.tombstone("a", 2), company("a", 3, None)]
    outcomes, changed = merge_versions(documents, {"a": describe(stored)}, {"a": vector(1, 0, 0, 0)}, 4)
    assert statuses(outcomes) == ["deleted", "failed"]
    assert [one.version for one in changed] == [2]


def test_a_vector_of_another_text_or_model_is_not_kept():
    stored = {"a": describe(company("a", 1))}
    other_text, other_model = replace(company("a", 2, None), text_hash="x"), replace(company("a", 2, None), model="x")
    for document in (other_text, other_model):
        (outcome,), changed = merge_versions([document], stored, {"a": vector(1, 0, 0, 0)}, 4)
        assert (outcome.status, outcome.reason.split(":")[0], changed) == ("failed", "embedding", [])
