"""The life cycle of versions, step by step in one process; Models.reload stands for the poller where a step is due."""

import json
import logging
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from flat_store import FlatStore
from tensorflow_serving.config import model_server_config_pb2

from common.errors import InputError
from serving.publish import rollback
from serving.server.api.status import Failure
from serving.server.metrics import Metrics
from serving.server.models import loading as loading_module
from serving.server.models import versions as versions_module
from serving.server.models.loading import Loading
from serving.server.models.registry import Models
from serving.server.models.versions import Versions
from serving.storage.open import open_base

FACTS = "assets.extra/pause.json"
OFTEN = Loading(compile=False, max_texts=256, threads=1, retries=2, retry_seconds=0.0)


@pytest.fixture(scope="module")
def fingerprints(exports) -> list[str]:
    return [json.loads((path / FACTS).read_text())["contract"]["fingerprint"] for path in exports]


@pytest.fixture
def base(tmp_path):
    return open_base(str(tmp_path / "pause"))


def config(base, name: str = "pause", labels=None, policy: str = "latest", **choice):
    made = model_server_config_pb2.ModelConfig(name=name, base_path=base.path, model_platform="tensorflow")
    getattr(made.model_version_policy, policy).SetInParent()
    for field, value in choice.items():
        target = getattr(made.model_version_policy, policy)
        target.versions.extend(value) if field == "versions" else setattr(target, field, value)
    made.version_labels.update(labels or {})
    return made


def configs(*models):
    made = model_server_config_pb2.ModelServerConfig()
    made.model_config_list.config.extend(models)
    return made


@pytest.fixture
def open_versions(tmp_path):
    opened = []

    def make(base, loading: Loading = OFTEN, **options) -> Versions:
        opened.append(Versions(config(base, **options), loading, Metrics(), tmp_path / "scratch"))
        return opened[-1]

    yield make
    for versions in opened:
        versions.close()


@pytest.fixture
def open_models():
    opened = []

    def make(*models, poll_seconds: float = 0) -> Models:
        opened.append(Models(configs(*models), OFTEN, poll_seconds, Metrics()))
        opened[-1].start()
        return opened[-1]

    yield make
    for models in opened:
        models.stop()


def refreshed(versions: Versions) -> Versions:
    versions.refresh()
    return versions


def served(versions: Versions, number: int | None = None, label: str | None = None) -> tuple[int, str]:
    with versions.lease(number, label) as (found, model):
        return found, model.fingerprint


def answering(models: Models, name: str = "pause", label: str | None = None) -> tuple[int, str]:
    with models.lease(name, label=label) as (found, model):
        return found, model.fingerprint


def states(versions: Versions) -> dict[int, str]:
    return {status.version: status.state for status in versions.statuses(None, None)}


def available(versions: Versions) -> list[int]:
    return [number for number, state in states(versions).items() if state == "AVAILABLE"]


def refused(asked, *arguments) -> Failure:
    with pytest.raises(Failure) as caught, asked(*arguments):
        pass
    return caught.value


@contextmanager
def damaged(directory: Path):
    """Its golden vectors are wrong meanwhile."""
    good = (directory / FACTS).read_text()
    facts = json.loads(good)
    facts["golden"][0]["embedding"].reverse()
    (directory / FACTS).write_text(json.dumps(facts))
    yield
    (directory / FACTS).write_text(good)


def damage(directory: Path) -> None:
    (directory / "variables/variables.index").unlink()


@pytest.fixture
def three(base, exports):
    """Versions 1, 2 and 3 are there."""
    for source in exports:
        base.add(source)
    return base


# which versions are served


