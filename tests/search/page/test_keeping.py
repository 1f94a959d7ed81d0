"""What a visit leaves behind: answers, the shortlist, the theme."""

import csv
import io
from pathlib import Path

from browser import Visit
from forest import FORMULA_NAME
from page_parts import AIRLINES, card, title
from playwright.sync_api import expect

from search.feedback.store import Answer, open_feedback


def answers(parts) -> list[Answer]:
    return [record for record in open_feedback(parts.index.url).scan() if isinstance(record, Answer)]


def test_an_answer_is_kept_shown_and_taken_back(page, parts):
    before = len(answers(parts))  # of other tests
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
    assert [(one.anchor, one.candidate, one.answer, one.rank) for one in answers(parts)[before:]] == [
        ("alder-air", "birch-air", "similar", 3),
        ("alder-air", "birch-air", "undo", 3),
    ]


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
