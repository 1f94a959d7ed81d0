"""What Terraform would make of the example, worked out by terraform itself."""

from real_servers import available

from infra.checks.cloud.rehearsal import rehearse
from infra.checks.terraform import FOLDER
from infra.local.processes import ROOT


def test_the_commands_are_exact_and_the_jobs_as_they_should_be():
    made = available(lambda: rehearse(ROOT / FOLDER, {"stream": "true"}))
    image = "europe-west1-docker.pkg.dev/acme-similarity/pause/pause-pipeline:0.1.0"
    template = f"--image={image} --bucket=gs://acme-similarity-pause-templates --run"
    assert made["commands"]["make_template"] == f"python -m infra.dataflow.template {template}"
    stream = made["resources"]["google_dataflow_flex_template_job__stream"][0]
    assert stream["ip_configuration"] == "WORKER_IP_PRIVATE" and stream["enable_streaming_engine"]
    assert (stream["num_workers"], stream["max_workers"], stream["sdk_container_image"]) == (1, 8, image)
    assert stream["parameters"]["subscription"] == "projects/acme-similarity/subscriptions/pause-companies"
    secret = "PAUSE_ES_API_KEY=projects/acme-similarity/secrets/pause-es-api-key/versions/latest"
    assert stream["parameters"]["secret"] == secret
    readers = made["resources"]["google_secret_manager_secret_iam_member__readers"]
    assert readers.keys() == {"worker PAUSE_ES_API_KEY", "search PAUSE_ES_API_KEY"}


def test_what_is_not_wanted_is_not_made():
    none = {
        "stream": "false",
        "batch": "null",
        "budget": "null",
        "publishers": "[]",
        "identities": "{}",
        "secrets": "[]",
    }
    made = available(lambda: rehearse(ROOT / FOLDER, none))
    assert not made["stream_job"] and made["commands"]["add_secrets"] == [] and made["commands"]["run_batch"] == ""
    for absent in ("dataflow_flex_template_job__stream", "cloud_scheduler_job__batch", "billing_budget__month"):
        assert made["resources"][f"google_{absent}"] == []
    assert made["resources"]["google_compute_router_nat__nat"] == []  # off unless asked for
