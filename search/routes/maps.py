"""Routes of the market map: a neighbourhood as points in two dimensions."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request

from index.document import Document
from search.access.scopes import READ, open_to
from search.problems import MISSING
from search.ranking.companies import Companies
from search.ranking.market_map import positions
from search.ranking.rank import Question, Ranking, of_one_model, rank, require
from search.resources import Resources
from search.routes import schemas
from search.routes.parameters import FiltersAsked
from search.routes.search import question_of

AnchorId = Annotated[schemas.Id, Query(description="of a company", examples=["ryanair"])]
Points = Annotated[int, Query(ge=1, le=schemas.MAX_POINTS)]


def map_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["map"])

    def drawn(question: Question) -> schemas.Map:
        companies, encoder = resources.companies, resources.encoder
        return of_one_model(lambda: draw(companies, rank(question, companies, encoder)), companies)

    @router.get("/v1/map", responses=MISSING, summary="The market around a company")
    @open_to(READ)
    def around(id: AnchorId, filters: FiltersAsked, k: Points = 100) -> schemas.Map:
        return drawn(Question(like=(id,), filters=filters, mode="vector", k=k))

    @router.post("/v1/map", responses=MISSING, summary="The market around a question")
    @open_to(READ)
    def asked(request: Request, asked: schemas.MapQuestion) -> schemas.Map:
        request.state.asked = asked.text
        return drawn(question_of(asked))

    return router


def draw(companies: Companies, ranking: Ranking) -> schemas.Map:
    """Anchors are points too: the nearest to themselves."""
    scores = dict.fromkeys((one.id for one in ranking.anchors), 1.0)
    scores |= {hit.document.id: hit.score for hit in ranking.hits}
    stored = companies.get_some(scores)  # with vectors; less what was deleted a moment ago
    require(stored.values(), ranking.model, companies)
    drawn = [stored[id] for id in scores if id in stored]
    vectors = [company.embedding for company in drawn if company.embedding is not None]
    plane = positions(np.stack(vectors)) if vectors else np.zeros((0, 2))
    points = [_point(company, x, y, scores[company.id]) for company, (x, y) in zip(drawn, plane, strict=True)]
    anchor = ranking.anchors[0].id if len(ranking.anchors) == 1 else None
    return schemas.Map(points=points, anchor=anchor)


def _point(company: Document, x: float, y: float, score: float) -> schemas.Point:
    return schemas.Point(id=company.id, name=company.name, sector=company.sector, x=x, y=y, score=score)
