"""The rights of compose/roles.tsv in a real Elasticsearch: enough for the pipeline and for search, and no more.

Roles and users come from its files here: the build of it that can be had without Docker has no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common.command import exit_code
from common.errors import InputError
from infra.local.distribution import fetch, find_java
from infra.local.elasticsearch import NOBODY, Elasticsearch, Security
from infra.local.processes import ROOT, NotStarted

FILE = Path("infra/compose/roles.tsv")
PASSWORD = "a password of this check"
FOLLOWED_SECONDS = 60.0  # it looks at its files every five
MODEL = "feedfacefeedface"


def roles(root: Path) -> list[str]:
    lines = (root / FILE).read_text().splitlines()
    known = {name: json.loads(rights) for name, rights in (line.split("\t") for line in lines)}
    with tempfile.TemporaryDirectory() as name:
        secrets = Path(name) / "secrets"
        subprocess.run(["bash", str(root / "infra/compose/secrets.sh"), str(secrets)], check=True)
        security = Security(secrets / "elasticsearch.pem", secrets / "elasticsearch.key", PASSWORD)
        with Elasticsearch(security) as server:
            _add(server.folder / "config", known)
            access = {"PAUSE_ES_CA": str(secrets / "ca.pem"), "PAUSE_ES_PASSWORD": PASSWORD}
            url = f"{server.address}/companies"
            # In this order: search reads what the pipeline wrote.
            said = [_as("pipeline", url, access), _as("search", url, access)]
    return [f"{FILE}: {line}" for line in said if line]


def _add(config: Path, known: dict[str, object]) -> None:
    environment = {**os.environ, "ES_JAVA_HOME": str(find_java()), "ES_PATH_CONF": str(config)}
    (config / "roles.yml").write_text("\n".join(f"pause_{name}: {json.dumps(known[name])}" for name in known) + "\n")
    for name in known:
        command = [str(fetch() / "bin" / "elasticsearch-users"), "useradd", f"pause_{name}", "-p", PASSWORD]
        run = subprocess.run([*command, "-r", f"pause_{name}"], env=environment, capture_output=True, text=True)
        if run.returncode:
            raise NotStarted(f"Elasticsearch took no user: {' '.join((run.stdout + run.stderr).split())[-300:]}")
    if os.geteuid() == 0:
        for path in config.iterdir():
            os.chown(path, NOBODY, NOBODY)


def _as(role: str, url: str, access: dict[str, str]) -> str:
    """What went wrong with the work of `role`; "" where nothing did. A user is known late."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAUSE_")}
    environment = {**clean, **access, "PAUSE_ES_USER": f"pause_{role}"}
    command = [sys.executable, "-m", "infra.checks.containers.roles", role, url]
    deadline = time.monotonic() + FOLLOWED_SECONDS
    while True:
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        known = "401" not in run.stderr
        if known or time.monotonic() > deadline:
            return f"{role}: {' '.join(run.stderr.split())[-400:]}" if run.returncode else ""
        time.sleep(1)


def pipeline(url: str) -> None:
    """Makes the index, fills it, looks at it, purges it, drops what moves left behind."""
    import numpy as np

    from index.__main__ import main as index
    from index.base import Spec
    from index.document import Document, text_hash
    from index.open import open_index

    _require(index(["create", "--index", url, "--model", MODEL, "--dimension", "4"]) == 0, "index create")
    document = Document("a", 1, name="A", description="Makes a", model=MODEL, text_hash=text_hash("Makes a"),
                        embedding=np.array([1, 0, 0, 0], np.float32))  # fmt: skip
    made = open_index(url, create=Spec(MODEL, 4))
    _require([outcome.status for outcome in made.write([document])] == ["indexed"], "write")
    made.refresh()
    _require([batch[0].id for batch in made.scan()] == ["a"], "scan")
    for words in (["status"], ["purge", "--older-than", "30d"], ["drop", "--former"]):
        _require(index([*words, "--index", url]) == 0, f"index {words[0]}")


def search(url: str) -> None:
    """Asks the index, and keeps answers beside it; may not write to it."""
    import numpy as np
    from elasticsearch import ApiError, AuthorizationException

    from index.open import backend_of, open_index
    from search.feedback.store import Shown, open_feedback

    index = open_index(url, retry_seconds=2.0)
    hits = index.nearest(np.array([1, 0, 0, 0], np.float32), 1, model=MODEL)
    _require([hit.document.id for hit in hits] == ["a"], "nearest")
    _require(bool(index.suggest("a")) and bool(index.status()), "suggest and status")
    feedback = open_feedback(url)
    feedback.add([Shown("list", 1, "ann", MODEL, "text", (), (), ("a",))])
    beside = backend_of(url).beside(url, "feedback")
    assert not isinstance(beside, Path)
    client = beside.client
    for what, attempt in (("write to", lambda: client.index(index="companies", document={})),
                          ("delete", lambda: client.indices.delete(index=f"companies-{MODEL}-1"))):  # fmt: skip
        try:
            attempt()
        except AuthorizationException:
            continue
        except ApiError as error:
            raise InputError(f"an attempt to {what} the index ended with {error}") from error
        raise InputError(f"search may {what} the index")


def _require(done: bool, what: str) -> None:
    if not done:
        raise InputError(f"{what} failed")


if __name__ == "__main__":
    sys.exit(exit_code(lambda: {"pipeline": pipeline, "search": search}[sys.argv[1]](sys.argv[2])))
