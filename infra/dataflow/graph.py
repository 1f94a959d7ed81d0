"""What Dataflow compares when a running job is replaced by `--update`: the names of the steps, their coders, states and
timers. Kept for each kind of job; `python -m infra.dataflow.graph` holds the code against it, `--keep` renews it.

Where anything here changes, a running stream cannot be updated in place: drain it, then start the new one.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from common.command import Parser, exit_code
from common.errors import InputError

KEPT = Path(__file__).with_name("graphs")
SOURCES = {
    "batch": "--input=gs://bucket/*.jsonl",
    "messages": "--subscription=projects/some-project/subscriptions/companies",
    "watch": "--watch=gs://bucket/*.jsonl",
}
FLAGS = [
    *("--runner=DataflowRunner", "--project=some-project", "--region=europe-west1", "--temp_location=gs://bucket/temp"),
    *("--staging_location=gs://bucket/staging", "--dry_run=True", "--no_auth", "--job_name=companies"),
    *("--serving=serving:8500", "--index=https://es:9200/companies", "--dead_letters=gs://bucket/dead"),
]
MEANING = (
    "a job that runs cannot be updated over this: say so in the release, drain it and start the new one "
    "(infra/dataflow/README.md); then renew the kept graphs with `python -m infra.dataflow.graph --keep`"
)


def graph(source: str) -> dict[str, Any]:
    """Of one kind of job, as the service would get it."""
    runner = _rehearsed(SOURCES[source])
    components = runner.proto_pipeline.components
    coder = _Coders(components.coders, runner.proto_context).text
    named = [step for step in components.transforms.values() if step.spec.urn]  # the root, which holds them, is none
    steps = {step.unique_name: _step(step, components, coder) for step in named}
    return {"elements": _elements(), "steps": dict(sorted(steps.items()))}


def differences(kept: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A line for each step, and each class of elements, that is not what it was."""
    lines = []
    for kind in ("steps", "elements"):
        noun = kind.removesuffix("s")
        lines += [f"{noun} {name!r} is gone" for name in kept[kind] if name not in now[kind]]
        lines += [f"{noun} {name!r} is new" for name in now[kind] if name not in kept[kind]]
        for name, was in kept[kind].items():
            if name in now[kind] and now[kind][name] != was:
                lines.append(f"{noun} {name!r} changed: {_change(was, now[kind][name])}")
    return lines


def _change(was: Any, now: Any) -> str:
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
        return "; ".join(f"{key} {_change(was.get(key), now.get(key))}" for key in keys)
    return f"from {json.dumps(was)} to {json.dumps(now)}"


def compare(folder: Path = KEPT) -> list[str]:
    """A line for each difference of the code's graphs from those in the folder."""
    lines = []
    for source in SOURCES:
        file = folder / f"{source}.json"
        try:
            kept = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            lines.append(f"{file.name}: {error}")
            continue
        lines += [f"{file.name}: {line}" for line in differences(kept, graph(source))]
    return lines


def keep(folder: Path = KEPT) -> None:
    folder.mkdir(exist_ok=True)
    for source in SOURCES:
        (folder / f"{source}.json").write_text(json.dumps(graph(source), indent=1) + "\n")


def _rehearsed(source: str) -> Any:
    """The runner after all it does to a pipeline short of sending it."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    from model.contract import Contract
    from pipelines.options import parse
    from pipelines.pipeline import build
    from pipelines.services import Services

    options = parse([source, *FLAGS])
    services = Services(options.serving, options.index, Contract("0" * 16, 384, 128, "{description}"))
    pipeline = build(options, services)
    # Even a dry run asks whether its buckets are there, and these are nowhere.
    with mock.patch.object(GoogleCloudOptions, "_handle_temp_and_staging_locations", return_value=[]):
        pipeline.run()
    return pipeline.runner


def _step(step: Any, components: Any, coder: Any) -> dict[str, Any]:
    from apache_beam.portability.api import beam_runner_api_pb2

    outputs = {tag: coder(components.pcollections[name].coder_id) for tag, name in step.outputs.items()}
    made: dict[str, Any] = {"urn": step.spec.urn, "outputs": dict(sorted(outputs.items()))}
    if step.spec.urn == "beam:transform:pardo:v1":
        payload = beam_runner_api_pb2.ParDoPayload.FromString(step.spec.payload)
        made |= {
            "state": {name: _state(spec, coder) for name, spec in sorted(payload.state_specs.items())},
            "timers": {
                name: f"{spec.time_domain} {coder(spec.timer_family_coder_id)}"
                for name, spec in sorted(payload.timer_family_specs.items())
            },
            "restriction": coder(payload.restriction_coder_id) if payload.restriction_coder_id else None,
        }
    return {key: value for key, value in made.items() if value}


def _state(spec: Any, coder: Any) -> str:
    kind = spec.WhichOneof("spec")
    body = getattr(spec, kind)
    named = [field.name for field in body.DESCRIPTOR.fields if field.name.endswith("coder_id")]
    return f"{kind} {', '.join(coder(getattr(body, name)) for name in named)}"


def _elements() -> dict[str, list[str]]:
    """Of what is pickled into states and between stages: pickles of other fields cannot be read back."""
    from index.document import Document
    from pipelines.records import Company, RawRecord

    return {
        kind.__qualname__: [field.name for field in dataclasses.fields(kind)] for kind in (Company, Document, RawRecord)
    }


@dataclasses.dataclass(frozen=True)
class _Coders:
    protos: Any
    context: Any

    def text(self, name: str) -> str:
        """With the class where Python's own is pickled: the pickle itself differs with every release of Python."""
        spec = self.protos[name].spec
        said = spec.urn.removeprefix("beam:coder:")
        if spec.urn == "beam:coder:pickled_python:v1":
            said = type(self.context.coders.get_by_id(name)).__name__
        parts = [self.text(part) for part in self.protos[name].component_coder_ids]
        return f"{said}<{', '.join(parts)}>" if parts else said


class Changed(InputError):
    """The code's graphs are not the kept ones."""


def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="python -m infra.dataflow.graph", description=__doc__)
    parser.add_argument("--keep", action="store_true", help=f"renew infra/dataflow/{KEPT.name}/")
    given = parser.parse_args(argv)

    def work() -> None:
        if given.keep:
            keep()
        elif lines := compare():
            raise Changed("; ".join(lines) + f"; {MEANING}")
        print(f"{', '.join(SOURCES)}: as kept, so a job that runs can be updated")

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
