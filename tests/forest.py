"""Forty companies of four trades, near one another by trade, and two that try to break a page."""

import numpy as np
from companies import DIMENSION, company

from index.document import Document

TREES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ironwood", "Juniper")
TRADES = {
    "Airlines": ("Air", "flies cheap routes across Europe"),
    "Software": ("Systems", "writes programs that plan deliveries"),
    "Food": ("Foods", "cooks organic meals for small children"),
    "Energy": ("Power", "builds wind farms off the coast"),
}
COUNTRIES = ("Sweden", "Kenya")

# The nearest two to Alder Air, so that they are first in its list.
HOSTILE_NAME = '<script>window.broken = 1</script> "O\'Hara" \u202eeno drawkcab ✈️ & <b>Co</b>'
HOSTILE_SENTENCES = (
    '🛫🛫 <img src="x" onerror="window.broken = 1"> claims "safety" first.',
    "مرحبا \u202eIt flies <b>bold</b> routes.",
)
HOSTILE = {
    "name": HOSTILE_NAME,
    "description": " ".join(HOSTILE_SENTENCES),
    "sector": "<i>Odd</i>",
    "country": "Kenya' OR 1=1",
    "website": "javascript:window.broken=1",
    "tags": ('"><svg onload="window.broken = 1">',),
}
LONG = "Sells sheets of many sizes to whoever has to count. " * 20
FORMULA_NAME = '=HYPERLINK("http://example.com","Open, please")'


def forest() -> list[Document]:
    companies = [
        _member(place, sector, ending, doing, number)
        for place, (sector, (ending, doing)) in enumerate(TRADES.items())
        for number in range(len(TREES))
    ]
    sheets = {"name": FORMULA_NAME, "description": LONG, "sector": "Airlines"}
    hostile = company("hostile", embedding=_near(0, 0.01), **HOSTILE)
    return [*companies, hostile, company("formula", embedding=_near(0, 0.02), **sheets)]


def _member(place: int, sector: str, ending: str, doing: str, number: int) -> Document:
    name = f"{TREES[number]} {ending}"
    id = name.lower().replace(" ", "-")
    return company(
        id,
        embedding=_near(place, 0.08 * number),
        name=name,
        description=f"{name} {doing}. It has {number + 2} offices.",
        sector=sector,
        industry=f"{sector} for all",
        country=COUNTRIES[number % 2],
        website=f"https://www.{id}.example",
        tags=("listed",) if number % 2 else ("listed", "young"),
    )


def _near(place: int, slope: float) -> tuple[float, ...]:
    """A unit vector off its trade's axis towards the next one's: cosine to the axis 1 / sqrt(1 + slope ** 2)."""
    vector = np.zeros(DIMENSION)
    vector[place], vector[(place + 1) % DIMENSION] = 1, slope
    return tuple(vector / np.linalg.norm(vector))
