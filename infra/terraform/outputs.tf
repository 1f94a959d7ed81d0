output "image" {
  description = "The image that launcher and workers run."
  value       = local.image
}

output "accounts" {
  description = "Addresses of the service accounts."
  value       = { for name, account in google_service_account.this : name => account.email }
}

output "buckets" {
  description = "What is kept where."
  value       = { for name, bucket in google_storage_bucket.this : name => "gs://${bucket.name}" }
}

output "topic" {
  description = "Where company records are published."
  value       = google_pubsub_topic.companies.id
}

output "stream_job" {
  description = "Id of the streaming job, once there is one."
  value       = one(google_dataflow_flex_template_job.stream[*].job_id)
}

output "commands" {
  description = "The steps of README.md as exact command lines."
  value = {
    add_secrets = [for variable, secret in google_secret_manager_secret.this :
      "gcloud secrets versions add ${secret.secret_id} --project=${var.project} --data-file=-  # ${variable}, then Ctrl-D"
    ]
    build_image   = "docker build --file infra/images/pipeline.Dockerfile --build-arg RUN_AS=0:0 --tag ${local.image} ."
    push_image    = "gcloud auth configure-docker ${var.region}-docker.pkg.dev && docker push ${local.image}"
    make_template = "python -m infra.dataflow.template --image=${local.image} --bucket=gs://${google_storage_bucket.this["templates"].name} --run"
    publish_model = "gcloud storage rsync --recursive build/demo/serving/pause gs://${google_storage_bucket.this["models"].name}/pause"
    publish       = "gcloud pubsub topics publish ${google_pubsub_topic.companies.name} --project=${var.project} --message='{\"id\": \"acme\", \"name\": \"Acme\", \"description\": \"Forges anvils\"}'"
    dead_letters  = "gcloud pubsub subscriptions pull ${google_pubsub_subscription.dead_letters.name} --project=${var.project} --limit=10"
    run_batch     = var.batch == null ? "" : "gcloud scheduler jobs run ${var.name}-batch --project=${var.project} --location=${var.region}"
    replay = join(" ", concat([
      "gcloud dataflow flex-template run ${var.name}-replay --project=${var.project} --region=${var.region}",
      "--template-file-gcs-location=${local.template} --service-account-email=${google_service_account.this["worker"].email}",
      "--network=${google_compute_network.this.name} --subnetwork=regions/${var.region}/subnetworks/${google_compute_subnetwork.workers.name} --disable-public-ips",
      "--temp-location=${local.temp}/temp --staging-location=${local.temp}/staging --enable-streaming-engine --max-workers=1",
      "--parameters=^~^replay=${google_pubsub_subscription.dead_letters.id}",
    ], [for name, value in merge(local.services, { dead_letters = "gs://${google_storage_bucket.this["dead-letters"].name}/replay" }) : "--parameters=^~^${name}=${value}"]))
    jobs  = "gcloud dataflow jobs list --project=${var.project} --region=${var.region} --status=active"
    drain = "gcloud dataflow jobs drain JOB_ID --project=${var.project} --region=${var.region}"
    logs  = "gcloud logging read 'resource.type=\"dataflow_step\" resource.labels.job_name=~\"^${var.name}-\" severity>=WARNING' --project=${var.project} --freshness=1h --limit=50"
  }
}
