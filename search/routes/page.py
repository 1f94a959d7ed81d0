"""The page and its files, and the documentation of the API."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from search.access.scopes import PUBLIC, open_to
from search.routes.documentation import document

PAGE = Path(__file__).parents[1] / "page"


def add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    @open_to(PUBLIC)
    async def index(_: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    @app.get("/openapi.json", include_in_schema=False)
    @open_to(PUBLIC)
    async def openapi(_: Request) -> Response:
        return JSONResponse(app.openapi())

    @app.get("/docs", include_in_schema=False)
    @open_to(PUBLIC)
    async def docs(_: Request) -> Response:
        return HTMLResponse(document(app.openapi()))

    app.mount("/static", open_to(PUBLIC)(StaticFiles(directory=PAGE)), name="static")
