"""Routes of a company, of those similar to it, of suggested names and of filter values."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from search.access.scopes import READ, open_to
from search.problems import MISSING
from search.ranking.rank import Question
from search.resources import Resources
from search.routes import responses, schemas
from search.routes.lists import json_response, listed
from search.routes.parameters import FiltersAsked

FACET_VALUES = 100

CompanyId = Annotated[schemas.Id, Path(description="of a company", examples=["ryanair"])]
Size = Annotated[int, Query(ge=1, le=schemas.MAX_K)]
Offset = Annotated[int, Query(ge=0, le=schemas.MAX_OFFSET)]
WhyAsked = Annotated[bool, Query(description="also the closest sentences of each")]
Prefix = Annotated[str, Query(max_length=schemas.MAX_PREFIX, examples=["rya"])]
Suggested = Annotated[int, Query(ge=1, le=schemas.MAX_SUGGESTIONS)]


def company_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["companies"])
    companies = resources.companies

    # An id may hold a slash. This one stands first, or it would never be asked.
    @router.get(
        "/v1/companies/{id:path}/similar",
        response_model=schemas.Similar,
        responses=MISSING,
        summary="Companies like this one",
    )
    @open_to(READ)
    def similar(
        request: Request, id: CompanyId, filters: FiltersAsked, k: Size = 10, offset: Offset = 0, why: WhyAsked = False
    ) -> Response:
        question = Question(like=(id,), filters=filters, mode="vector", k=k, offset=offset)
        ranking, found = listed(request, resources, question, why)
        return json_response(schemas.Similar(anchor=responses.company(ranking.anchors[0]), **dict(found)))

    @router.get("/v1/companies/{id:path}", responses=MISSING, summary="One company")
    @open_to(READ)
    def company(id: CompanyId) -> schemas.Company:
        return responses.company(companies.get(id))

    @router.get("/v1/suggest", summary="Names as they are typed")
    @open_to(READ)
    def suggest(prefix: Prefix, k: Suggested = 8) -> schemas.Suggestions:
        found = companies.suggest(prefix, k)
        return schemas.Suggestions(suggestions=[schemas.Suggestion(id=one.id, name=one.name) for one in found])

    @router.get("/v1/facets", summary="What there is to filter by, with counts")
    @open_to(READ)
    def facets(filters: FiltersAsked) -> schemas.Facets:
        found = companies.facets(filters, FACET_VALUES)
        return schemas.Facets(
            facets={
                name: [schemas.FacetValue(value=value, count=count) for value, count in values]
                for name, values in found.items()
            }
        )

    return router
