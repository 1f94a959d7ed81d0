"""The page and its files, and the documentation of the API."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from search.documentation import document

PAGE = Path(__file__).parents[1] / "page"


def add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index(_: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs(_: Request) -> Response:
        return HTMLResponse(document(app.openapi()))

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
