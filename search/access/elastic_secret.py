"""The secret that all services of one Elasticsearch index share: a document of the index <alias>-secret."""

from __future__ import annotations

import os

from elasticsearch import AuthorizationException, BadRequestError, ConflictError, Elasticsearch, NotFoundError

from index.backend import Sibling
from index.errors import IndexUnusable
from search.access.secret import BYTES, of_this_process

SECONDS = 30.0  # without it a service does not start
ID = "secret"
MAPPING = {"dynamic": False}


def kept_in_elasticsearch(sibling: Sibling) -> bytes:
    """One for all services: the server lets the first one write it, and the others read what that wrote."""
    client, name = sibling.client, sibling.name
    try:
        return sibling.call(lambda: _read(client, name) or _made(client, name), SECONDS)
    except IndexUnusable as error:
        if not isinstance(error.__cause__, AuthorizationException):
            raise
        return of_this_process(sibling.url, "this user may not write there")
    finally:
        client.close()


def _read(client: Elasticsearch, name: str) -> bytes | None:
    try:
        return bytes.fromhex(client.get(index=name, id=ID)["_source"]["secret"])
    except NotFoundError:
        return None


def _made(client: Elasticsearch, name: str) -> bytes:
    try:
        client.indices.create(index=name, mappings=MAPPING)
    except BadRequestError as error:
        if error.error != "resource_already_exists_exception":
            raise
    value = os.urandom(BYTES)
    try:
        client.create(index=name, id=ID, document={"secret": value.hex()})
    except ConflictError:
        return _read(client, name) or value
    return value
