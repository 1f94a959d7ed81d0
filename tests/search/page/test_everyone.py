"""The page for everyone: keyboard, screen readers, phones, dark rooms; and for whatever companies are called."""

import re

import pytest
from browser import Visit, serious_faults
from forest import HOSTILE, HOSTILE_NAME, HOSTILE_SENTENCES
from page_parts import AIRLINES, SENTENCE, settled, title
from playwright.sync_api import Locator, Page, expect

MAP = f"{AIRLINES}&view=map"


def tab_to(page: Page, target: Locator) -> None:
    for _ in range(150):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no tab leads to {target}")


def test_everything_can_be_done_with_the_keyboard(page):
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
    tab_to(page, page.get_by_role("combobox", name="A company's name"))
    page.keyboard.type("birch a")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_have_text("Birch Air")
    page.keyboard.press("Enter")
    title(page, "Companies like Birch Air")

    kenya = page.get_by_role("checkbox", name=re.compile("^Kenya \\d"))
    expect(kenya).to_be_visible()
    tab_to(page, kenya)
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("country=Kenya"))
    expect(page.get_by_role("button", name="Clear 1 filter")).to_be_visible()
    expect(kenya).to_be_focused()  # although the filters were drawn anew

    settled(page)
    answer = page.get_by_role("button", name="Similar: Dogwood Air", exact=True)
    tab_to(page, answer)
    page.keyboard.press("Enter")
    expect(answer).to_have_attribute("aria-pressed", "true")
    tab_to(page, page.get_by_role("button", name="Undo the answer on Dogwood Air"))
    page.keyboard.press("Enter")
    expect(answer).to_have_attribute("aria-pressed", "false")

    tab_to(page, page.get_by_role("button", name="Shortlist: Dogwood Air"))
    page.keyboard.press("Space")
    tab_to(page, page.get_by_role("button", name="Shortlist 1"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("button", name="Export CSV"))
    with page.expect_download():
        page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Shortlist 1")).to_be_focused()


def test_the_map_can_be_walked_with_the_keyboard(page):
    page.goto(AIRLINES)
    tab_to(page, page.get_by_role("link", name="Map"))
    page.keyboard.press("Enter")
    own = page.locator(".point.own")
    expect(own).to_be_focused()
    expect(page.locator(".tip")).to_contain_text("Alder Air")
    for arrow in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        page.keyboard.press(arrow)
    walked = page.evaluate("document.activeElement.dataset.id")
    if walked == "alder-air":  # there and back again
        page.keyboard.press("ArrowDown")
        walked = page.evaluate("document.activeElement.dataset.id")
    assert walked and walked != "alder-air"
    page.keyboard.press("Enter")
    expect(own).to_have_attribute("data-id", walked)
    expect(own).to_be_focused()


def test_escape_closes_the_suggestions_and_enter_still_searches(page):
    page.goto("/")
    box = page.get_by_role("combobox", name="A company's name")
    box.press_sequentially("alder")
    expect(page.get_by_role("listbox")).to_be_visible()
    expect(box).to_have_attribute("aria-expanded", "true")
    box.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    box.press("Enter")
    title(page, "Companies for “alder”")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, address, scheme):
    with Visit(browser, address, color_scheme=scheme) as page:
        chosen = f"{AIRLINES}&unlike=elm-air&country=Kenya"
        for path in ("/", f"/?q={SENTENCE}", chosen, MAP, f"{AIRLINES}&country=Atlantis"):
            page.goto(path)
            expect(page.locator(".choice").first).to_be_attached()
            expect(page.locator("#content").locator(".welcome, .card, .point, .message").first).to_be_visible()
            assert serious_faults(page) == [], path
        page.goto(AIRLINES)
        page.get_by_role("button", name=re.compile("^Similar: ")).first.click()
        page.get_by_role("button", name=re.compile("^Shortlist: ")).first.click()
        page.get_by_role("combobox", name="A company's name").press_sequentially("alder")
        expect(page.get_by_role("option")).to_have_count(4)
        page.keyboard.press("ArrowDown")
        assert serious_faults(page) == []
        page.get_by_role("button", name="Shortlist 1").click()
        assert serious_faults(page) == []
        page.goto("/docs")
        assert serious_faults(page, "#Similar") == []  # one of many that look the same


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_wider_than_a_phone(browser, address, width):
    with Visit(browser, address, viewport={"width": width, "height": 700}, has_touch=True) as page:
        for path in ("/", f"/?q={SENTENCE}", AIRLINES, f"{AIRLINES}&unlike=elm-air", MAP):
            page.goto(path)
            expect(page.locator("#content").locator(".welcome, .card, .point").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") == width, path
        assert serious_faults(page) == []  # of the map
        filters = page.get_by_role("group", name="Sector")
        expect(filters).to_be_hidden()
        page.get_by_role("button", name="Show filters").tap()
        expect(filters).to_be_visible()
        page.get_by_role("checkbox", name="Food 10 companies", exact=True).tap()
        expect(page.get_by_role("button", name="Hide filters (1 on)")).to_be_visible()
        page.get_by_role("button", name="Shortlist 0").tap()
        expect(page.get_by_role("dialog", name="Shortlist")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_long_description_folds_and_a_short_one_does_not(page):
    page.goto(AIRLINES)
    long, short = (page.locator(f".card[data-id={id}]") for id in ("formula", "birch-air"))
    button = long.get_by_role("button", name="Read all")
    expect(button).to_be_visible()
    folded = long.locator(".description").bounding_box()["height"]
    button.click()
    expect(long.get_by_role("button", name="Read less")).to_have_attribute("aria-expanded", "true")
    assert long.locator(".description").bounding_box()["height"] > folded
    expect(short.get_by_role("button", name="Read all")).to_be_hidden()


# names that are not nice


def test_hostile_names_and_descriptions_are_text(page):
    page.goto(AIRLINES)
    card = page.locator(".card[data-id=hostile]")
    expect(card.get_by_role("heading")).to_have_text(HOSTILE_NAME)
    assert card.locator(".description").text_content() == HOSTILE["description"]
    # Marked sentence by sentence: offsets hold although emoji are two units of JavaScript's each.
    assert card.locator(".description mark").all_text_contents() == list(HOSTILE_SENTENCES)
    assert card.locator(".tags").text_content() == HOSTILE["tags"][0]
    expect(card.locator(".facts")).to_contain_text("javascript:window.broken=1")
    assert card.locator("script, img, svg, b, i, a[href^='javascript']").count() == 0

    card.get_by_role("link").first.click()
    title(page, f"Companies like {HOSTILE_NAME}")
    assert "\u202e" not in page.title()  # it would turn the tab's other words around
    page.get_by_role("link", name="Map").click()
    expect(page.locator(".point.own")).to_be_focused()
    expect(page.locator(".tip")).to_contain_text(HOSTILE_NAME)
    page.get_by_role("combobox", name="A company's name").press_sequentially("<script")
    expect(page.get_by_role("option")).to_have_text([HOSTILE_NAME])
    assert page.evaluate("window.broken") is None


def test_a_hostile_filter_is_a_value_like_others(page):
    page.goto(AIRLINES)
    page.get_by_role("checkbox", name=re.compile("^Kenya' OR 1=1")).check()
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator(".card").get_by_role("heading")).to_have_text(HOSTILE_NAME)


def test_the_page_may_load_and_run_its_own_files_only(page):
    answer = page.goto("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    assert page.locator("script:not([src]), style, [style], [onclick]").count() == 0


def test_all_that_the_page_runs_is_fetched_at_once(page):
    fetched = []
    page.on("request", lambda request: request.url.endswith(".js") and fetched.append(request.url.split("/")[-1]))
    page.goto("/", wait_until="load")
    told = page.locator("link[rel=modulepreload]").evaluate_all("all => all.map(one => one.href.split('/').pop())")
    assert sorted(fetched) == sorted([*told, "main.js", "theme.js"])
