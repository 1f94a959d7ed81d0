"""The OpenAPI document, and the page made of it."""

import re

from search import keys
from search.routes.documentation import document

QUESTIONS = {
    ("get", "/v1/companies/{id}"),
    ("get", "/v1/companies/{id}/similar"),
    ("post", "/v1/search"),
    ("get", "/v1/suggest"),
    ("get", "/v1/facets"),
    ("post", "/v1/feedback"),
    ("get", "/v1/map"),
    ("post", "/v1/map"),
    ("get", "/v1/status"),
}


def operations(openapi):
    return {(method, path): one for path, methods in openapi["paths"].items() for method, one in methods.items()}


def test_every_question_is_documented_with_its_refusals(client):
    found = operations(client.get("/openapi.json").json())
    assert found.keys() >= QUESTIONS
    for name in QUESTIONS:
        assert found[name]["responses"].keys() >= {"400", "401", "403", "413", "422", "429", "503"}, name
        for status, response in found[name]["responses"].items():
            if int(status) >= 400:
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert "404" in found["get", "/v1/companies/{id}"]["responses"]
    assert "204" in found["post", "/v1/feedback"]["responses"]


def test_bodies_and_companies_have_examples(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("SearchQuestion", "FeedbackGiven", "Company", "Problem"):
        assert schemas[name]["examples"], name


def test_the_examples_are_accepted(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for example in schemas["SearchQuestion"]["examples"]:
        # The companies of the examples are not in this index, but nothing else is wrong with them.
        assert client.post("/v1/search", json=example).status_code in (200, 404)
    for example in schemas["FeedbackGiven"]["examples"]:
        # No list is shown under a name that somebody wrote down.
        refused = client.post("/v1/feedback", json=example)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_shown")


def test_keys_are_in_the_document_where_they_are_on(serve, tmp_path):
    keys.add(tmp_path / "keys", "ann", "read")
    secured = operations(serve(keys=str(tmp_path / "keys")).get("/openapi.json").json())
    assert secured["get", "/v1/facets"]["security"]
    assert "security" not in secured["get", "/healthz"]
    open_ = operations(serve().get("/openapi.json").json())
    assert "security" not in open_["get", "/v1/facets"]


def test_the_page_names_every_question_and_loads_nothing_from_elsewhere(client):
    page = client.get("/docs").text
    for method, path in QUESTIONS:
        assert f"<code>{method.upper()} {path}</code>" in page
    assert not re.search(r"(?:src|href)='(?:https?:)?//", page)
    assert "<script" not in page


def test_what_the_document_says_is_text_on_the_page():
    hostile = "<img src=x onerror=alert(1)>"
    operation = {"summary": hostile, "description": hostile, "responses": {"200": {"description": hostile}}}
    schemas = {hostile: {"description": hostile, "properties": {hostile: {"type": "string"}}, "examples": [hostile]}}
    page = document(
        {"info": {"title": hostile}, "paths": {hostile: {"get": operation}}, "components": {"schemas": schemas}}
    )
    assert "<img" not in page
    assert page.count("&lt;img") >= 8


def test_unknown_addresses_and_methods_are_answered_in_the_same_form(client):
    assert client.get("/v1/nothing").json()["error"]["code"] == "not_found"
    refused = client.put("/v1/search", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (405, "method_not_allowed")


def test_the_page_and_its_files_are_there(client):
    assert "<title>" in client.get("/").text
    assert client.get("/static/docs.css").status_code == 200
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
