"""A question's span: in the caller's trace, under the route's name, without what was asked."""

from traces import new_traceparent


def test_a_question_is_in_the_trace_of_who_asks_it(exported, client):
    header, trace = new_traceparent()
    asked = {"text": "secret plans", "mode": "hybrid"}
    assert client.post("/v1/search", json=asked, headers={"traceparent": header}).status_code == 200
    found = {span.name: span for span in exported()}
    assert {f"{span.context.trace_id:032x}" for span in found.values()} == {trace}
    question = found["POST /v1/search"]
    assert question.kind.name == "SERVER" and question.attributes["http.response.status_code"] == 200
    for name in ("embed", "index ranked", "index get"):
        assert found[name].parent.span_id == question.context.span_id
    assert "secret" not in "".join(span.to_json() for span in found.values())


def test_what_is_typed_in_an_address_is_in_no_span(exported, client):
    assert client.get("/v1/suggest", params={"prefix": "Secr"}).status_code == 200
    assert client.get("/v1/companies/secret-id").status_code == 404
    assert "ecr" not in "".join(span.to_json() for span in exported())
    questions = {span.name: span.attributes["http.response.status_code"] for span in exported() if not span.parent}
    assert questions == {"GET /v1/suggest": 200, "GET /v1/companies/{id:path}": 404}


def test_probes_and_the_page_itself_have_no_spans(exported, client):
    for path in ("/healthz", "/"):
        assert client.get(path).status_code == 200, path
    assert exported() == ()
    for path in ("/readyz", "/metrics"):  # ask index and endpoint, which have theirs
        client.get(path)
    assert not [span for span in exported() if span.kind.name == "SERVER"]


def test_a_page_s_header_is_taken_by_a_service_that_is_not_traced(client):
    header, _ = new_traceparent()
    for given in (header, "garbage", "\x7f" * 5000):
        assert client.get("/v1/facets", headers={"traceparent": given}).status_code == 200
