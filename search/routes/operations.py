"""For whoever runs the service: is it there, is it ready, what is in it, what does it do."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from search import wire
from search.access import PUBLIC, READ, open_to
from search.answers import moment
from search.metrics import CONTENT_TYPE
from search.resources import Resources


def operation_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", summary="The process lives")
    @open_to(PUBLIC)
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.get(
        "/readyz",
        summary="Index and endpoint answer, and are of one model",
        response_model=wire.Readiness,
        responses={503: {"model": wire.Readiness, "description": "What is missing"}},
    )
    @open_to(PUBLIC)
    def readyz() -> Response:
        ready = resources.health.readiness()
        return Response(orjson.dumps(ready.model_dump()), 200 if ready.ready else 503, media_type="application/json")

    @router.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    @open_to(PUBLIC)
    async def metrics() -> Response:
        return Response(resources.metrics.exposition(), media_type=CONTENT_TYPE)

    return router


def status_routes(resources: Resources) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/v1/status", summary="Model, number of companies, newest record")
    @open_to(READ)
    def status() -> wire.Status:
        known = resources.health.status()
        return wire.Status(
            model=known.model,
            dimension=known.dimension,
            companies=known.live,
            newest_record=moment(known.newest_version),
            index=resources.companies.kind,
            serving=resources.health.readiness().serving == "ok",
        )

    return router