@pytest.mark.parametrize(
    ("policy", "choice", "expected"),
    [
        ("latest", {}, [3]),
        ("latest", {"num_versions": 1}, [3]),
        ("latest", {"num_versions": 2}, [3, 2]),
        ("latest", {"num_versions": 9}, [3, 2, 1]),
        ("all", {}, [3, 2, 1]),
        ("specific", {"versions": [1, 3]}, [3, 1]),
        ("specific", {"versions": [2, 77]}, [2]),
    ],
)
def test_the_policy_says_which_versions_are_served(three, open_versions, fingerprints, policy, choice, expected):
    versions = refreshed(open_versions(three, policy=policy, **choice))
    assert available(versions) == expected
    assert served(versions) == (expected[0], fingerprints[expected[0] - 1])
    for number in expected:
        assert served(versions, number) == (number, fingerprints[number - 1])
    for number in {1, 2, 3} - set(expected):
        assert refused(versions.lease, number, None).code is grpc.StatusCode.NOT_FOUND


def test_a_new_version_takes_the_place_of_the_old_one(base, exports, open_versions, fingerprints):
    base.add(exports[0])
    versions = refreshed(open_versions(base))
    assert served(versions) == (1, fingerprints[0])
    base.add(exports[1])
    assert served(versions) == (1, fingerprints[0])  # until the next look
    versions.refresh()
    assert served(versions) == (2, fingerprints[1]) and states(versions) == {2: "AVAILABLE", 1: "END"}


def test_the_old_version_answers_the_requests_it_has_begun(base, exports, open_versions, fingerprints):
    base.add(exports[0])
    versions = refreshed(open_versions(base))
    with versions.lease(None, None) as (number, model):
        base.add(exports[1])
        versions.refresh()
        assert states(versions) == {2: "AVAILABLE", 1: "UNLOADING"}
        assert served(versions) == (2, fingerprints[1])
        assert number == 1 and np.isfinite(model.encode([b"bank"])).all()
    assert states(versions) == {2: "AVAILABLE", 1: "END"}


def test_a_version_rolled_back_to_is_loaded_again(three, open_versions):
    versions = refreshed(open_versions(three))
    assert rollback(three) == ([3], 2)
    versions.refresh()
    assert served(versions)[0] == 2
    assert rollback(three) == ([2], 1)
    versions.refresh()
    assert served(versions)[0] == 1 and states(versions) == {1: "AVAILABLE"}  # the withdrawn are forgotten


def test_a_rollback_to_a_version_that_still_answers_a_request_takes_that_one(three, open_versions, exports):
    versions = refreshed(open_versions(three))
    with versions.lease(None, None) as (number, model):
        three.add(exports[0])
        versions.refresh()
        assert states(versions)[3] == "UNLOADING"
        rollback(three)
        versions.refresh()
        assert served(versions)[0] == number == 3
        with versions.lease(None, None) as (_, again):
            assert again is model  # it was never gone
    assert served(versions)[0] == 3


def test_a_rollback_to_a_version_that_is_kept_waits_for_no_load(three, open_versions, fingerprints, monkeypatch):
    """Of two that are kept the one before takes over at once; the third is loaded when that is done."""
    versions = refreshed(open_versions(three, num_versions=2))
    assert available(versions) == [3, 2]
    seen = []
    load = versions.load
    monkeypatch.setattr(versions, "load", lambda version: (seen.append(served(versions)), load(version)))
    rollback(three)
    versions.refresh()
    assert seen == [(2, fingerprints[1])] and available(versions) == [2, 1]


def test_labels_name_versions(three, open_versions, fingerprints):
    versions = refreshed(open_versions(three, labels={"stable": 1, "canary": 3, "gone": 7}, policy="all"))
    assert served(versions, label="stable") == (1, fingerprints[0])
    assert served(versions, label="canary") == (3, fingerprints[2])
    assert [status.version for status in versions.statuses(None, "stable")] == [1]
    assert refused(versions.lease, None, "gone").code is grpc.StatusCode.NOT_FOUND
    unknown = refused(versions.lease, None, "soul")
    assert unknown.code is grpc.StatusCode.INVALID_ARGUMENT and "canary, gone, stable" in unknown.message


def test_the_status_of_a_version_that_is_not_there_is_not_found(three, open_versions):
    versions = refreshed(open_versions(three))
    with pytest.raises(Failure, match="version 9 of model 'pause' not found") as caught:
        versions.statuses(9, None)
    assert caught.value.code is grpc.StatusCode.NOT_FOUND


