"""The overlays hold against schemas and code, and mistakes that an operator could make are each named by a check."""

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from real_servers import available

from infra.checks.cluster import render
from infra.checks.cluster.commands import paths
from infra.checks.kubernetes import CHECKS
from infra.local import go
from infra.local.processes import Unavailable

ROOT = Path(__file__).parents[3]
KUBERNETES = "infra/kubernetes"
QUICK = [check for check in CHECKS if not check.slow]
SLOW = [check.name.removeprefix("kubernetes: ") for check in CHECKS if check.slow]
FULL = pytest.mark.skipif(os.environ.get("FULL") != "1", reason="builds or installs for minutes; FULL=1 does")
PLANTED = [
    pytest.param(check, *(one[key] for key in ("file", "before", "after", "told")), marks=[FULL] * (check in SLOW))
    for check, mistakes in yaml.safe_load(Path(__file__).with_name("planted_kubernetes.yaml").read_text()).items()
    for one in mistakes
]


@pytest.fixture
def copy(tmp_path):
    """One overlay, with all that it is made of."""
    shutil.copytree(ROOT / KUBERNETES, tmp_path / KUBERNETES, ignore=shutil.ignore_patterns("large", "external"))
    (tmp_path / "serving").mkdir()
    shutil.copy(ROOT / "serving" / "Dockerfile", tmp_path / "serving")
    return tmp_path


def run(name, root):
    (check,) = [one for one in CHECKS if one.name == f"kubernetes: {name}"]
    return available(lambda: check.run(root))


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
def test_nothing_is_wrong_with_the_overlays_as_they_are(check):
    assert len(render.folders(ROOT)) >= 3
    assert available(lambda: check.run(ROOT)) == []


@pytest.mark.parametrize(("check", "file", "before", "after", "told"), PLANTED)
def test_a_planted_mistake_is_named(copy, check, file, before, after, told):
    path = copy / KUBERNETES / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    found = run(check, copy)
    assert any(told in line for line in found), found
    assert all(line.startswith(KUBERNETES) for line in found)


@FULL
def test_a_command_of_the_readme_that_fails_is_named(copy):
    readme = copy / KUBERNETES / "README.md"
    readme.write_text(readme.read_text().replace("--from=cronjob/pause-reindex\n", "--from=cronjob/pause-move\n"))
    found = run("the README's commands", copy)
    assert any('cronjobs.batch "pause-move" not found' in line for line in found), found


@FULL
def test_the_api_server_refuses_what_schemas_let_pass(copy):
    mistakes = {
        "base/serving.yaml": ("minReplicas: 2", "minReplicas: 7", "must be greater than or equal to `minReplicas`"),
        "base/search.yaml": ("runAsUser: 65534", "runAsUser: 0", 'violates PodSecurity "restricted:latest"'),
        "base/jobs.yaml": ('schedule: "0 2 * * *"', 'schedule: "0 26 * * *"', "end of range (26) above maximum"),
        "components/stream/stream.yaml": ("name: metrics, containerPort", "name: metrics-of-the-stream, containerPort",
                                          "must be no more than 15 characters"),
        "components/monitors/monitors.yaml": ("interval: 15s", "interval: often", 'spec.endpoints[0].interval in body'),
    }  # fmt: skip
    for file, (before, after, _) in mistakes.items():
        path = copy / KUBERNETES / file
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after, 1))
    found = run("a real API server", copy)
    assert [told for *_, told in mistakes.values() if not any(told in line for line in found)] == []


def test_an_overlay_that_does_not_render_is_not_passed_over(copy):
    shutil.rmtree(copy / KUBERNETES / "overlays" / "small")
    assert run("overlays render", copy) == [f"{KUBERNETES}/overlays: there is no overlay"]


def test_without_kubectl_and_go_one_line_says_what_to_install(copy, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go.processes, "FOLDER", tmp_path / "local")
    with pytest.raises(Unavailable, match="kustomize is built with Go and there is no `go` here"):
        render.overlays(copy)


def answer(address):
    try:
        with urllib.request.urlopen(address, timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_every_path_that_a_probe_of_the_server_asks_for_is_answered(server):
    assert {path: answer(f"{server.rest}{path}") for path in paths("serving")} == dict.fromkeys(paths("serving"), 200)
    assert answer(f"{server.rest}/v1/models/none/metadata") == 404
