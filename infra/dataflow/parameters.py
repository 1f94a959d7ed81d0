"""What a flex template may be given: a parameter for each flag of `pipelines.encode`, by the flags themselves.

Names, defaults and numbers come from the parser; here stands what it cannot tell: labels, groups, and the patterns that
let Dataflow refuse a value before a machine is started for it. No parameter is a secret: consoles and logs show them.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Any

from pipelines.options import SECRET, SUBSCRIPTION, TOPIC, Options, command_parser
from pipelines.records import FIELDS

NAME = "PAUSE: encode companies"
DESCRIPTION = (
    "Company descriptions from files, a watched folder or Pub/Sub, encoded by TensorFlow Serving and kept in "
    "Elasticsearch. A batch where input or replay name files, else a stream. Give exactly one source."
)
GROUPS = ("Source", "Services", "Records", "Pace")
GCS = "gs://[^/]+/.+"
FIELD = f"({'|'.join(FIELDS)})=[^,=]+"
ADDRESS = r"[^,\s]+:[0-9]+"
WHOLE, POSITIVE, SECONDS = "[0-9]+", "[1-9][0-9]*", r"(0*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.0*[1-9][0-9]*)"
# Flags that would do nothing, and why.
LEFT_OUT = {
    "max_bad": "judged by who waits for the end of a run; a launcher does not",
    "metrics_port": "of runs whose workers are here; Dataflow counts by itself, and its workers open no port",
    "metrics_host": "goes with metrics_port",
}


@dataclass(frozen=True)
class Description:
    """What the parser cannot tell of a flag."""

    label: str
    group: str
    pattern: str = ""  # of the whole value
    kind: str = "TEXT"
    help: str = ""  # in place of the flag's own, which is of runs on one machine
    required: bool = False  # by workers on other machines


def _plain(pattern: re.Pattern[str]) -> str:
    """Without names of groups, which other languages write in another way."""
    return re.sub(r"\(\?P<\w+>", "(", pattern.pattern)


DESCRIPTIONS = {
    "input": Description(
        "Files to encode once", "Source", GCS, "GCS_READ_FILE",
        "A pattern of .jsonl, .csv, .tsv or .parquet files, all but the last also .gz. The job ends after them."),
    "watch": Description(
        "Folder to watch", "Source", GCS, "GCS_READ_FILE",
        "A pattern of such files, read as they appear or change. The job is a stream."),
    "subscription": Description(
        "Pub/Sub subscription", "Source", _plain(SUBSCRIPTION), "PUBSUB_SUBSCRIPTION",
        "projects/PROJECT/subscriptions/NAME, a record in each message. The job is a stream."),
    "topic": Description(
        "Pub/Sub topic", "Source", _plain(TOPIC), "PUBSUB_TOPIC",
        "projects/PROJECT/topics/NAME; a subscription is made for the job, and what came before it is not read."),
    "replay": Description(
        "Dead letters to take back", "Source", f"({GCS}|{_plain(SUBSCRIPTION)})", "TEXT",
        "Dead letters that were put right: a pattern of .jsonl files, or a subscription."),
    "serving": Description(
        "TensorFlow Serving", "Services", f"{ADDRESS}(,{ADDRESS})*", "TEXT",
        "HOST:PORT of its gRPC endpoint, several by commas, as workers and launcher reach it.", True),
    "index": Description(
        "Elasticsearch index", "Services", r"https?://[^@/\s]+/[^@/\s]+", "TEXT",
        "https://HOST:9200/ALIAS as workers and launcher reach it; neither user nor password in it.", True),
    "dead_letters": Description(
        "Dead letters", "Services", f"({GCS}|{_plain(TOPIC)})", "TEXT",
        "Where what cannot be encoded goes: gs://BUCKET/FOLDER, or projects/PROJECT/topics/NAME.", True),
    "secret": Description(
        "Names of secrets", "Services", f"{_plain(SECRET)}(,{_plain(SECRET)})*", "TEXT",
        "Where each variable is kept: PAUSE_ES_API_KEY=projects/PROJECT/secrets/NAME/versions/latest, several by "
        "commas. Names alone: the worker's service account reads the values from Secret Manager."),
    "force": Description("Write equal versions again", "Records"),
    "columns": Description("Other names of the fields", "Records", f"{FIELD}(,{FIELD})*", "TEXT",
                           f"As id=cik,description=text. Fields are {', '.join(FIELDS)}."),
    "batch_size": Description("Companies in a batch", "Pace", POSITIVE),
    "in_flight": Description("Batches in flight", "Pace", POSITIVE),
    "max_wait": Description("Longest wait of a batch", "Pace", SECONDS),
    "watch_interval": Description("Seconds between looks", "Pace", SECONDS),
}  # fmt: skip


def flags() -> dict[str, argparse.Action]:
    """Of the pipeline, as far as they mean something on Dataflow."""
    actions = (action for action in command_parser()._actions if action.option_strings)
    return {action.dest: action for action in actions if action.dest not in LEFT_OUT and action.dest != "help"}


def metadata() -> dict[str, Any]:
    """As `gcloud dataflow flex-template build --metadata-file` takes it."""
    made = [_parameter(name, action) for name, action in flags().items()]
    order = {group: place for place, group in enumerate(GROUPS)}
    made.sort(key=lambda parameter: (order[parameter["groupName"]], parameter["isOptional"]))
    return {"name": NAME, "description": DESCRIPTION, "parameters": made}


def _parameter(name: str, action: argparse.Action) -> dict[str, Any]:
    said = DESCRIPTIONS.get(name) or Description(name.replace("_", " ").capitalize(), GROUPS[-1])
    kind, pattern = _typed(action, said)
    default = getattr(Options, name, None)
    made = {
        "name": name,
        "label": said.label,
        "helpText": said.help or _help(action),
        "groupName": said.group,
        "isOptional": not said.required,
        "paramType": kind,
    }
    if pattern:
        made["regexes"] = [f"^{pattern}$"]
    if isinstance(default, (bool, int, float)):
        made["defaultValue"] = str(default).lower()
    return made


def _typed(action: argparse.Action, said: Description) -> tuple[str, str]:
    if action.const is True:
        return "BOOLEAN", "(true|false)"
    if action.type in (int, float):
        return "NUMBER", said.pattern or (WHOLE if action.type is int else SECONDS)
    return said.kind, said.pattern


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % vars(action)
    return text[:1].upper() + text[1:]
