"""How tests find their way on the page."""

import re

from playwright.sync_api import Locator, Page, expect

AIRLINES = "/?like=alder-air"
SENTENCE = "cheap routes across Europe"


def title(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def settled(page: Page) -> None:
    expect(page.locator("#content")).not_to_have_attribute("aria-busy", "true")


def names(page: Page) -> list[str]:
    settled(page)
    return page.locator(".card h2").all_inner_texts()


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name, exact=True)


def ask(page: Page, text: str) -> None:
    page.get_by_role("combobox", name="A company's name").fill(text)
    page.get_by_role("button", name="Search", exact=True).click()
