"""A page whose name is made to point at this machine gets no answer; people who use the service's own names do."""

import pytest

from common.errors import InputError
from search.access.hosts import named

OWN = """localhost localhost:8000 LOCALHOST localhost. 127.0.0.1 127.0.0.1:99 [::1] [::1]:8000
[0:0:0:0:0:0:0:1]:8000""".split()
FOREIGN = """evil.example evil.example:8000 localhost.evil.example 127.0.0.1.evil.example evil.example#localhost [::1
::1 localhost:x localhost/ 127.1 2130706433 user@localhost [::1]evil 10.0.0.1 localhost,evil.example""".split()


def test_the_names_of_this_machine_are_its_own(client):
    for host in OWN:
        assert client.get("/v1/companies/air-a", headers={"Host": host}).status_code == 200, host


def test_other_names_are_refused_everywhere(client):
    for host in (*FOREIGN, "", "ⓛocalhost".encode()):
        for path in ("/", "/v1/companies/air-a", "/healthz", "/metrics", "/nothing", "/static/style.css"):
            answer = client.get(path, headers={"Host": host})
            assert (answer.status_code, answer.json()["error"]["code"]) == (421, "unknown_host"), (host, path)
            assert "--hosts" in answer.json()["error"]["fix"]


def test_two_names_at_once_are_refused(client):
    assert client.get("/healthz", headers=[("Host", "localhost"), ("Host", "evil.example")]).status_code == 421


def test_names_that_are_given_are_taken(serve):
    client = serve(hosts=named("pause.example,[2001:db8::7]"))
    assert client.get("/healthz", headers={"Host": "Pause.Example:443"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "[2001:DB8:0::7]:443"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "other.example"}).status_code == 421


def test_any_name_is_taken_only_where_that_is_chosen(serve):
    assert serve(hosts=named("*")).get("/healthz", headers={"Host": "evil.example"}).status_code == 200


def test_a_probe_by_address_is_answered_where_the_service_is_for_others(serve):
    client = serve(any_address=True)
    assert client.get("/readyz", headers={"Host": "10.1.2.3:8000"}).status_code == 200
    assert client.get("/readyz", headers={"Host": "[fd00::3]:8000"}).status_code == 200
    assert client.get("/readyz", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "given", ["", "pause.example,", "pause.example:443", "https://pause.example", "*.example", "a b"]
)
def test_what_is_no_name_is_told(given):
    with pytest.raises(InputError, match="--hosts"):
        named(given)
