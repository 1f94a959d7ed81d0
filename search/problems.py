"""Errors as callers see them: one sentence for a person, a code for a machine, and the fix."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from common.errors import CommandError
from index.errors import CompanyMissing, IndexMissing, IndexUnavailable, IndexUnusable, WrongModel
from search.feedback.list_ids import ListRefused
from search.feedback.store import FeedbackDown, FeedbackFull
from search.ranking.companies import IndexFailed
from search.ranking.encoder import TextRefused
from search.routes.schemas import Problem
from serving.client import TextsRefused
from serving.endpoint.channel import ServingUnavailable

log = logging.getLogger(__name__)

CODES = {400: "bad_request", 401: "no_key", 403: "not_allowed", 404: "not_found", 405: "method_not_allowed"}
CODES |= {
    408: "too_slow",
    413: "too_large",
    421: "unknown_host",
    422: "invalid",
    429: "too_many_requests",
    500: "failed",
    503: "unavailable",
}

# Of every question; for the OpenAPI document.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 408, 413, 421, 422, 429, 503)
}
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "Not Found"}}


def problem(status: int, message: str, fix: str | None = None, code: str | None = None) -> Response:
    told = {"code": code or CODES.get(status, "error"), "message": message.encode(errors="replace").decode()}
    if fix:
        told["fix"] = fix
    return Response(orjson.dumps({"error": told}), status, media_type="application/json")


def handle(app: FastAPI) -> None:
    app.add_exception_handler(CommandError, _told)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)


def of_error(error: Exception) -> Response:
    """No text that was asked is repeated."""
    match error:
        case CompanyMissing():
            return problem(404, f"There is no company {error.args[1][:100]!r} here; it may have been deleted.")
        case WrongModel():
            url, kept, given = error.args
            told = f"The index holds vectors of model {kept}, and the endpoint serves {given or 'one without a name'}."
            fix = f"Run `python -m pipelines.reindex --index {url} --serving HOST:PORT`, or serve model {kept} again."
            return problem(503, told, fix, "wrong_model")
        case IndexMissing():
            url = error.args[0]
            fix = f"`python -m pipelines.encode --index {url}` fills one."
            return problem(503, f"There is no index at {url}.", fix, "index_down")
        case IndexUnusable() | IndexUnavailable() | IndexFailed():
            return problem(503, f"The index does not answer: {error}.", code="index_down")
        case ServingUnavailable():
            told = f"The model that reads texts does not answer; looking from a company still works. {error}."
            return problem(503, told, code="serving_down")
        case FeedbackFull():
            return problem(503, f"The answer could not be kept. {error}.", code="feedback_full")
        case FeedbackDown():
            return problem(503, f"The answer could not be kept; please give it again. {error}.", code="feedback_down")
        case ListRefused():
            fix = "Send the `shown` of a list as it came, with a company of that list; ask again for a new one."
            return problem(422, f"{error}.", fix, error.args[0])
        case TextsRefused() | TextRefused():
            return problem(422, "The model cannot read this text.", code="text_refused")
        case _:
            return problem(422, f"{str(error)[:300]}.")


async def _told(_: Request, error: Exception) -> Response:
    response = of_error(error)
    if response.status_code == 503:
        log.warning("%s: %s", type(error).__name__, error)  # none of these quotes what was asked
    return response


async def _validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(400, "The body is not JSON.")
    place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    said = str(first["msg"]).removeprefix("Value error, ")
    return problem(422, f"{place[:100]}: {said[:300]}.")


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: "There is nothing at this address.", 405: "This address does not take that method."}
    response = problem(error.status_code, told.get(error.status_code, str(error.detail)))
    response.headers.update(error.headers or {})
    return response
