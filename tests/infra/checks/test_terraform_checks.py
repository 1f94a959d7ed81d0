"""Planted mistakes in the Terraform files, each named by a check."""

import shutil

import pytest
from real_servers import available

from infra.checks import terraform
from infra.checks.cloud.provider import schema_of
from infra.local.processes import ROOT, Unavailable

FOLDER = terraform.FOLDER


@pytest.fixture
def root(tmp_path):
    (tmp_path / "infra").mkdir()
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    return tmp_path


def plant(root, file, old, new):
    path = root / FOLDER / file
    assert old in path.read_text(), f"{file} has no {old!r} to spoil"
    path.write_text(path.read_text().replace(old, new, 1))


@pytest.mark.parametrize("check", [check for check in terraform.CHECKS if not check.slow], ids=lambda check: check.name)
def test_the_files_are_right(check):
    assert available(lambda: check.run(ROOT)) == []


MISTAKES = [
    # the issue's: an argument, a variable, a secret, a role
    ("pubsub.tf", "ack_deadline_seconds ", "ack_deadline ", terraform.known_to_provider, "ack_deadline is no argument"),
    ("network.tf", "var.subnet", "var.sub_net", terraform.consistent, "var.sub_net is not defined"),
    (
        "dataflow.tf",
        "  labels = {",
        '  api_key = "hunter2"\n  labels = {',
        terraform.guarded,
        "api_key is a secret in clear",
    ),
    ("accounts.tf", "roles/dataflow.worker", "roles/owner", terraform.guarded, "roles/owner is over everything"),
    ("accounts.tf", "roles/dataflow.developer", "roles/editor", terraform.guarded, "roles/editor is over everything"),
    # inside blocks, and what is left out
    (
        "pubsub.tf",
        "minimum_backoff",
        "min_backoff",
        terraform.known_to_provider,
        "retry_policy: min_backoff is no argument",
    ),
    (
        "storage.tf",
        "default_kms_key_name",
        "kms_key",
        terraform.known_to_provider,
        "encryption: kms_key is no argument",
    ),
    ("network.tf", '"google_compute_router"', '"google_compute_routers"', terraform.known_to_provider, "no such type"),
    (
        "pubsub.tf",
        "  topic                      = google_pubsub_topic.companies.id\n",
        "",
        terraform.known_to_provider,
        "topic is missing",
    ),
    # references
    ("outputs.tf", "local.image", "local.picture", terraform.consistent, "local.picture is not defined"),
    (
        "dataflow.tf",
        "google_pubsub_subscription.companies.id",
        "google_pubsub_subscription.firms.id",
        terraform.consistent,
        "google_pubsub_subscription.firms is not defined",
    ),
    (
        "dataflow.tf",
        '["worker"].email',
        '["worker"].address',
        terraform.known_to_provider,
        "google_service_account.this has no address",
    ),
    ("variables.tf", 'variable "nat" {', 'variable "nut" {', terraform.consistent, "variable nut is used nowhere"),
    (
        "variables.tf",
        '  description = "Addresses of the workers. A /24 is enough for 250 of them."\n',
        "",
        terraform.consistent,
        "variable subnet has no description",
    ),
    (
        "outputs.tf",
        '  description = "What is kept where."\n',
        "",
        terraform.consistent,
        "output buckets has no description",
    ),
    # what the template takes
    (
        "dataflow.tf",
        "    max_wait     =",
        "    wait         =",
        terraform.fits_template,
        "stream_parameters: wait is no parameter",
    ),
    (
        "dataflow.tf",
        'max_wait     = "1"',
        'max_wait     = "soon"',
        terraform.fits_template,
        'max_wait = "soon" is not as',
    ),
    ("dataflow.tf", "serving = var.serving, ", "", terraform.fits_template, "the template needs serving"),
    (
        "dataflow.tf",
        "templates/pause-encode.json",
        "pause.json",
        terraform.fits_template,
        "templates/pause-encode.json",
    ),
    ("monitoring.tf", "    lag = {", "    slow = {", terraform.fits_template, "no section `### slow`"),
    # only seen once it is worked out
    (
        "dataflow.tf",
        "google_pubsub_topic.dead_letters.id",
        "google_pubsub_topic.dead_letters.name",
        terraform.rehearsed,
        "stream: dead_letters = pause-dead-letters is not as",
    ),
    (
        "dataflow.tf",
        "${secret.id}",
        "${secret.secret_id}",
        terraform.rehearsed,
        "batch: secret = PAUSE_ES_API_KEY=pause-es",
    ),
    (
        "dataflow.tf",
        "input        =",
        "topic = google_pubsub_topic.companies.id\n    input        =",
        terraform.rehearsed,
        "not allowed with",
    ),
    ("accounts.tf", '"scheduler"]', '"schedule"]', terraform.rehearsed, "Invalid index"),
    ("outputs.tf", "account.email", "account.mail", terraform.rehearsed, "Unsupported attribute"),
    # secrets and strangers
    (
        "secrets.tf",
        '"google_secret_manager_secret" "this"',
        '"google_secret_manager_secret_version" "this"',
        terraform.guarded,
        "writes a secret into the state",
    ),
    ("accounts.tf", "member   = each.key", 'member   = "allUsers"', terraform.guarded, "everybody is let in"),
    (
        "example.tfvars",
        "stream  = false",
        'es_password = "hunter2"',
        terraform.guarded,
        "es_password is a secret in clear",
    ),
    # terraform's own
    ("pubsub.tf", "  provider ", "     provider ", terraform.formatted, "pubsub.tf: not as `terraform fmt` writes it"),
    ("pubsub.tf", "{", "{{", terraform.consistent, "pubsub.tf: "),
    ("example.tfvars", "least = 1, most = 8", "least = 9, most = 8", terraform.accepted, "1 <= least <= most"),
    (
        "example.tfvars",
        "https://elasticsearch",
        "https://me:word@elasticsearch",
        terraform.accepted,
        "neither user nor password",
    ),
    ("example.tfvars", '"0.1.0"', '"latest"', terraform.accepted, "not latest"),
    ("example.tfvars", "PAUSE_ES_API_KEY", "hunter2", terraform.accepted, "never their values"),
]


