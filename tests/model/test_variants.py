import numpy as np
import pytest

from model.contract import TextRecipe
from model.data.pairs import DataError
from model.data.variants import of_companies, of_texts

RECIPE = TextRecipe("{name}, {industry}. {description}")
COMPANIES = {
    "foo": {"id": "foo", "name": "Foo", "industry": "Brewing", "description": "Sells beer."},
    "bar": {"id": "bar", "description": "Lends money."},
    "twin": {"id": "twin", "description": "Sells beer."},
}


def texts_of(variants, item):
    return [variants.texts[text] for text in variants.of_item[item]]


def test_a_company_appears_whole_first_then_without_each_field_then_without_all():
    assert texts_of(of_companies(["foo"], COMPANIES, RECIPE), 0) == [
        "Foo, Brewing. Sells beer.",
        "Brewing. Sells beer.",
        "Foo, Sells beer.",
        "Sells beer.",
    ]


def test_a_company_without_optional_fields_appears_in_one_way():
    assert texts_of(of_companies(["bar"], COMPANIES, RECIPE), 0) == ["Lends money."]


def test_no_text_is_kept_twice():
    # the bare text of foo is the whole text of its twin
    variants = of_companies(["foo", "twin"], COMPANIES, RECIPE)
    assert len(set(variants.texts)) == len(variants.texts) == 4
    assert variants.of_item[0][3] == variants.of_item[1][0]
    single = of_companies(["foo"], COMPANIES, TextRecipe("{industry}. {description}"))
    assert texts_of(single, 0) == ["Brewing. Sells beer.", "Sells beer."]  # "without one" is "without all"


def test_a_variant_without_any_text_is_left_out():
    variants = of_companies(["foo"], COMPANIES, TextRecipe("{name} {industry}"))
    assert texts_of(variants, 0) == ["Foo Brewing", "Brewing", "Foo"]


def test_a_company_that_the_recipe_leaves_without_text_is_refused():
    with pytest.raises(DataError, match="company 'bar' has none of the fields of the text recipe"):
        of_companies(["foo", "bar"], COMPANIES, TextRecipe("{name}, {industry}"))


def test_an_unknown_company_is_refused_by_its_id():
    with pytest.raises(DataError, match=r"2 companies that the companies file lacks, .*'nobody'"):
        of_companies(["foo", "nobody", "bar", "noone"], COMPANIES, RECIPE)


def test_plain_texts_appear_as_they_are():
    variants = of_texts(["one", "two"])
    assert [texts_of(variants, item) for item in (0, 1)] == [["one"], ["two"]]
    drawn = variants.draw(np.array([1, 0, 1]), 1.0, np.random.default_rng(0))
    assert drawn.tolist() == [1, 0, 1]


# draw

ITEMS = np.array([0, 1, 0, 0, 1, 2, 0])


@pytest.fixture
def variants():
    return of_companies(["foo", "bar", "twin"], COMPANIES, RECIPE)


def test_a_share_of_zero_draws_whole_records(variants):
    for seed in range(20):
        drawn = variants.draw(ITEMS, 0.0, np.random.default_rng(seed))
        np.testing.assert_array_equal(drawn, variants.whole(ITEMS))
    assert [variants.texts[text] for text in variants.whole(np.array([1, 0]))] == [
        "Lends money.",
        "Foo, Brewing. Sells beer.",
    ]


def test_a_share_of_one_draws_every_poorer_text_and_never_the_whole(variants):
    drawn = {int(variants.draw(ITEMS, 1.0, np.random.default_rng(seed))[0]) for seed in range(60)}
    assert drawn == set(variants.of_item[0][1:].tolist())
    # item 1 has no poorer text
    assert variants.draw(ITEMS, 1.0, np.random.default_rng(0))[1] == variants.of_item[1][0]


def test_the_share_is_a_probability(variants):
    # 2,000 draws at 0.3: 600 poorer, give or take four standard deviations of sqrt(2000 * 0.3 * 0.7) = 20.5
    generator = np.random.default_rng(0)
    whole = variants.of_item[0][0]
    poorer = sum(variants.draw(np.array([0]), 0.3, generator)[0] != whole for _ in range(2000))
    assert 518 <= poorer <= 682


def test_an_item_has_one_text_within_a_draw(variants):
    seen = set()
    for seed in range(20):
        drawn = variants.draw(ITEMS, 0.5, np.random.default_rng(seed))
        assert len(set(drawn[ITEMS == 0].tolist())) == 1
        seen.add(int(drawn[0]))
    assert len(seen) > 1  # from draw to draw it does change
