locals {
  image    = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}/pause-pipeline:${var.release}"
  template = "gs://${google_storage_bucket.this["templates"].name}/templates/pause-encode.json"
  temp     = "gs://${google_storage_bucket.this["temp"].name}"

  # Names of secrets, never values: Dataflow shows parameters to whoever may see the job.
  secret_names = join(",", [for variable, secret in google_secret_manager_secret.this : "${variable}=${secret.id}/versions/latest"])

  services = merge(
    { serving = var.serving, index = var.index },
    local.secret_names == "" ? {} : { secret = local.secret_names },
  )

  stream_parameters = merge(local.services, {
    subscription = google_pubsub_subscription.companies.id
    dead_letters = google_pubsub_topic.dead_letters.id
    max_wait     = "1"
  })

  batch_parameters = merge(local.services, {
    input        = var.batch == null ? "" : var.batch.input
    dead_letters = "gs://${google_storage_bucket.this["dead-letters"].name}/batch"
  })

  labels = { application = "pause", installation = var.name }
}

# Another release, or other parameters, replace the running job in place, as `--update` does: that works while the graph
# is the kept one (infra/dataflow/README.md). Where it is not: `stream = false`, apply, which drains; then true again.
resource "google_dataflow_flex_template_job" "stream" {
  provider                     = google-beta
  count                        = var.stream ? 1 : 0
  name                         = "${var.name}-stream"
  region                       = var.region
  container_spec_gcs_path      = local.template
  sdk_container_image          = local.image
  parameters                   = local.stream_parameters
  enable_streaming_engine      = true
  autoscaling_algorithm        = "THROUGHPUT_BASED"
  num_workers                  = var.workers.least
  max_workers                  = var.workers.most
  machine_type                 = var.workers.machine
  launcher_machine_type        = "n2-standard-2"
  service_account_email        = google_service_account.this["worker"].email
  network                      = google_compute_network.this.name
  subnetwork                   = "regions/${var.region}/subnetworks/${google_compute_subnetwork.workers.name}"
  ip_configuration             = "WORKER_IP_PRIVATE"
  temp_location                = "${local.temp}/temp"
  staging_location             = "${local.temp}/staging"
  kms_key_name                 = var.kms_key
  labels                       = merge(local.labels, { release = replace(lower(var.release), ".", "-") })
  on_delete                    = "drain"
  skip_wait_on_job_termination = false

  depends_on = [
    google_artifact_registry_repository_iam_member.this,
    google_project_iam_member.this,
    google_pubsub_subscription_iam_member.worker,
    google_pubsub_topic_iam_member.dead_letters,
    google_pubsub_topic_iam_member.tracking,
    google_secret_manager_secret_iam_member.readers,
    google_storage_bucket_iam_member.this,
  ]
}

# A batch that is still running keeps its name, so the next one is refused instead of running beside it.
resource "google_cloud_scheduler_job" "batch" {
  provider         = google-beta
  count            = var.batch == null ? 0 : 1
  name             = "${var.name}-batch"
  region           = var.region
  description      = "Encodes ${var.batch.input}; unchanged companies cost a look-up"
  schedule         = var.batch.schedule
  time_zone        = var.batch.zone
  attempt_deadline = "180s"

  retry_config {
    retry_count          = 3
    min_backoff_duration = "60s"
    max_backoff_duration = "600s"
  }

  http_target {
    http_method = "POST"
    uri         = "https://dataflow.googleapis.com/v1b3/projects/${var.project}/locations/${var.region}/flexTemplates:launch"
    headers     = { "Content-Type" = "application/json" }

    body = base64encode(jsonencode({
      launchParameter = {
        jobName              = "${var.name}-batch"
        containerSpecGcsPath = local.template
        parameters           = local.batch_parameters
        environment = {
          serviceAccountEmail  = google_service_account.this["worker"].email
          network              = google_compute_network.this.name
          subnetwork           = "regions/${var.region}/subnetworks/${google_compute_subnetwork.workers.name}"
          ipConfiguration      = "WORKER_IP_PRIVATE"
          sdkContainerImage    = local.image
          tempLocation         = "${local.temp}/temp"
          stagingLocation      = "${local.temp}/staging"
          machineType          = var.workers.machine
          maxWorkers           = var.workers.most
          kmsKeyName           = var.kms_key
          additionalUserLabels = local.labels
        }
      }
    }))

    oauth_token {
      service_account_email = google_service_account.this["scheduler"].email
      scope                 = "https://www.googleapis.com/auth/cloud-platform"
    }
  }

  depends_on = [google_project_service.api, google_service_account_iam_member.acts_as_worker]
}