# versions that fail


def test_when_the_newest_fails_the_next_older_one_is_served(three, open_versions, caplog):
    damage(Path(three.location(3)))
    with damaged(Path(three.location(2))):
        versions = refreshed(open_versions(three))
        assert served(versions)[0] == 1
    third, second, first = versions.statuses(None, None)
    assert (third.state, third.code) == ("END", grpc.StatusCode.FAILED_PRECONDITION)
    assert "variables.index is missing" in third.message and "golden vectors" in second.message
    assert (first.state, first.code, first.message) == ("AVAILABLE", grpc.StatusCode.OK, "")
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [message.partition(" (")[0] for message in said] == [
        "pause version 3 is not served",
        "pause version 2 is not served",
    ]


def test_where_no_version_can_be_loaded_clients_are_told_to_come_back(base, exports, open_versions):
    base.add(exports[0])
    damage(Path(base.location(1)))
    versions = refreshed(open_versions(base))
    assert not versions.ready
    failure = refused(versions.lease, None, None)
    assert failure.code is grpc.StatusCode.UNAVAILABLE and "variables.index is missing" in failure.message


def test_a_version_that_fails_never_replaces_a_good_one_and_takes_over_when_repaired(base, exports, open_versions):
    base.add(exports[0])
    versions = refreshed(open_versions(base))
    base.add(exports[1])
    with damaged(Path(base.location(2))):
        for _ in range(5):
            versions.refresh()
            assert served(versions)[0] == 1 and states(versions) == {2: "END", 1: "AVAILABLE"}
    versions.refresh()
    assert served(versions)[0] == 2 and versions.statuses(2, None)[0].message == ""


@pytest.fixture
def attempts(monkeypatch) -> list[str]:
    """The versions that were tried to load, in order."""
    tried = []
    load = loading_module.LoadedModel

    def note(directory, *arguments):
        tried.append(directory.name)
        return load(directory, *arguments)

    monkeypatch.setattr(loading_module, "LoadedModel", note)
    return tried