@pytest.mark.parametrize(("file", "old", "new", "check", "told"), MISTAKES, ids=[mistake[4] for mistake in MISTAKES])
def test_a_mistake_is_named(root, file, old, new, check, told):
    plant(root, file, old, new)
    found = available(lambda: check(root))
    assert any(told in line and line.startswith(FOLDER) for line in found), found


def test_missing_programs_are_said_aloud(monkeypatch):
    monkeypatch.setattr(terraform.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="there is no terraform here"):
        terraform.formatted(ROOT)


def test_a_schema_is_read_from_what_writes_a_resource_out():
    javascript = """
function googleThingPartToTerraform(struct) {
    if (!cdktf.canInspect(struct)) {
        return struct;
    }
    return {
        size: cdktf.numberToTerraform(struct.size),
    };
}
    synthesizeAttributes() {
        return {
            name: cdktf.stringToTerraform(this._name),
            part: cdktf.listMapper(googleThingPartToTerraform, true)(this._part.internalValue),
        };
    }
"""
    types = """
export interface GoogleThingConfig extends cdktf.TerraformMetaArguments {
    readonly name: string;
    readonly part?: GoogleThingPart[];
}
export interface GoogleThingPart {
    readonly size: number;
}
export declare class GoogleThing extends cdktf.TerraformResource {
    get selfLink(): string;
}
"""
    part = {"size": None, "": ["size"]}
    assert schema_of(javascript, types) == {"name": None, "part": part, "": ["name"], "*": ["self_link"]}
