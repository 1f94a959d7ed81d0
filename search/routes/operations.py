"""Liveness, readiness, status and metrics, for operators."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from search.access.scopes import PUBLIC, READ, open_to
from search.metrics import CONTENT_TYPE
from search.resources import Resources
from search.routes import schemas
from search.routes.responses import moment


def operation_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", summary="The process lives")
    @open_to(PUBLIC)
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.get(
        "/readyz",
        summary="Index and endpoint answer, and are of one model",
        response_model=schemas.Readiness,
        responses={503: {"model": schemas.Readiness, "description": "What is missing"}},
    )
    @open_to(PUBLIC)
    def readyz() -> Response:
        ready = resources.health.readiness()
        return Response(orjson.dumps(ready.model_dump()), 200 if ready.ready else 503, media_type="application/json")

    @router.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    @open_to(PUBLIC)
    def metrics() -> Response:  # in a thread: it asks index and endpoint how they are
        return Response(resources.metrics.exposition(), media_type=CONTENT_TYPE)

    return router


def status_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/v1/status", summary="Model, number of companies, newest record")
    @open_to(READ)
    def status() -> schemas.Status:
        known = resources.health.status()
        return schemas.Status(
            model=known.model,
            dimension=known.dimension,
            companies=known.live,
            newest_record=moment(known.newest_version),
            index=resources.companies.kind,
            serving=resources.health.readiness().serving == "ok",
        )

    return router
