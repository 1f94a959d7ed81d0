"""What a visit leaves behind: answers, the shortlist, the theme; and what the page says when parts are away."""

import csv
import io
from pathlib import Path

from browser import Visit, served
from forest import FORMULA_NAME
from page_parts import AIRLINES, card, title
from playwright.sync_api import expect

from search import keys
from search.app import create_app
from search.settings import Settings


def test_an_answer_is_sent_shown_and_taken_back(page):
    page.goto(AIRLINES)
    birch = card(page, "Birch Air")
    similar = birch.get_by_role("button", name="Similar: Birch Air", exact=True)
    with page.expect_response("**/v1/feedback") as given:
        similar.click()
    assert given.value.status == 204
    sent = given.value.request.post_data_json
    assert len(sent.pop("shown")) > 8
    assert sent == {"anchor": "alder-air", "text": None, "candidate": "birch-air", "answer": "similar", "rank": 3}
    expect(similar).to_have_attribute("aria-pressed", "true")
    with page.expect_response("**/v1/feedback") as undone:
        birch.get_by_role("button", name="Undo the answer on Birch Air").click()
    assert undone.value.status == 204 and undone.value.request.post_data_json["answer"] == "undo"
    expect(similar).to_have_attribute("aria-pressed", "false")
    expect(similar).to_be_focused()


def test_an_answer_is_still_shown_after_going_away_and_back(page):
    page.goto(AIRLINES)
    no = card(page, "Cedar Air").get_by_role("button", name="Not similar: Cedar Air")
    no.click()
    expect(page.get_by_role("status")).to_have_text("Noted: not similar")
    card(page, "Birch Air").get_by_role("link", name="Birch Air", exact=True).click()
    title(page, "Companies like Birch Air")
    expect(no).to_have_attribute("aria-pressed", "false")  # it was about Alder Air
    page.go_back()
    title(page, "Companies like Alder Air")
    expect(no).to_have_attribute("aria-pressed", "true")


def test_the_shortlist_outlives_the_page_and_comes_out_as_csv(page):
    page.goto(AIRLINES)
    for name in (FORMULA_NAME, "Birch Air", "Cedar Air"):
        card(page, name).get_by_role("button", name="Shortlist", exact=False).click()
    page.reload()
    page.get_by_role("button", name="Shortlist 3").click()
    dialog = page.get_by_role("dialog", name="Shortlist")
    dialog.get_by_role("button", name="Remove: Cedar Air").click()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Export CSV").click()
    assert download.value.suggested_filename == "shortlist.csv"
    content = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    # A spreadsheet must not run a name.
    assert [(row["id"], row["name"]) for row in rows] == [("formula", f"'{FORMULA_NAME}"), ("birch-air", "Birch Air")]
    assert rows[1]["tags"] == "listed" and rows[1]["country"] == "Kenya"
    dialog.get_by_role("button", name="Find companies like all of these").click()
    expect(page.get_by_role("list", name="What is asked").get_by_role("listitem")).to_have_count(2)


def test_the_footer_names_the_model_and_counts_companies(page):
    page.goto("/")
    expect(page.get_by_role("contentinfo")).to_contain_text("Model feedfacefeedface · 42 companies · newest record")


def test_the_theme_is_kept(browser, address):
    with Visit(browser, address, color_scheme="light") as page:
        page.goto("/")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        for shown in ("Theme: light", "Theme: dark"):
            page.get_by_role("button", name="Theme").click()
            expect(page.get_by_role("button", name=shown)).to_be_visible()
        dark = page.evaluate(ground)
        assert dark != light
        page.reload()
        assert page.evaluate(ground) == dark


# trouble


def test_an_endpoint_that_is_away_is_said_and_the_page_goes_on_by_itself(parts, browser, address):
    with Visit(browser, address, status=503) as page:
        parts.endpoint.target = None
        try:
            page.goto("/?q=a text that nobody asked before")
            expect(page.get_by_role("heading", name="The search is not available just now.")).to_be_visible()
            expect(page.locator("#trouble")).to_contain_text("The encoder does not answer")
        finally:
            parts.endpoint.target = parts.client
        expect(page.locator(".card")).to_have_count(10)
        expect(page.locator("#trouble")).to_be_hidden()


def test_a_company_that_is_not_there_is_said(browser, address):
    with Visit(browser, address, status=404) as page:
        page.goto("/?like=nobody")
        expect(page.get_by_role("alert").get_by_role("heading")).to_have_text("This company is not in the index.")


def test_a_key_is_asked_for_until_it_is_right_and_its_scope_is_said(parts, browser, tmp_path):
    key = keys.add(tmp_path / "keys", "ann", "read")
    app = create_app(parts.index, parts.endpoint, Settings(rate=0, keys=str(tmp_path / "keys")))
    with served(app) as address, Visit(browser, address, status=40) as page:  # 401 and 403
        page.goto(AIRLINES)
        dialog = page.get_by_role("dialog", name="An API key is needed")
        for given, said in (("wrong", "An API key is needed."), (key, "This API key is not known.")):
            expect(dialog.locator("#key-reason")).to_have_text(said)
            dialog.get_by_label("API key").fill(given)
            dialog.get_by_role("button", name="Use this key").click()
        expect(page.locator(".card")).to_have_count(10)
        card(page, "Birch Air").get_by_role("button", name="Similar: Birch Air", exact=True).click()
        expect(card(page, "Birch Air")).to_contain_text("Not saved. This API key is not good for feedback.")
