"""A version that is withdrawn while a server loads it: at each step of the load, by the real code of both sides."""

import json
import logging
import shutil
from pathlib import Path

import pytest
from flat_store import FlatStore
from tensorflow_serving.config import model_server_config_pb2

from serving.publish import rollback
from serving.server.compute.compiled import CompiledVectors
from serving.server.metrics import Metrics
from serving.server.models import loaded, loading
from serving.server.models.loaded import LoadedModel
from serving.server.models.loading import Loader, Loading
from serving.server.models.versions import Versions
from serving.storage.open import open_base

SETTINGS = Loading(compile=False, max_texts=256, threads=1, retries=2, retry_seconds=0.0)
# Where somebody steps in, and whether before or after that step.
MOMENTS = {
    "between the look and the load": (Loader, "load", "before"),
    "before its facts are read": (loaded, "_facts", "before"),
    "before its graph is read": (loaded, "_load", "before"),
    "after its graph was read": (loaded, "_load", "after"),
    "before the golden proof": (LoadedModel, "_prove", "before"),
    "after the golden proof": (LoadedModel, "_prove", "after"),
    "before the warm-up": (LoadedModel, "_warm_up", "before"),
    "in the middle of the warm-up": (CompiledVectors, "_run", "before"),
    "after the warm-up": (LoadedModel, "_warm_up", "after"),
    "when it is ready": (loading, "LoadedModel", "after"),
    "in the moment it goes live": (Loader, "load", "after"),
}


@pytest.fixture(params=["local", "object store"])
def base(request, tmp_path, exports):
    (tmp_path / "objects").mkdir()
    local = str(tmp_path / "models" / "pause")
    opened = open_base(local if request.param == "local" else FlatStore.open_in(tmp_path / "objects"))
    opened.add(exports[0])
    return opened


@pytest.fixture
def versions(base, tmp_path):
    """Version 1 is live."""
    config = model_server_config_pb2.ModelConfig(name="pause", base_path=base.path, model_platform="tensorflow")
    opened = Versions(config, SETTINGS, Metrics(), tmp_path / "scratch")
    opened.refresh()
    yield opened
    opened.close()


def step_in(monkeypatch, moment: str, act) -> list[str]:
    """Has `act` done once, in that moment of the next load; lists what was done."""
    where, name, when = MOMENTS[moment]
    step, done = getattr(where, name), []

    def once() -> None:
        if not done:
            done.append(moment)
            act()

    def wrapped(*arguments):
        if when == "before":
            once()
        result = step(*arguments)
        if when == "after":
            once()
        return result

    monkeypatch.setattr(where, name, staticmethod(wrapped) if name == "_run" else wrapped)
    return done


def states(versions: Versions) -> dict[int, str]:
    return {status.version: status.state for status in versions.statuses(None, None)}


def live(versions: Versions) -> tuple[int, LoadedModel]:
    with versions.lease(None, None) as found:
        return found


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_version_withdrawn_during_its_load_leaves_the_live_one_and_no_word_of_alarm(
    base, versions, exports, monkeypatch, caplog, tmp_path, moment
):
    before = live(versions)
    base.add(exports[1])
    done = step_in(monkeypatch, moment, lambda: rollback(base))
    versions.refresh()
    assert done == [moment] and base.versions() == [1]
    assert live(versions) == before and before[0] == 1  # the very same one: it was never unloaded
    versions.refresh()
    assert live(versions) == before and states(versions) == {1: "AVAILABLE"}
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert not (tmp_path / "scratch" / "pause" / "2").exists()  # nor is a copy left


@pytest.mark.parametrize("moment", ["before its graph is read", "after the golden proof", "in the moment it goes live"])
def test_a_version_published_while_the_former_load_is_dropped_is_served_next(
    base, versions, exports, monkeypatch, moment
):
    def swap() -> None:
        rollback(base)
        base.add(exports[2])

    base.add(exports[1])
    done = step_in(monkeypatch, moment, swap)
    for _ in range(2):  # the second look is the one that finds it
        versions.refresh()
    assert done and live(versions)[0] == 3
    assert states(versions)[3] == "AVAILABLE" and 2 not in states(versions)


@pytest.mark.parametrize("base", ["local"], indirect=True)
@pytest.mark.parametrize("moment", ["before its facts are read", "after its graph was read", "when it is ready"])
def test_a_version_is_never_served_from_files_that_were_changed_under_it(base, versions, exports, monkeypatch, moment):
    """Withdrawn, and another model under its number by hand: what is read may be of both."""

    def replace() -> None:
        rollback(base)
        shutil.copytree(exports[2], Path(base.path) / "2")

    fingerprint = json.loads((exports[2] / "assets.extra/pause.json").read_text())["contract"]["fingerprint"]
    base.add(exports[1])
    step_in(monkeypatch, moment, replace)
    for _ in range(3):
        versions.refresh()
        number, model = live(versions)
        assert number == 1 or model.fingerprint == fingerprint
    assert number == 2


def test_a_server_that_ends_gives_up_a_load_at_its_next_step(base, versions, exports, monkeypatch):
    base.add(exports[1])
    step_in(monkeypatch, "before the golden proof", versions.give_up_loading)
    versions.refresh()
    assert states(versions) == {1: "AVAILABLE"}
