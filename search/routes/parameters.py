"""Query parameters that several routes share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from index.document import Filters
from search.routes.schemas import Choice, Values

_Repeated = Query(description="any of these; may be repeated")


async def _filters(  # async: nothing in it waits, and a thread of its own would cost more than it does
    sector: Annotated[Values, _Repeated] = [],  # noqa: B006  FastAPI copies it
    industry: Annotated[Values, _Repeated] = [],  # noqa: B006
    country: Annotated[Values, _Repeated] = [],  # noqa: B006
    tags: Annotated[Values, _Repeated] = [],  # noqa: B006
) -> Filters:
    return Filters(tuple(sector), tuple(industry), tuple(country), tuple(tags))


FiltersAsked = Annotated[Filters, Depends(_filters)]


def filters_of(choice: Choice) -> Filters:
    return Filters(tuple(choice.sector), tuple(choice.industry), tuple(choice.country), tuple(choice.tags))
