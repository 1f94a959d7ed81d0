"""Companies of four numbers a vector, for whoever tests an index."""

from dataclasses import replace

import numpy as np

from index.document import Document, text_hash

MODEL = "feedfacefeedface"
OTHER_MODEL = "0123456789abcdef"
DIMENSION = 4


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def company(id: str, version: int = 1, embedding=(1, 0, 0, 0), **fields) -> Document:
    fields = {"name": f"Company {id}", "description": f"Makes {id}", **fields}
    document = Document(id, version, model=MODEL, text_hash=text_hash(fields["description"]), **fields)
    return replace(document, embedding=None if embedding is None else vector(*embedding))


def statuses(outcomes) -> list[str]:
    return [outcome.status for outcome in outcomes]


def found(hits) -> list[str]:
    return [hit.document.id for hit in hits]


def state(index) -> dict[str, tuple]:
    """All that an index holds, tombstones too, but for the time of writing."""
    documents = [document for batch in index.scan(tombstones=True) for document in batch]
    assert len({document.id for document in documents}) == len(documents)  # nothing twice
    return {
        one.id: (replace(one, indexed_at=0), None if one.embedding is None else one.embedding.tolist())
        for one in documents
    }
