"""Routes say whom they are open to; nothing else opens them, and no spelling of an address gets around it."""

import pytest
from market import MARKET
from raw_http import connect, rest, running
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from search import keys
from search.access.scopes import READ, Declared, RouteUndeclared, open_to
from search.app import create_app
from search.server import server_config
from search.settings import Settings

PATHS = ["/v1/added", "/added", "/static-added", "/v2/added"]


@pytest.fixture
def app(index, embedder, tmp_path):
    keys.add(tmp_path / "keys", "ann", "read")
    return create_app(index, embedder, Settings(rate=0, keys=str(tmp_path / "keys")))


def client(app):
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def test_a_route_that_says_nothing_is_closed(app):
    def added() -> str:
        return "let in"

    for path in PATHS:
        app.get(path)(added)
    with client(app) as asking:
        for path in PATHS:
            answer = asking.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")


def test_what_is_mounted_without_a_word_is_closed(app):
    app.mount("/more", PlainTextResponse("let in"))
    with client(app) as asking:
        assert asking.get("/more/anything").status_code == 403


def test_an_app_with_a_route_that_says_nothing_is_not_made(app):
    Declared(app.routes).require_all()  # as it was made

    @app.get("/v1/added")
    def added() -> str:
        return "let in"

    with pytest.raises(RouteUndeclared, match="/v1/added"):
        Declared(app.routes).require_all()


def test_a_route_opens_to_the_scope_it_names(app, tmp_path):
    @app.get("/elsewhere")
    @open_to(READ)
    def added() -> str:
        return "let in"

    key = keys.add(tmp_path / "keys", "bob", "read")
    with client(app) as asking:
        assert asking.get("/elsewhere").status_code == 401
        assert asking.get("/elsewhere", headers={"Authorization": f"Bearer {key}"}).status_code == 200


TRICKS = [
    "//v1/companies/air-a",
    "/v1//companies/air-a",
    "/V1/companies/air-a",
    "/v1/companies/air-a/",
    "/v1/./companies/air-a",
    "/static/../v1/companies/air-a",
    "/static/..%2fv1/companies/air-a",
    "/%76%31/companies/air-a",
    "/v1%2fcompanies%2fair-a",
    "/v1/companies/air-a%00",
    "/v1/companies/air-a;/healthz",
    "/v1/companies/air-a/../../../healthz",
    "/v1/companies/air-a%2f..%2f..%2f..%2fhealthz",
    "/healthz/../v1/companies/air-a",
    "/docs/v1/companies/air-a",
    "/v1\\companies/air-a",
    "/v1/companies/air-a/similar%2f",
    "http://localhost/v1/companies/air-a",
    "http://localhost//v1/companies/air-a",
]


def test_no_spelling_of_an_address_goes_around_the_key(app):
    """Over a socket: clients put such addresses right before they send them."""
    with running(server_config(app)) as port:
        for path in TRICKS:
            for method in ("GET", "HEAD", "OPTIONS", "POST", "TRACE", "PROPFIND"):
                with connect(port) as client:
                    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                    client.sendall(request.encode())
                    said = rest(client).decode()
                assert int(said.split(" ")[1]) in (400, 401, 404, 405), (method, path, said)
                assert all(company.description not in said for company in MARKET)


def test_behind_a_prefix_the_key_is_asked_for_as_well(app):
    with TestClient(app, base_url="http://localhost", root_path="/prefix") as asking:
        assert asking.get("/prefix/v1/companies/air-a").status_code in (401, 404)
        assert asking.get("/v1/companies/air-a").status_code in (401, 404)


def test_a_websocket_opens_nothing(app):
    with client(app) as asking, pytest.raises(WebSocketDisconnect), asking.websocket_connect("/v1/companies/air-a"):
        pass


def test_the_page_and_its_document_are_public_and_their_routes_say_so(app):
    with client(app) as asking:
        for path in ("/", "/docs", "/openapi.json", "/static/style.css", "/healthz", "/readyz", "/metrics"):
            assert asking.get(path).status_code == 200, path
