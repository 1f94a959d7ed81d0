"""The search route: a text, companies to be like, companies to stay away from."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from search.access.scopes import READ, open_to
from search.problems import MISSING
from search.ranking.rank import Question
from search.resources import Resources
from search.routes import schemas
from search.routes.lists import json_response, listed
from search.routes.parameters import filters_of


def search_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["search"])

    @router.post(
        "/v1/search",
        response_model=schemas.Found,
        responses=MISSING,
        summary="Companies for a text, or like several companies",
    )
    @open_to(READ)
    def search(request: Request, asked: schemas.SearchQuestion) -> Response:
        _, found = listed(request, resources, question_of(asked), asked.why)
        return json_response(found)

    return router


def question_of(asked: schemas.SearchQuestion) -> Question:
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
