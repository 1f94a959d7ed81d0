"""The search service: an API over an index and an endpoint, and the page that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig

from index.base import Index
from search import problems
from search.access.access_log import AccessLog
from search.access.auth import Auth
from search.access.headers import SecurityHeaders
from search.access.hosts import Hosts
from search.access.scopes import Declared
from search.access.secret import Secret, installation_secret
from search.access.traced import Traced
from search.feedback.list_ids import ListIds
from search.feedback.recorder import Recorder
from search.feedback.store import Feedback, open_feedback
from search.health import Health
from search.metrics import Metrics
from search.ranking.companies import Companies
from search.ranking.encoder import Embedder, Encoder
from search.resources import Resources
from search.routes.companies import company_routes
from search.routes.feedback import feedback_routes
from search.routes.maps import map_routes
from search.routes.operations import operation_routes, status_routes
from search.routes.page import add_page
from search.routes.search import search_routes
from search.settings import Settings
from serving.tracing import spans

DESCRIPTION = (
    "Which companies are like this one, and why. Scores are cosines of the companies' vectors unless `scored_by` says "
    "otherwise. Errors are one sentence for a person, with a code for machines."
)

# FastAPI's own spans would hold the query of every address, which is what people look for, and every probe; ours are
# those of access/traced.py.
NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(
    index: Index, embedder: Embedder, settings: Settings | None = None, feedback: Feedback | None = None
) -> FastAPI:
    """Answers are kept beside the index, unless in the store that is given."""
    settings = settings or Settings()
    secret = installation_secret(index.url, settings.secret_file)
    feedback = feedback or open_feedback(index.url, settings.feedback_bytes)
    resources = _resources(index, embedder, settings, feedback, secret)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        resources.recorder.start()
        try:
            yield
        finally:
            resources.recorder.stop()

    app = FastAPI(
        title="PAUSE",
        description=DESCRIPTION,
        version="1",
        lifespan=lifespan,
        docs_url=None,  # its page fetches scripts from elsewhere; ours does not
        redoc_url=None,
        openapi_url=None,  # is a route of the page's, which says that it is public
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    problems.handle(app)
    # The key itself is looked at by Auth, before a body is read; this is for the document.
    needs_key = [Depends(HTTPBearer(auto_error=False, description="where keys are on"))] if settings.keys else []
    for routes in (company_routes, search_routes, map_routes, feedback_routes, status_routes):
        app.include_router(routes(resources), responses=problems.RESPONSES, dependencies=needs_key)
    app.include_router(operation_routes(resources))
    add_page(app)
    Declared(app.routes).require_all()
    # The last to be added is the first to see a request.
    app.add_middleware(Auth, settings=settings, secret=secret, routes=app.routes)
    app.add_middleware(Hosts, hosts=settings.hosts, any_address=settings.any_address)
    app.add_middleware(AccessLog, metrics=resources.metrics, log_queries=settings.log_queries)
    app.add_middleware(SecurityHeaders)
    if spans.is_on():
        app.add_middleware(Traced)
    return app


def _resources(index: Index, embedder: Embedder, settings: Settings, feedback: Feedback, secret: Secret) -> Resources:
    metrics = Metrics()
    companies = Companies(index, metrics.index_took)
    encoder = Encoder(embedder, index.url, settings.cached_vectors, metrics.encoding_took)
    health, recorder = Health(companies, encoder), Recorder(feedback, metrics.dropped)
    metrics.watch(companies.kind, health)
    return Resources(companies, encoder, health, feedback, recorder, ListIds(secret), metrics)
