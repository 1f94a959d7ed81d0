"""Free text, several companies at once, companies to stay away from."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from search import wire
from search.access import READ, open_to
from search.asking import Question
from search.problems import MISSING
from search.resources import Resources
from search.routes.lists import answered, listed
from search.routes.parameters import filters_of


def search_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["search"])

    @router.post(
        "/v1/search",
        response_model=wire.Found,
        responses=MISSING,
        summary="Companies for a text, or like several companies",
    )
    @open_to(READ)
    def search(request: Request, asked: wire.SearchQuestion) -> Response:
        _, found = listed(request, resources, question_of(asked), asked.why)
        return answered(found)

    return router


def question_of(asked: wire.SearchQuestion) -> Question:
    text = (asked.text or "").strip() or None
    return Question(
        text=text,
        like=tuple(asked.like),
        unlike=tuple(asked.unlike),
        filters=filters_of(asked.filters),
        mode=asked.mode,
        k=asked.k,
        offset=asked.offset,
    )
