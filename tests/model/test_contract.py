import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from model.contract import COMPANY_FIELDS, INDUSTRY_FIRST, Contract, TextRecipe, fingerprint

ROOT = Path(__file__).parents[2]
COMPANY = {"name": "Foo", "industry": "Brewing", "country": "Peru", "description": "Sells beer."}
SETTINGS = {"text_recipe": INDUSTRY_FIRST, "lower_case": True, "max_tokens": 128}


def render(template, **changes):
    return TextRecipe(template).render({**COMPANY, **changes})


# text recipes


def test_fields_take_their_places_in_the_template():
    assert render("{name} ({country}): {industry}. {description}") == "Foo (Peru): Brewing. Sells beer."
    assert TextRecipe("{name} ({country}): {description}").fields == ["name", "country", "description"]


@pytest.mark.parametrize(
    ("template", "missing", "text"),
    [
        ("{industry}. {description}", "industry", "Sells beer."),
        ("{name} ({country}): {description}", "country", "Foo Sells beer."),  # " (" and "):" go with the country
        ("Of {country}, in {industry}. {description}", "country", "in Brewing. Sells beer."),
        ("Of {country}, in {industry}. {description}", "industry", "Of Peru, Sells beer."),
        ("{industry}. {description}", "description", "Brewing."),
    ],
)
def test_a_missing_field_takes_its_punctuation_and_the_words_before_it(template, missing, text):
    assert missing in COMPANY
    assert TextRecipe(template).render({name: COMPANY[name] for name in COMPANY if name != missing}) == text


def test_a_company_without_any_field_of_the_recipe_is_an_empty_text():
    assert TextRecipe("In {sector}: {website}!").render(COMPANY) == ""


@pytest.mark.parametrize("blank", [None, "", " \n\t", [], [" ", None]])
def test_a_blank_field_is_a_missing_one(blank):
    assert render(INDUSTRY_FIRST) == "Brewing. Sells beer."
    assert render(INDUSTRY_FIRST, industry=blank) == "Sells beer."


def test_a_full_stop_is_not_doubled():
    assert render("{name}. {description}", name="Foo Inc.") == "Foo Inc. Sells beer."
    assert render("{name}. {description}", name="Foo Inc") == "Foo Inc. Sells beer."
    assert render("{name}.) {description}", name="Foo Inc.") == "Foo Inc.) Sells beer."


def test_tags_are_joined_and_blank_ones_left_out():
    assert render("{tags}: {description}", tags=["beer", " craft  beer ", "", None]) == "beer, craft beer: Sells beer."
    assert render("{tags}", tags=("beer",)) == "beer"


def test_whitespace_inside_a_field_collapses():
    assert render("{name}", name="  Foo \n\t Inc\u00a0 ") == "Foo Inc"


def test_a_number_is_written_out():
    assert render("{name}", name=42) == "42"


@pytest.mark.parametrize(
    "template",
    [
        "",
        "a company",  # no field
        "{ceo}: {description}",  # no such field
        "{name} {description",
        "{name} } {description}",
        "{{description}}",
        "{} {description}",
        "{description} and so on",  # would be dropped in silence: no field owns it
    ],
)
def test_an_unusable_recipe_is_refused_in_one_line(template):
    with pytest.raises(ValueError) as refused:
        TextRecipe(template)
    message = str(refused.value)
    assert "\n" not in message
    assert repr(template) in message
    assert all(field in message for field in COMPANY_FIELDS)


# the contract


def test_a_contract_survives_json():
    contract = Contract("0123456789abcdef", 384, 128, INDUSTRY_FIRST)
    assert Contract.from_json(contract.to_json()) == contract
    assert Contract.from_json(contract.to_json().encode()) == contract
    assert contract.recipe.render(COMPANY) == "Brewing. Sells beer."


def test_keys_of_a_later_contract_are_ignored():
    contract = Contract("0123456789abcdef", 384, 128, INDUSTRY_FIRST)
    later = {**json.loads(contract.to_json()), "language": "en"}
    assert Contract.from_json(json.dumps(later)) == contract


# the fingerprint


def test_a_fingerprint_is_sixteen_hex_digits_and_the_same_for_ever():
    # the first 16 digits of sha256(sha256("w") + "a\nb" + '{"max_tokens": 3}'): stored vectors are known by it
    found = fingerprint([b"w"], ["a", "b"], {"max_tokens": 3})
    assert re.fullmatch("[0-9a-f]{16}", found)
    assert found == "99a8489e37be3c4d"


@pytest.mark.parametrize(
    ("weights", "vocabulary", "settings"),
    [
        ([b"ab", b"d"], ["x", "y"], SETTINGS),  # one byte
        ([b"c", b"ab"], ["x", "y"], SETTINGS),  # their order
        ([b"a", b"bc"], ["x", "y"], SETTINGS),  # the border between two
        ([b"ab", b"c"], ["x", "z"], SETTINGS),
        ([b"ab", b"c"], ["y", "x"], SETTINGS),
        ([b"ab", b"c"], ["x", "y"], {**SETTINGS, "text_recipe": "{description}"}),
        ([b"ab", b"c"], ["x", "y"], {**SETTINGS, "lower_case": False}),
        ([b"ab", b"c"], ["x", "y"], {**SETTINGS, "max_tokens": 127}),
    ],
)
def test_whatever_decides_a_vector_changes_the_fingerprint(weights, vocabulary, settings):
    before = fingerprint([b"ab", b"c"], ["x", "y"], SETTINGS)
    assert before == fingerprint(iter([b"ab", b"c"]), ("x", "y"), dict(reversed(SETTINGS.items())))
    assert fingerprint(weights, vocabulary, settings) != before


# its weight


def test_the_contract_is_imported_without_heavy_libraries():
    script = "import sys, model.contract; print(*sorted({'tensorflow', 'keras', 'numpy'} & set(sys.modules)), 'done')"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["done"]
