import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from companies import company

from common.errors import InputError
from index.document import Document, Filters, fold, text_hash
from index.merge_versions import describe

ROOT = Path(__file__).parents[2]


def test_text_hash_is_the_first_16_digits_of_sha256():
    assert text_hash("Brewing. Beer") == hashlib.sha256(b"Brewing. Beer").hexdigest()[:16]


def test_text_hash_takes_half_a_surrogate_pair():
    assert text_hash("\ud800") != text_hash("\ud801")


@pytest.mark.parametrize("field", ["name", "description", "sector", "industry", "country", "website"])
def test_every_field_changes_the_fields_hash(field):
    assert company("a").fields_hash != replace(company("a"), **{field: "changed"}).fields_hash


def test_tags_change_the_fields_hash_and_version_and_vector_do_not():
    one = company("a", tags=("x", "y"))
    assert one.fields_hash != replace(one, tags=("x y",)).fields_hash
    assert one.fields_hash == replace(one, version=9, indexed_at=5, embedding=None).fields_hash


def test_a_value_that_wanders_to_the_next_field_changes_the_fields_hash():
    assert company("a", sector="x", industry="").fields_hash != company("a", sector="", industry="x").fields_hash


def test_a_filter_that_is_one_string_is_a_mistake():
    with pytest.raises(TypeError, match="sector takes several"):
        Filters(sector="Energy")


def test_a_filter_takes_a_list():
    assert Filters(tags=["a", "b"]) == Filters(tags=("a", "b"))


def test_a_filter_outside_unicode_is_refused():
    with pytest.raises(InputError, match="filter country"):
        Filters(country=("\udc00",))


@pytest.mark.parametrize(
    ("name", "typed"), [("Nestlé  S.A.", "nestle s.a."), ("STRASSE", "strasse"), ("Straße", "strasse"), (" Å ", "a")]
)
def test_a_folded_name_is_as_people_type_it(name, typed):
    assert fold(name) == typed


def test_the_room_imports_neither_tensorflow_nor_a_store_until_one_is_opened():
    heavy = {"tensorflow", "keras", "lancedb", "pyarrow", "elasticsearch"}
    script = f"import sys, index.document, index.open, index.__main__; print('ran', *{heavy!r} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["ran"]


def test_the_embedded_store_does_not_import_tensorflow():
    script = "import sys, index.lance.store; print('lancedb' in sys.modules, 'tensorflow' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]


def test_a_newer_version_is_greater_and_of_one_version_the_tombstone_then_the_greater_hash():
    one, other = sorted([company("a", 2), company("a", 2, name="Another")], key=lambda each: each.fields_hash)
    assert one.fields_hash < other.fields_hash
    assert company("a", 1).order < one.order < other.order < Document.tombstone("a", 2).order < company("a", 3).order
    assert [describe(each).order for each in (one, Document.tombstone("a", 2))] == [
        one.order,
        Document.tombstone("a", 2).order,
    ]
