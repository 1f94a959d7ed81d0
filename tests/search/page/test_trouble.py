"""What the page says to a person when parts are away, and that it goes on by itself when they are back."""

from pathlib import Path

import pytest
from browser import Visit, serious_faults, served
from companies import OTHER_MODEL
from encoder import Encoder
from page_parts import AIRLINES, card, title
from playwright.sync_api import Page, expect

from search import keys
from search.app import create_app
from search.settings import Settings
from serving.client import EmbeddingClient

NEW_TEXT = "/?q=a text that nobody asked before"
AWAY = "The search is not available just now."


def told(page: Page, heading: str, banner: str) -> None:
    expect(page.locator("#content").get_by_role("heading")).to_have_text(heading)
    expect(page.locator("#trouble")).to_contain_text(banner)


def well(page: Page) -> None:
    """Without anybody touching anything."""
    expect(page.locator(".card")).to_have_count(10)
    expect(page.locator("#trouble")).to_be_hidden()
    expect(page.locator(".choice").first).to_be_visible()


def test_an_endpoint_that_is_away_is_said_and_the_page_goes_on_by_itself(parts, browser, address):
    with Visit(browser, address, excused="status of 503") as page:
        parts.endpoint.target = None
        try:
            page.goto(NEW_TEXT)
            told(page, AWAY, "The encoder does not answer")
        finally:
            parts.endpoint.target = parts.client
        well(page)


def test_who_is_like_a_company_is_known_without_the_endpoint(parts, browser, address):
    with Visit(browser, address, excused="status of 503") as page:
        parts.endpoint.target = None
        try:
            page.goto("/?like=elm-power")
            expect(page.locator(".card")).to_have_count(10)
            expect(page.locator("#trouble")).to_contain_text("Looking from a company still works.")
        finally:
            parts.endpoint.target = parts.client


def test_a_look_that_ends_late_does_not_put_off_the_doubt_that_came_meanwhile(parts, browser, address):
    held = []

    def hold_the_first(route):
        if held:
            route.continue_()
        held.append(route)

    with Visit(browser, address, excused="status of 503") as page:
        parts.endpoint.target = None
        try:
            page.route("**/readyz", hold_the_first)
            page.goto("/?like=fir-power")
            expect(page.locator(".card")).to_have_count(10)  # without reasons: the page has its doubts
            held[0].fulfill(json={"ready": True, "index": "ok", "serving": "ok", "model": "ok"})
            # In less than the half minute between two looks while all is well.
            expect(page.locator("#trouble")).to_contain_text("Looking from a company still works.", timeout=15_000)
        finally:
            parts.endpoint.target = parts.client


def test_an_index_that_is_away_is_said_and_the_page_goes_on_by_itself(parts, browser, address):
    folder = Path(parts.index.url)
    with Visit(browser, address, excused="status of 503") as page:
        folder.rename(folder.with_name("away"))
        try:
            page.goto(AIRLINES)
            told(page, AWAY, "The company index does not answer")
        finally:
            folder.with_name("away").rename(folder)
        well(page)
        title(page, "Companies like Alder Air")  # while the index was away it had no name


def test_an_endpoint_of_another_model_is_said_with_the_fix_and_the_page_goes_on_by_itself(parts, browser, address):
    other = Encoder(OTHER_MODEL)
    try:
        with EmbeddingClient([other.address]) as client, Visit(browser, address, excused="status of 503") as page:
            parts.endpoint.target = client
            page.goto(f"{NEW_TEXT} of this model")
            told(page, AWAY, "Index and encoder hold different models")
            expect(page.locator("#content code")).to_contain_text("python -m pipelines.reindex --index")
            parts.endpoint.target = parts.client
            well(page)
    finally:
        parts.endpoint.target = parts.client
        other.stop()


def test_a_lost_connection_is_said_and_the_page_goes_on_by_itself(browser, address):
    visit = Visit(browser, address, excused="ERR_INTERNET_DISCONNECTED")
    with visit as page:
        page.goto("/")
        visit.context.set_offline(True)
        page.get_by_role("link", name="low-cost airline in Europe").click()
        told(page, "The server does not answer.", "The server does not answer. The page keeps trying.")
        visit.context.set_offline(False)
        well(page)


def test_a_company_that_is_not_there_is_said(browser, address):
    with Visit(browser, address, excused="status of 404") as page:
        page.goto("/?like=nobody")
        expect(page.get_by_role("alert").get_by_role("heading")).to_have_text("This company is not in the index.")


def test_a_key_is_asked_for_until_it_is_right_and_its_scope_is_said(parts, browser, tmp_path):
    key = keys.add(tmp_path / "keys", "ann", "read")
    app = create_app(parts.index, parts.endpoint, Settings(rate=0, keys=str(tmp_path / "keys")))
    with served(app) as address, Visit(browser, address, excused="status of 40") as page:  # 401 and 403
        page.goto(AIRLINES)
        dialog = page.get_by_role("dialog", name="An API key is needed")
        for given, said in (("wrong", "An API key is needed."), (key, "This API key is not known.")):
            expect(dialog.locator("#key-reason")).to_have_text(said)
            dialog.get_by_label("API key").fill(given)
            dialog.get_by_role("button", name="Use this key").click()
        expect(page.locator(".card")).to_have_count(10)
        card(page, "Birch Air").get_by_role("button", name="Similar: Birch Air", exact=True).click()
        expect(card(page, "Birch Air")).to_contain_text("Not saved. This API key is not good for feedback.")


def test_a_page_in_plain_http_from_elsewhere_asks_for_no_key_and_sends_none(parts, browser, tmp_path):
    keys.add(tmp_path / "keys", "ann", "read")
    app = create_app(parts.index, parts.endpoint, Settings(rate=0, keys=str(tmp_path / "keys")))
    sent = []
    with served(app) as address:
        visit = Visit(browser, "http://pause.example", excused="status of 401")
        visit.context.add_init_script("sessionStorage.setItem('pause.key', 'a key of another day')")

        def answer(route):
            sent.append(route.request.headers)
            asked = {name: value for name, value in route.request.headers.items() if name != "host"}
            url = route.request.url.replace("http://pause.example", address)
            answered = route.fetch(url=url, headers=asked)
            # In plain http the browser does not heed this one, and says so.
            heeded = {name: it for name, it in answered.headers.items() if name != "cross-origin-opener-policy"}
            route.fulfill(response=answered, headers=heeded)

        with visit as page:
            page.route("http://pause.example/**", answer)
            page.goto(AIRLINES)
            expect(page.get_by_role("alert").get_by_role("heading")).to_have_text(
                "A key is needed, and this page came over plain http."
            )
            expect(page.get_by_role("dialog", name="An API key is needed")).to_be_hidden()
            page.unroute_all(behavior="wait")
    assert sent and not any("authorization" in headers for headers in sent)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_trouble_either(parts, browser, address, scheme):
    with Visit(browser, address, excused="status of 503", color_scheme=scheme) as page:
        parts.endpoint.target = None
        try:
            page.goto(f"{NEW_TEXT} in the {scheme}")
            told(page, AWAY, "The encoder does not answer")
            assert serious_faults(page) == []
        finally:
            parts.endpoint.target = parts.client
