"""Answers as people give them on a list, as they are kept, and the pairs that are made of them."""

from pathlib import Path

from companies import MODEL

from search.feedback.store import Answer, Shown


def given(client, headers=None, **change) -> dict:
    """An answer to a list that was really shown: the companies like air-a."""
    found = client.get("/v1/companies/air-a/similar", headers=headers)
    assert found.status_code == 200, found.text
    answer = {"shown": found.json()["shown"], "anchor": "air-a", "candidate": "air-b", "answer": "similar", "rank": 1}
    return {**answer, **change}


def said(candidate, answer, who="ann", at=1, anchor="air-a", text=None) -> Answer:
    return Answer("list", at, who, MODEL, anchor, text, candidate, answer, 1)


def shown(*companies, like=("air-a",), text=None, unlike=()) -> Shown:
    return Shown("list", 0, "ann", MODEL, text, like, unlike, companies)


def rows(path: Path) -> list[list[str]]:
    header, *lines = path.read_text().splitlines()
    assert header == "left\tright\tlabel"
    return [line.split("\t") for line in lines]
