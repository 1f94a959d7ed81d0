"""A small market of four numbers a vector, and an endpoint that tests can take away and bring back."""

from companies import company

from index.document import Document
from serving.endpoint.channel import ServingUnavailable

# Cosines to air-a: air-b 0.8, ship 0.6, bank 0, and bank is nearer to ship (0.8) than to any other.
MARKET = [
    company(
        "air-a",
        1_700_000_000_000_000,  # 2023-11-14T22:13:20Z
        (1, 0, 0, 0),
        name="Alpha Air",
        description="Flies people cheaply. Sells seats online.",
        sector="Transport",
        industry="airlines",
        country="Ireland",
        tags=("cheap", "air"),
    ),
    company(
        "air-b",
        1,
        (0.8, 0, 0.6, 0),
        name="Beta Air",
        description="Carries passengers for little money. Its aircraft are new.",
        sector="Transport",
        industry="airlines",
        country="Hungary",
        tags=("cheap",),
    ),
    company(
        "ship",
        1,
        (0.6, 0.8, 0, 0),
        name="Gamma Ferries",
        description="Sails between islands.",
        sector="Transport",
        industry="shipping",
        country="Greece",
    ),
    company(
        "bank",
        1,
        (0, 1, 0, 0),
        name="Delta Bank",
        description="Lends money to small firms. Keeps savings.",
        sector="Finance",
        industry="banking",
        country="Ireland",
        tags=("loans",),
    ),
]


def deleted(id: str) -> Document:
    return Document.tombstone(id, 2_000_000_000_000_000)


class Switch:
    """An embedder whose target changes, or is away."""

    def __init__(self, target):
        self.target = target

    def embed(self, texts, model=None):
        return self._there().embed(texts, model)

    def contract(self, model=None):
        return self._there().contract(model)

    def served(self):
        return self._there().served()

    def _there(self):
        if self.target is None:
            raise ServingUnavailable("serving at nowhere:1 gave no answer")
        return self.target


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [hit["company"]["id"] for hit in answer.json()["hits"]]
