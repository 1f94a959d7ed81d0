"""Takes people's answers to the lists they were shown."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from starlette.responses import Response

from search.access.scopes import FEEDBACK, open_to
from search.feedback.store import Answer
from search.problems import MISSING
from search.resources import Resources
from search.routes import schemas


def feedback_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["feedback"])

    @router.post("/v1/feedback", status_code=204, response_class=Response, responses=MISSING, summary="Similar, or not")
    @open_to(FEEDBACK)
    def feedback(request: Request, given: schemas.FeedbackGiven) -> None:
        """Kept before it is answered. An `undo` takes back what the same person said of this pair before. Taken for
        companies of a list that was shown here within a week, and for what that list was asked for."""
        shown = resources.list_ids.check(given.shown, given.anchor, given.text, given.candidate)
        resources.companies.require([given.candidate, *([given.anchor] if given.anchor else [])])
        answer = Answer(
            shown=shown,
            at=time.time_ns() // 1000,
            who=request.state.caller.name,
            model=resources.companies.model(),
            anchor=given.anchor,
            text=given.text,
            candidate=given.candidate,
            answer=given.answer,
            rank=given.rank,
        )
        resources.feedback.add([answer])
        resources.metrics.answered(given.answer)

    return router
