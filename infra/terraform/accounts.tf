# Who may do what: each account the least it needs, on the thing itself wherever Google allows that.
locals {
  accounts = {
    worker    = "Runs the pipeline, as launcher and as worker"
    launcher  = "Starts jobs and puts images and templates there: people and continuous delivery act as it"
    scheduler = "Starts the scheduled batch"
    search    = "Answers questions"
    serving   = "Serves the model, which it reads from its bucket"
  }

  # Of the whole project, since neither jobs nor metrics are things that exist before.
  project_roles = {
    worker-dataflow    = { account = "worker", role = "roles/dataflow.worker" }
    worker-metrics     = { account = "worker", role = "roles/monitoring.metricWriter" }
    launcher-dataflow  = { account = "launcher", role = "roles/dataflow.developer" }
    scheduler-dataflow = { account = "scheduler", role = "roles/dataflow.developer" }
  }

  bucket_roles = {
    worker-temp         = { account = "worker", bucket = "temp", role = "roles/storage.objectAdmin" }
    worker-dead-letters = { account = "worker", bucket = "dead-letters", role = "roles/storage.objectUser" }
    worker-templates    = { account = "worker", bucket = "templates", role = "roles/storage.objectViewer" }
    launcher-temp       = { account = "launcher", bucket = "temp", role = "roles/storage.objectUser" }
    launcher-models     = { account = "launcher", bucket = "models", role = "roles/storage.objectUser" }
    serving-models      = { account = "serving", bucket = "models", role = "roles/storage.objectViewer" }
    launcher-templates  = { account = "launcher", bucket = "templates", role = "roles/storage.objectUser" }
    scheduler-templates = { account = "scheduler", bucket = "templates", role = "roles/storage.objectViewer" }
  }
}

resource "google_service_account" "this" {
  provider     = google-beta
  for_each     = local.accounts
  account_id   = "${var.name}-${each.key}"
  display_name = "PAUSE ${each.key}"
  description  = each.value
  depends_on   = [google_project_service.api]
}

resource "google_project_iam_member" "this" {
  #checkov:skip=CKV_GCP_49:This is the role for starting jobs; whose rights a job has is granted on the worker alone.
  provider = google-beta
  for_each = local.project_roles
  project  = var.project
  role     = each.value.role
  member   = google_service_account.this[each.value.account].member
}

resource "google_storage_bucket_iam_member" "this" {
  provider = google-beta
  for_each = local.bucket_roles
  bucket   = google_storage_bucket.this[each.value.bucket].name
  role     = each.value.role
  member   = google_service_account.this[each.value.account].member
}

# The batch's files may be in a bucket of somebody else's.
resource "google_storage_bucket_iam_member" "input" {
  provider = google-beta
  count    = var.batch == null ? 0 : 1
  bucket   = split("/", var.batch.input)[2]
  role     = "roles/storage.objectViewer"
  member   = google_service_account.this["worker"].member
}

# Whoever starts a job hands the worker's rights to it.
resource "google_service_account_iam_member" "acts_as_worker" {
  provider           = google-beta
  for_each           = toset(["launcher", "scheduler"])
  service_account_id = google_service_account.this["worker"].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.this[each.key].member
}

resource "google_pubsub_subscription_iam_member" "worker" {
  provider     = google-beta
  for_each     = toset(["roles/pubsub.subscriber", "roles/pubsub.viewer"])
  subscription = google_pubsub_subscription.companies.id
  role         = each.key
  member       = google_service_account.this["worker"].member
}

resource "google_pubsub_subscription_iam_member" "replay" {
  provider     = google-beta
  for_each     = toset(["roles/pubsub.subscriber", "roles/pubsub.viewer"])
  subscription = google_pubsub_subscription.dead_letters.id
  role         = each.key
  member       = google_service_account.this["worker"].member
}

resource "google_pubsub_topic_iam_member" "dead_letters" {
  provider = google-beta
  topic    = google_pubsub_topic.dead_letters.id
  role     = "roles/pubsub.publisher"
  member   = google_service_account.this["worker"].member
}

# Dataflow follows the time of a subscription by one of its own on the same topic.
resource "google_pubsub_topic_iam_member" "tracking" {
  provider = google-beta
  for_each = { companies = google_pubsub_topic.companies.id, dead-letters = google_pubsub_topic.dead_letters.id }
  topic    = each.value
  role     = "roles/pubsub.subscriber"
  member   = google_service_account.this["worker"].member
}

resource "google_pubsub_topic_iam_member" "publishers" {
  provider = google-beta
  for_each = var.publishers
  topic    = google_pubsub_topic.companies.id
  role     = "roles/pubsub.publisher"
  member   = each.key
}

resource "google_artifact_registry_repository_iam_member" "this" {
  provider   = google-beta
  for_each   = { worker = "roles/artifactregistry.reader", launcher = "roles/artifactregistry.writer" }
  repository = google_artifact_registry_repository.images.name
  location   = var.region
  role       = each.value
  member     = google_service_account.this[each.key].member
}

# Search and serving run in a cluster, and are these accounts there without a key that could be lost.
resource "google_service_account_iam_member" "identities" {
  provider           = google-beta
  for_each           = var.identities
  service_account_id = google_service_account.this[each.key].name
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project}.svc.id.goog[${each.value}]"
}
