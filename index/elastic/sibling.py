"""An index beside the companies' own, for whoever shares them: <alias>-feedback, <alias>-secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from elasticsearch import ApiError, Elasticsearch

from index.elastic.cluster.aliases import Aliases
from index.elastic.cluster.connection import Address, Credentials, connect
from index.elastic.cluster.retry import Retry, reason
from index.elastic.pages import walk

Result = TypeVar("Result")


class ElasticSibling:
    """Reached as the index is: by its address, and by the credentials in the environment."""

    def __init__(self, index_url: str, what: str):
        address = Address.parse(index_url)
        self.url, self.name = f"{index_url}-{what}", f"{address.alias}-{what}"
        self.client: Elasticsearch = connect(address, Credentials.from_environment())
        self._index_url, self._alias = index_url, address.alias

    def call(self, request: Callable[[], Result], seconds: float) -> Result:
        return Retry(self._index_url, seconds).call(request)

    def pages(self, query: dict[str, Any], size: int, seconds: float) -> Iterator[list[dict[str, Any]]]:
        aliases = Aliases(self._index_url, self.client, self._alias)
        aliases.retry_seconds = seconds
        return walk(aliases, self.name, query, size, True)

    def reason(self, error: Any) -> str:
        if isinstance(error, ApiError):
            return reason(error.body)
        return " ".join(str(error).split())[:300] if isinstance(error, Exception) else reason({"error": error})
