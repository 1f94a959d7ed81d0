"""What an index says of itself in its mapping's `_meta`: changed one note at a time."""

from __future__ import annotations

import threading
from typing import Any

from elasticsearch import Elasticsearch

from index.elastic.cluster.retry import Retry

# Elasticsearch replaces `_meta` as a whole: threads of one process take turns. Of two processes one may undo the
# other's note: each of the notes is made again, by a heartbeat or by the next who needs it.
_changing = threading.Lock()


class Meta:
    """Of one physical index."""

    def __init__(self, url: str, client: Elasticsearch, index: str):
        self._url, self._client, self._index = url, client, index

    def read(self) -> dict[str, Any]:
        response = Retry(self._url).call(lambda: self._client.indices.get_mapping(index=self._index))
        meta: dict[str, Any] = response[self._index]["mappings"]["_meta"]
        return meta

    def write(self, name: str, note: Any) -> None:
        """None takes it away."""
        with _changing:
            rest = {other: value for other, value in self.read().items() if other != name}
            changed = rest if note is None else {**rest, name: note}
            Retry(self._url).call(lambda: self._client.indices.put_mapping(index=self._index, meta=changed))
