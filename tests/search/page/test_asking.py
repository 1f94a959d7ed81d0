"""Asking on the page: words, names, filters, several companies at once, addresses, the map."""

import re

import pytest
from page_parts import AIRLINES, SENTENCE, ask, card, names, title
from playwright.sync_api import Page, expect

BOX = "A company's name"


def test_a_sentence_finds_companies_and_shows_why(page):
    page.goto("/")
    ask(page, SENTENCE)
    title(page, f"Companies for “{SENTENCE}”")
    expect(page.locator(".card")).to_have_count(10)
    first = page.locator(".card").first
    expect(first.get_by_role("img", name=re.compile(r"Similarity \d\.\d\d"))).to_be_visible()
    expect(first.locator(".why .quote").first).to_contain_text(SENTENCE)  # the reason quotes what was typed
    expect(first.locator(".description mark").first).to_be_visible()
    assert "q=cheap+routes" in page.url


def test_words_alone_are_scored_against_the_best_of_them(page):
    page.goto(f"/?q={SENTENCE}&mode=words")
    expect(page.get_by_role("img", name="Match 100 % of the best").first).to_be_visible()
    assert {name.split()[1] for name in names(page)} == {"Air"}


def test_names_are_suggested_and_a_pick_shows_who_is_like_it(page):
    page.goto("/")
    page.get_by_role("combobox", name=BOX).press_sequentially("alder")
    options = page.get_by_role("option")
    expect(options).to_have_count(4)
    options.filter(has_text="Alder Air").click()
    title(page, "Companies like Alder Air")
    expect(page.locator(".card")).to_have_count(10)
    nearest = ("Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ironwood")
    assert names(page)[2:] == [f"{word} Air" for word in nearest]


def test_show_more_goes_on_where_the_list_ended(page):
    page.goto(AIRLINES)
    expect(page.locator(".card")).to_have_count(10)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".card")).to_have_count(20)
    assert len(set(names(page))) == 20
    expect(page.locator(".card").nth(10).get_by_role("link").first).to_be_focused()


def test_a_filter_narrows_the_list_and_another_value_can_be_added(page):
    page.goto(AIRLINES)
    page.get_by_role("checkbox", name="Kenya 20 companies", exact=True).check()
    expect(page).to_have_url(re.compile("country=Kenya"))
    expect(page.locator(".card .facts", has_text="Sweden")).to_have_count(0)
    assert names(page)[0] == "Birch Air"
    page.get_by_role("checkbox", name="Sweden 20 companies", exact=True).check()
    expect(page.locator(".card .facts", has_text="Sweden")).not_to_have_count(0)
    page.get_by_role("button", name="Clear 2 filters").click()
    expect(page).to_have_url(re.compile(r"like=alder-air$"))


def test_filters_that_nothing_passes_are_said_and_can_be_taken_off(page):
    page.goto(f"{AIRLINES}&country=Atlantis")
    expect(page.get_by_role("heading", name="No company found")).to_be_visible()
    page.get_by_role("button", name="Clear filters", exact=True).click()
    expect(page.locator(".card")).to_have_count(10)


def test_companies_can_be_added_to_the_question_and_kept_away_from(page):
    page.goto(AIRLINES)
    card(page, "Birch Air").get_by_role("button", name="More like this: Birch Air").click()
    title(page, "Companies like Alder Air and 1 more")
    expect(card(page, "Birch Air")).to_have_count(0)
    card(page, "Cedar Air").get_by_role("button", name="Less like this: Cedar Air").click()
    expect(page.get_by_role("list", name="What is asked").get_by_role("listitem")).to_have_count(3)
    expect(card(page, "Cedar Air")).to_have_count(0)
    page.get_by_role("button", name="Take off Birch Air").click()
    expect(card(page, "Birch Air")).to_be_visible()


def test_an_address_shows_the_same_to_whoever_gets_it(page):
    page.goto(f"/?q={SENTENCE}&sector=Food&mode=vector")
    title(page, f"Companies for “{SENTENCE}”")
    expect(page.get_by_role("combobox", name=BOX)).to_have_value(SENTENCE)
    expect(page.get_by_role("checkbox", name="Food 10 companies", exact=True)).to_be_checked()
    expect(page.get_by_role("combobox", name="Match by")).to_have_value("vector")
    expect(page.locator(".card")).to_have_count(10)
    assert {name.split()[1] for name in names(page)} == {"Foods"}


def test_back_and_forward_go_through_what_was_asked(page):
    page.goto("/")
    ask(page, SENTENCE)
    title(page, f"Companies for “{SENTENCE}”")
    page.locator(".card h2 a").first.click()
    title(page, re.compile("^Companies like "))
    page.go_back()
    title(page, f"Companies for “{SENTENCE}”")
    expect(page.get_by_role("combobox", name=BOX)).to_have_value(SENTENCE)
    expect(page.locator(".card")).to_have_count(10)
    page.go_back()
    title(page, "Which companies are like this one?")
    page.go_forward()
    title(page, f"Companies for “{SENTENCE}”")


# the map


def place(page: Page, id: str) -> tuple[float, float]:
    """The middle of a company's mark, in pixels."""
    box = page.locator(f".point[data-id='{id}'] .mark").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def distance(page: Page) -> float:
    (x, y), (other_x, other_y) = place(page, "alder-air"), place(page, "juniper-air")
    return ((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5


def test_a_click_on_the_map_makes_a_company_the_new_anchor(page):
    page.goto(AIRLINES)
    page.get_by_role("link", name="Map").click()
    expect(page.locator(".point")).to_have_count(42)
    page.locator(".map .frame").scroll_into_view_if_needed()
    page.mouse.move(*place(page, "juniper-power"))
    expect(page.locator(".tip")).to_contain_text("Juniper Power")
    page.mouse.click(*place(page, "juniper-power"))
    title(page, "Companies like Juniper Power")
    expect(page).to_have_url(re.compile("like=juniper-power&view=map"))
    expect(page.locator(".point.own")).to_have_attribute("data-id", "juniper-power")


def test_the_map_zooms_by_button_key_and_wheel(page):
    page.goto(f"{AIRLINES}&view=map")
    own = page.locator(".point.own")
    expect(own).to_have_attribute("transform", re.compile("translate"))
    before = distance(page)
    page.get_by_role("button", name="Zoom in").click()
    assert distance(page) == pytest.approx(1.5 * before, rel=0.02)
    own.focus()
    page.keyboard.press("+")
    assert distance(page) == pytest.approx(1.5**2 * before, rel=0.02)
    page.locator(".map .frame").hover()
    still = own.get_attribute("transform")
    page.mouse.wheel(0, -120)
    expect(own).not_to_have_attribute("transform", still)
    assert distance(page) > 1.5**2 * before
    page.get_by_role("button", name="Show all").click()
    assert distance(page) == pytest.approx(before, rel=0.02)


def test_a_sector_of_the_legend_stands_out_alone(page):
    page.goto(f"{AIRLINES}&view=map")
    page.get_by_role("list", name="Sectors").get_by_role("button", name="Energy 10").click()
    expect(page.locator(".point:not(.dim)")).to_have_count(11)  # and the company asked for
