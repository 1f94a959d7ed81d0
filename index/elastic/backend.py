"""The back end for production: an address is `http(s)://host:9200/alias` of an Elasticsearch."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from index.backend import Backend, Sibling
from index.base import Index, Spec

PORT = 9200


class ElasticBackend(Backend):
    """An Elasticsearch, which may be on any machine and keeps feedback in an index beside."""

    name = "elasticsearch"
    is_remote = True

    def open(self, url: str, create: Spec | None, retry_seconds: float | None) -> Index:
        from index.elastic.store import open_elastic  # the client takes a second to import

        return open_elastic(url, create, retry_seconds)

    def local(self, url: str, what: str) -> Path:
        """Under build/: beside an index on a server there is no folder."""
        parts = urlsplit(url)
        first = urlsplit(f"//{parts.netloc.partition(',')[0]}")
        host = f"{first.hostname}_{first.port or PORT}".replace(":", "_")
        return Path("build", what, host, parts.path.strip("/") or "index")

    def beside(self, url: str, what: str) -> Sibling:
        from index.elastic.sibling import ElasticSibling

        return ElasticSibling(url, what)


ELASTIC = ElasticBackend()
