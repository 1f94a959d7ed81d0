"""Makes a list of companies: ranked, explained, and recorded as shown."""

from __future__ import annotations

import time
import uuid

from fastapi import Request
from starlette.responses import Response

from index.errors import WrongModel
from search.feedback.store import Shown
from search.ranking.encoder import Busy
from search.ranking.rank import Question, Ranking, rank
from search.ranking.why import Passage, Reason, explain
from search.resources import Resources
from search.routes import responses, schemas
from search.routes.schemas import LeftOut
from serving.endpoint.channel import ServingUnavailable


def json_response(found: schemas.Found) -> Response:
    """As it is: FastAPI would check once more what was checked as it was made, which costs as much as the rest."""
    return Response(found.model_dump_json(), media_type="application/json")


def listed(request: Request, resources: Resources, question: Question, why: bool) -> tuple[Ranking, schemas.Found]:
    request.state.asked = question.text
    ranking = rank(question, resources.companies, resources.encoder)
    reasons, left_out = _reasons(resources, question, ranking) if why else (None, None)
    shown = Shown(
        id=uuid.uuid4().hex,
        at=time.time_ns() // 1000,
        who=request.state.caller.name,
        model=ranking.model,
        text=question.text,
        like=question.like,
        unlike=question.unlike,
        companies=tuple(hit.document.id for hit in ranking.hits),
        offset=question.offset,
    )
    resources.recorder.shown(shown)
    found = schemas.Found(
        hits=responses.hits(ranking.hits, question.offset, reasons),
        model=ranking.model,
        scored_by=ranking.scored_by,
        total_known=ranking.total,
        shown=resources.list_ids.issue(shown),
        why_left_out=left_out,
    )
    return ranking, found


def _reasons(resources: Resources, question: Question, ranking: Ranking) -> tuple[list[list[Reason]] | None, LeftOut]:
    """None while the endpoint is away, busy or of another model: the list itself needs none of it."""
    if not ranking.hits:
        return [], None
    typed = [Passage(question.text)] if question.text else []
    passages = [*typed, *(Passage(one.description, one.id) for one in ranking.anchors)]
    documents = [hit.document for hit in ranking.hits]
    try:
        found = explain(resources.encoder, passages, documents, ranking.model)
        return found.reasons, "too_many_sentences" if found.cut else None
    except Busy:
        left_out: LeftOut = "busy"
    except WrongModel:
        left_out = "wrong_model"
    except ServingUnavailable:
        left_out = "serving_down"
    resources.metrics.unexplained()
    return None, left_out
