"""Command lines and environments of containers, read by the very parsers that will read them in the cluster."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.hosts import is_local
from infra.checks.cluster.render import Object, Overlay, Pod, overlays
from infra.local.processes import ROOT
from model.contract import MODEL_NAME

ROOMS = ("common", "model", "serving", "index", "pipelines", "search")
IMAGES = ("pause-serving", "pause-pipeline", "pause-search", "pause-model")
# Flags of tensorflow_model_server that the embedded server, whose parser reads the rest, has no use for.
THEIRS = re.compile(r"--(tensorflow_(intra|inter)_op_parallelism)=\d+")
SYSTEM = {"HOME"}  # read by Python's own library
# The flags, by command, that say where it listens; the ports of its container have these names.
LISTENING = {
    "serving": {"grpc": "port", "rest": "rest_api_port"},
    "search": {"http": "port"},
    "pipelines.encode": {"metrics": "metrics_port"},
}


def wrong_commands(root: Path) -> list[str]:
    return [
        overlay.finding(pod, f"{container['name']}: {said}")
        for overlay in overlays(root)
        for pod in overlay.pods()
        if not pod.owner.startswith("Elasticsearch/")
        for container in pod.containers
        for said in _container(root, overlay, container)
    ] + [found for overlay in overlays(root) for found in _unused(overlay)]


def _container(root: Path, overlay: Overlay, container: Object) -> Iterator[str]:
    image, _, tag = container["image"].partition(":")
    if image.rpartition("/")[2] not in IMAGES or not tag or tag == "latest":
        yield f"image {container['image']} is none of {', '.join(IMAGES)} with a tag of its own"
    values, given = environment(overlay, container), container.get("args", [])
    used = set(re.findall(r"\$\((\w+)\)", " ".join(given)))
    yield from (f"$({name}) is defined nowhere" for name in sorted(used - values.keys()))
    for name in sorted({one["name"] for one in container.get("env", [])} - used - SYSTEM - known_variables()):
        yield f"nothing reads the environment variable {name}"
    if container.get("command", [])[:1] == ["sleep"]:
        return
    line = [re.sub(r"\$\((\w+)\)", lambda found: values.get(found[1], ""), one) for one in given]
    module, *rest = _module(container)
    try:
        options = _parsed(root, module, [*rest, *line])
    except InputError as error:
        yield str(error)
        return
    yield from _listening(module, options, container)
    if getattr(options, "metrics_port", 0) and is_local(options.metrics_host):
        yield f"--metrics_host {options.metrics_host} shows its metrics to nobody but its own pod"
    yield from _probes(module, container)


def _module(container: Object) -> list[str]:
    """`search`, or `index purge`; the image of the server has an entrypoint of its own."""
    command = container.get("command")
    if command is None and container["name"] == "serving":
        return ["serving"]
    if not command or command[:2] != ["python", "-m"] or len(command) < 3:
        raise InputError(f"command {command} is not `python -m` and a module")
    return list(command[2:])


def environment(overlay: Overlay, container: Object) -> dict[str, str]:
    """What its command line can refer to; in place of a secret, a word."""
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        values |= overlay.settings(source.get("configMapRef", {}).get("name", ""))
    for one in container.get("env", []):
        field = one.get("valueFrom", {}).get("resourceFieldRef", {}).get("resource", "")
        limit = container.get("resources", {}).get(field.partition(".")[0], {}).get(field.partition(".")[2], "1")
        values[one["name"]] = one.get("value", limit if field else "secret")
    return values


def known_variables() -> set[str]:
    """Names that stand in our code, quoted."""
    sources = (path.read_text(encoding="utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {name for source in sources for name in re.findall(r'"(PAUSE_[A-Z_]+)"', source)}


def _unused(overlay: Overlay) -> Iterator[str]:
    lines = " ".join(one for pod in overlay.pods() for each in pod.containers for one in each.get("args", []))
    for one in overlay.of("ConfigMap"):
        named = [each for pod in overlay.pods() for each in pod.containers for each in each.get("envFrom", [])]
        if {"configMapRef": {"name": one["metadata"]["name"]}} not in named:
            continue  # files, not variables
        for name in one["data"]:
            if f"$({name})" not in lines:
                yield overlay.finding(one, f"nothing reads the setting {name}")


def _parsed(root: Path, module: str, line: list[str]) -> Any:
    """InputError where its own parser will not have it."""
    parsers: dict[str, Callable[[], Callable[[list[str]], Any]]] = {
        "serving": lambda: _server(root),
        "search": lambda: _search,
        "index": lambda: _index,
        "pipelines.encode": lambda: _encode,
        "pipelines.reindex": lambda: _reindex,
    }
    if module not in parsers:
        raise InputError(f"there is no command `python -m {module}`; there are {', '.join(parsers)}")
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            return parsers[module]()(line)
    except SystemExit:
        raise InputError(told.getvalue().strip().removeprefix("error: ").partition("; `")[0]) from None


def _search(line: list[str]) -> Any:
    from search import __main__ as search
    from search.access.addresses import proxies

    options = search._parser().parse_args(line)
    search._settings(options)
    proxies(options.proxy)
    if is_local(options.host):
        raise InputError(f"--host {options.host} listens to nobody but its own pod")
    return options


def _index(line: list[str]) -> Any:
    from index import __main__ as index

    return index._parser().parse_args(line)


def _encode(line: list[str]) -> Any:
    from pipelines.options import parse

    return parse(line)


def _reindex(line: list[str]) -> Any:
    from pipelines.reindex import __main__ as reindex

    return reindex.Options(**vars(reindex._parser().parse_args(line)))


def _server(root: Path) -> Callable[[list[str]], Any]:
    """After the flags of the image; the last one counts."""
    from serving.server.config.options import parser

    text = (root / "serving" / "Dockerfile").read_text().replace("\\\n", " ")
    entrypoint = json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[0])
    return lambda line: parser().parse_args([*entrypoint[1:], *(one for one in line if not THEIRS.fullmatch(one))])


def _listening(module: str, options: Any, container: Object) -> Iterator[str]:
    flags = {name: getattr(options, flag, 0) for name, flag in LISTENING.get(module, {}).items()}
    listens = {name: number for name, number in flags.items() if number}
    declared = {one.get("name"): one["containerPort"] for one in container.get("ports", [])}
    if listens != declared:
        yield f"it listens on {listens or 'no port'}, and its ports are {declared or 'none'}"


def _probes(module: str, container: Object) -> Iterator[str]:
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container.get(kind, {}).get("httpGet")
        if asked is None:
            if container.get("ports"):
                yield f"it has ports and no {kind} that asks one"
            continue
        if asked["port"] not in {one.get("name") for one in container.get("ports", [])}:
            yield f"{kind} asks port {asked['port']}, which it has not"
        if asked["path"] not in paths(module):
            yield f"{kind} asks for {asked['path']}; it answers {', '.join(sorted(paths(module)))}"


def paths(module: str) -> set[str]:
    """What answers a GET without a key."""
    if module == "serving":
        from serving.server.config.files import METRICS_PATH

        return {f"/v1/models/{MODEL_NAME}", f"/v1/models/{MODEL_NAME}/metadata", METRICS_PATH}
    if module == "search":
        source = (ROOT / "search" / "routes" / "operations.py").read_text()
        return set(re.findall(r'router\.get\(\s*"(/\w+)"', source))
    return {"/metrics"}


def scraped(pod: Pod) -> set[str]:
    """Paths that the containers of a pod answer."""
    return {path for one in pod.containers if "image" in one for path in paths(_module(one)[0])}
