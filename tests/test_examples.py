"""The data that everybody tries first: complete, consistent, and readable by the code that trains on it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from model.contract import COMPANY_FIELDS, INDUSTRY_FIRST, TextRecipe
from model.data.companies import read_companies
from model.data.pairs import read_pairs
from model.data.variants import of_companies

EXAMPLES = Path(__file__).parents[1] / "examples"
# A sentence ends before a space and a capital, a digit or a quote; "St. Louis" and "U.S. banks" are no ends.
SENTENCE_END = re.compile(r"(?<!\bSt)(?<!\bDr)(?<!\bU\.S)(?<!\bU\.K)[.!?][\"')]?\s+(?=[\"'(]?[A-Z0-9])")


@pytest.fixture(scope="module")
def companies():
    return read_companies(EXAMPLES / "companies.jsonl")


@pytest.fixture(scope="module")
def pairs():
    return read_pairs(EXAMPLES / "pairs.tsv")


# companies


def test_there_are_companies_enough_and_each_has_an_id_of_its_own(companies):
    lines = (EXAMPLES / "companies.jsonl").read_text(encoding="utf-8").split("\n")
    ids = [json.loads(line)["id"] for line in lines if line]
    assert len(ids) >= 300
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert sorted(ids) == sorted(companies)
    assert max(len(name.encode()) for name in ids) <= 512


def test_companies_come_from_many_industries(companies):
    industries = Counter(company["industry"] for company in companies.values() if company.get("industry"))
    assert len(industries) >= 25
    assert max(industries.values()) <= 0.2 * len(companies)  # no industry rules the rest


def test_companies_have_the_fields_of_the_contract_and_no_others(companies):
    known = {"id", *COMPANY_FIELDS}
    assert {field for company in companies.values() for field in company} <= known
    assert [name for name, company in companies.items() if not company.get("name")] == []


def test_some_records_lack_optional_fields_as_real_ones_do(companies):
    assert any(not company.get("industry") for company in companies.values())


def test_every_description_has_two_to_four_sentences(companies):
    assert len(SENTENCE_END.split("It brews. It sells in St. Louis! Does it? 3 pubs.")) == 4
    counts = {name: len(SENTENCE_END.split(company["description"])) for name, company in companies.items()}
    assert {name: count for name, count in counts.items() if not 2 <= count <= 4} == {}


def test_no_two_companies_are_described_alike(companies):
    descriptions = Counter(" ".join(company["description"].split()) for company in companies.values())
    assert [text for text, count in descriptions.items() if count > 1] == []


# pairs


def test_there_are_labelled_pairs_enough_and_unlabelled_ones_beside_them(pairs):
    assert pairs.names == ("similar",)
    assert pairs.labels.sum() >= 600
    assert (~pairs.labelled).any()
    assert not pairs.has_negatives
    assert not pairs.multi_label


def test_pairs_speak_of_companies_that_are_there(pairs, companies):
    assert sorted(set(pairs.items) - set(companies)) == []


def test_no_pair_occurs_twice_in_either_direction_nor_with_itself(pairs):
    seen = Counter(frozenset(ends) for ends in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert [ends for ends, count in seen.items() if count > 1] == []
    assert [ends for ends in seen if len(ends) == 1] == []


def test_every_company_of_a_pair_has_a_text(pairs, companies):
    variants = of_companies(pairs.items, companies, TextRecipe(INDUSTRY_FIRST))
    assert len(variants.of_item) == len(pairs.items)
    poorer = [len(texts) > 1 for texts in variants.of_item]
    assert sum(poorer) > 0.9 * len(poorer)  # an industry to leave out


def test_the_readme_counts_right(pairs, companies):
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    numbers = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", readme)}
    assert {len(companies), len(pairs), int(pairs.labels.sum()), int((~pairs.labelled).sum())} <= numbers