def test_a_version_that_failed_is_tried_again_after_the_interval_and_not_before(
    base, exports, open_versions, monkeypatch, attempts
):
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(versions_module, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    base.add(exports[0])
    damage(Path(base.location(1)))
    versions = open_versions(base, Loading(False, 256, 1, retries=2, retry_seconds=60.0))
    tried = []
    for seconds in (100.0, 100.1, 159.9, 160.0, 219.9, 220.0, 280.0, 9e9):
        clock.seconds = seconds
        versions.refresh()
        tried.append(len(attempts))
    assert tried == [1, 1, 1, 2, 2, 3, 3, 3]  # once, and two retries


def test_a_version_whose_retries_are_used_up_is_tried_again_when_it_changes(base, exports, open_versions, attempts):
    base.add(exports[0])
    versions = open_versions(base)
    with damaged(Path(base.location(1))):
        for _ in range(6):
            versions.refresh()
        assert attempts == ["1"] * (1 + OFTEN.retries)
    versions.refresh()
    assert served(versions)[0] == 1 and len(attempts) == 2 + OFTEN.retries


def test_a_version_that_is_being_copied_is_served_once_it_is_complete(base, exports, open_versions):
    base.add(exports[0])
    versions = refreshed(open_versions(base))
    target = Path(base.path) / "2"
    names = sorted(path.relative_to(exports[1]) for path in exports[1].rglob("*") if path.is_file())
    assert Path(FACTS) in names[:-1]  # more is missing after it, as with a copy that knows no order
    for name in names:
        versions.refresh()
        assert served(versions)[0] == 1
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(exports[1] / name, target / name)
    versions.refresh()
    assert served(versions)[0] == 2


def test_a_failed_version_that_is_taken_away_is_forgotten(base, exports, open_versions):
    for source in exports[:2]:
        base.add(source)
    damage(Path(base.location(2)))
    versions = refreshed(open_versions(base))
    assert states(versions) == {2: "END", 1: "AVAILABLE"}
    base.remove(2)
    versions.refresh()
    assert states(versions) == {1: "AVAILABLE"}


def test_an_emptied_base_path_leaves_what_is_loaded(base, exports, open_models, fingerprints, caplog):
    base.add(exports[0])
    models = open_models(config(base))
    shutil.rmtree(base.path)
    for _ in range(3):
        models.reload(configs(config(base)))
        assert answering(models) == (1, fingerprints[0])
    assert sum("it holds no version" in record.getMessage() for record in caplog.records) == 1  # not with every look
    base.add(exports[1])
    models.reload(configs(config(base)))
    assert answering(models) == (1, fingerprints[0])  # the number is known, and a number means one model
    base.add(exports[2])
    models.reload(configs(config(base)))
    assert answering(models) == (2, fingerprints[2])


# an object store


@pytest.fixture
def store(tmp_path, exports):
    (tmp_path / "objects").mkdir()
    opened = open_base(FlatStore.open_in(tmp_path / "objects"))
    opened.add(exports[0])
    return opened


def test_versions_of_an_object_store_are_fetched_served_and_their_copies_dropped(
    store, exports, open_versions, fingerprints, tmp_path
):
    versions = refreshed(open_versions(store))
    assert served(versions) == (1, fingerprints[0])
    store.add(exports[1])
    versions.refresh()
    assert served(versions) == (2, fingerprints[1])
    assert [path.name for path in (tmp_path / "scratch" / "pause").iterdir()] == ["2"]
    rollback(store)
    versions.refresh()
    assert served(versions) == (1, fingerprints[0])
    assert [path.name for path in (tmp_path / "scratch" / "pause").iterdir()] == ["1"]


def test_a_version_that_appears_key_by_key_is_served_once_it_is_complete(store, exports, open_versions, tmp_path):
    versions = refreshed(open_versions(store))
    store.add(exports[1])
    prefix = "bucket%2Fmodels%2Fpause%2F2%2F"
    keys = sorted(path for path in FlatStore.root.iterdir() if path.name.startswith(prefix))
    (tmp_path / "held").mkdir()
    for key in keys:
        key.rename(tmp_path / "held" / key.name)
    for key in keys:
        versions.refresh()
        assert served(versions)[0] == 1
        (tmp_path / "held" / key.name).rename(key)
    versions.refresh()
    assert served(versions)[0] == 2


def test_a_store_that_is_away_leaves_what_is_loaded_and_is_asked_again(
    store, exports, open_models, fingerprints, caplog
):
    models = open_models(config(store))
    away = FlatStore.root.with_name("away")
    FlatStore.root.rename(away)
    for _ in range(3):
        models.reload(configs(config(store)))
        assert answering(models) == (1, fingerprints[0])
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1 and store.path in said[0]  # once, not with every look
    assert models.ready
    away.rename(FlatStore.root)
    store.add(exports[1])
    models.reload(configs(config(store)))
    assert answering(models) == (2, fingerprints[1])


# models


def test_a_model_nobody_configured_is_not_found(three, open_models):
    failure = refused(open_models(config(three)).lease, "soul")
    assert failure.code is grpc.StatusCode.NOT_FOUND and failure.message == "model 'soul' not found; there are: pause"


def test_nothing_to_serve_at_all_is_said_at_the_start(base):
    models = Models(configs(config(base)), OFTEN, 0, Metrics())
    try:
        with pytest.raises(InputError, match="holds no version"):
            models.start()
    finally:
        models.stop()


def test_versions_that_all_fail_are_said_at_the_start(base, exports):
    base.add(exports[0])
    damage(Path(base.location(1)))
    models = Models(configs(config(base)), OFTEN, 0, Metrics())
    try:
        with pytest.raises(InputError, match=r"no version can be served: .* version 1: .*variables.index is missing"):
            models.start()
    finally:
        models.stop()


def test_a_model_may_come_later_where_another_is_there(three, tmp_path, exports, open_models):
    later = open_base(str(tmp_path / "later"))
    models = open_models(config(three), config(later, name="later"))
    assert refused(models.lease, "later").code is grpc.StatusCode.UNAVAILABLE
    assert not models.ready
    later.add(exports[0])
    models.reload(configs(config(three), config(later, name="later")))
    assert answering(models, "later")[0] == 1
    assert models.ready


def test_a_new_configuration_adds_and_removes_models(three, tmp_path, exports, open_models, fingerprints):
    other = open_base(str(tmp_path / "other"))
    other.add(exports[1])
    models = open_models(config(three))
    with models.lease("pause") as (_, before):
        models.reload(configs(config(three), config(other, name="other")))
        with models.lease("other") as (number, model):
            assert (number, model.fingerprint) == (1, fingerprints[1])
            models.reload(configs(config(three)))
            assert np.isfinite(model.encode([b"bank"])).all()  # its request is finished all the same
        assert refused(models.lease, "other").code is grpc.StatusCode.NOT_FOUND
        with models.lease("pause") as (_, after):
            assert after is before  # what is loaded stays


def test_a_new_configuration_changes_policy_and_labels_of_what_is_loaded(three, open_models):
    models = open_models(config(three))
    with models.lease("pause") as (_, before):
        models.reload(configs(config(three, labels={"old": 2}, policy="specific", versions=[2, 3])))
        assert answering(models, label="old")[0] == 2
        with models.lease("pause") as (number, after):
            assert number == 3 and after is before
    models.reload(configs(config(three)))
    assert {status.version: status.state for status in models.status("pause")} == {3: "AVAILABLE", 2: "END"}


def test_a_model_moved_to_another_base_path_is_served_from_there(three, tmp_path, exports, open_models, fingerprints):
    other = open_base(str(tmp_path / "other"))
    other.add(exports[1])
    models = open_models(config(three))
    models.reload(configs(config(other)))
    assert answering(models) == (1, fingerprints[1])


def test_a_configuration_without_any_choice_changes_nothing(three, open_models):
    models = open_models(config(three))
    models.reload(model_server_config_pb2.ModelServerConfig())  # as TensorFlow Serving has it
    assert answering(models)[0] == 3


def test_a_configuration_that_cannot_be_served_changes_nothing(three, open_models):
    models = open_models(config(three))
    with pytest.raises(Failure, match="listed twice") as caught:
        models.reload(configs(config(three), config(three)))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    elsewhere = config(three, name="elsewhere")
    elsewhere.base_path = "nothing://bucket/pause"
    with pytest.raises(Failure, match="nothing://bucket/pause cannot be used") as caught:
        models.reload(configs(elsewhere))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answering(models)[0] == 3


def test_a_configuration_with_a_model_that_has_nothing_to_serve_changes_nothing(three, tmp_path, exports, open_models):
    models, other = open_models(config(three)), open_base(str(tmp_path / "other"))
    for reason in ("it holds no version", "version 1: .*variables.index is missing"):
        with pytest.raises(Failure, match=reason) as caught:
            models.reload(configs(config(three, labels={"stable": 3}), config(other, name="other")))
        assert caught.value.code is grpc.StatusCode.FAILED_PRECONDITION
        assert answering(models)[0] == 3 and refused(models.lease, "pause", None, "stable")
        assert refused(models.lease, "other").code is grpc.StatusCode.NOT_FOUND
        if not other.versions():
            other.add(exports[0])
            damage(Path(other.location(1)))


def test_the_poller_finds_a_new_version_by_itself(three, exports, open_models, caplog):
    swapped = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            if record.getMessage() == "pause version 3 is no longer served":
                swapped.set()

    listener = Listener()
    log = logging.getLogger(versions_module.__name__)
    log.addHandler(listener)
    caplog.set_level(logging.INFO, log.name)
    try:
        models = open_models(config(three), poll_seconds=0.01)
        three.add(exports[0])
        assert swapped.wait(60)
    finally:
        log.removeHandler(listener)
    assert answering(models)[0] == 4
