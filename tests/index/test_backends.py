"""Which back end an address means, and what the rest of the house is told about it."""

import pytest
from commands import answer
from companies import DIMENSION, MODEL, company
from memory_backend import MemoryBackend

from index.__main__ import main
from index.base import Spec
from index.errors import IndexUnusable
from index.open import BACKENDS, backend_of, indices_in, open_index
from pipelines.options import Options
from search.access.secret import installation_secret
from search.feedback.store import open_feedback
from search.ranking.companies import Companies


@pytest.mark.parametrize(
    ("url", "name", "is_remote"),
    [
        ("build/index", "lance", False),
        ("/var/index", "lance", False),
        ("lance:///var/index", "lance", False),
        ("http://host:9200/companies", "elasticsearch", True),
        ("https://one,two/prefix/companies", "elasticsearch", True),
    ],
)
def test_an_address_means_one_back_end(url, name, is_remote):
    assert (backend_of(url).name, backend_of(url).is_remote) == (name, is_remote)


@pytest.mark.parametrize("url", ["qdrant://host/companies", "s3://bucket/index", "HTTP://host/companies", "://x"])
def test_an_address_of_no_back_end_is_refused(url):
    with pytest.raises(IndexUnusable, match="is not the address of an index"):
        backend_of(url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("build/demo/index", "build/demo/index-dead_letters"),
        ("build/demo/index/", "build/demo/index-dead_letters"),
        ("lance:///var/index", "/var/index-dead_letters"),
        ("http://host/companies", "build/dead_letters/host_9200/companies"),
        ("https://host:9243/prefix/companies", "build/dead_letters/host_9243/prefix/companies"),
        ("http://[::1]:9200/companies", "build/dead_letters/__1_9200/companies"),
        ("http://one:9201,two:9202/companies", "build/dead_letters/one_9201/companies"),
    ],
)
def test_dead_letters_stand_beside_an_embedded_index_and_else_under_build(url, path):
    assert Options(index=url).dead_letters == path


def test_two_addresses_of_one_directory_are_one_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    addresses = [
        "here/index",
        "here/../here/index/",
        str(tmp_path / "here" / "index"),
        f"lance://{tmp_path}/here/index",
    ]
    assert len({backend_of(url).identity(url) for url in addresses}) == 1
    assert backend_of("here/other").identity("here/other") != backend_of(addresses[0]).identity(addresses[0])


def test_the_indices_in_a_folder_are_found(tmp_path):
    urls = [str(tmp_path / name) for name in ("a", "b/index", "c/d/index")]
    for url in urls:
        open_index(url, create=Spec(MODEL, DIMENSION))
    (tmp_path / "e").mkdir()
    assert list(indices_in(tmp_path)) == urls


def test_one_line_makes_a_back_end_known_to_commands_pipeline_and_search(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(BACKENDS, "memory", MemoryBackend())
    url = "memory://mine"
    open_index(url, create=Spec(MODEL, DIMENSION)).write([company("a")])
    code, told, _ = answer(capsys, main, "status", "--index", url)
    assert code == 0 and f"companies-{MODEL}-1" in told
    assert Options(index=url).dead_letters == "build/dead_letters/mine"
    assert Companies(open_index(url)).kind == "memory"
    assert open_feedback(url).where == "build/feedback/mine.jsonl"
    assert installation_secret(url).key("x") == installation_secret(url).key("x")
