"""The search service: an API over an index and an endpoint, and the page that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from index.base import Index
from search import problems
from search.access import Declared
from search.companies import Companies
from search.encoder import Embedder, Encoder
from search.feedback import Feedback, open_feedback
from search.gate import Gate
from search.headers import SecurityHeaders
from search.health import Health
from search.hosts import Hosts
from search.list_ids import ListIds
from search.metrics import Metrics
from search.recorder import Recorder
from search.resources import Resources
from search.routes.companies import company_routes
from search.routes.feedback import feedback_routes
from search.routes.maps import map_routes
from search.routes.operations import operation_routes, status_routes
from search.routes.page import add_page
from search.routes.search import search_routes
from search.secret import Secret, installation_secret
from search.settings import Settings
from search.watch import Watch

DESCRIPTION = (
    "Which companies are like this one, and why. Scores are cosines of the companies' vectors unless `scored_by` says "
    "otherwise. Errors are one sentence for a person, with a code for machines."
)


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
    )
    problems.handle(app)
    # The key itself is looked at by the gate, before a body is read; this is for the document.
    needs_key = [Depends(HTTPBearer(auto_error=False, description="where keys are on"))] if settings.keys else []
    for routes in (company_routes, search_routes, map_routes, feedback_routes, status_routes):
        app.include_router(routes(resources), responses=problems.RESPONSES, dependencies=needs_key)
    app.include_router(operation_routes(resources))
    add_page(app)
    Declared(app.routes).require_all()
    # The last to be added is the first to see a request.
    app.add_middleware(Gate, settings=settings, secret=secret, routes=app.routes)
    app.add_middleware(Hosts, hosts=settings.hosts, any_address=settings.any_address)
    app.add_middleware(Watch, metrics=resources.metrics, log_queries=settings.log_queries)
    app.add_middleware(SecurityHeaders)
    return app


def _resources(index: Index, embedder: Embedder, settings: Settings, feedback: Feedback, secret: Secret) -> Resources:
    companies, metrics = Companies(index), Metrics()
    encoder = Encoder(embedder, index.url, settings.cached_vectors)
    recorder = Recorder(feedback, metrics.dropped)
    return Resources(companies, encoder, Health(companies, encoder), feedback, recorder, ListIds(secret), metrics)
