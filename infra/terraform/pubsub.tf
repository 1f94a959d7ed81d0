# Records come on one topic; what cannot be encoded goes to the other, from whose subscription `--replay` takes it back.
resource "google_pubsub_topic" "companies" {
  provider                   = google-beta
  name                       = "${var.name}-companies"
  message_retention_duration = "604800s" # a week can be read again with `gcloud pubsub subscriptions seek`
  kms_key_name               = var.kms_key
  depends_on                 = [google_project_service.api]

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

resource "google_pubsub_subscription" "companies" {
  provider                   = google-beta
  name                       = "${var.name}-companies"
  topic                      = google_pubsub_topic.companies.id
  ack_deadline_seconds       = 60 # Dataflow extends it while a message is worked on
  message_retention_duration = "604800s"
  retain_acked_messages      = false

  # Off: Dataflow sets repeated messages aside by itself, and such a subscription is slower. Whatever gets through
  # repeats a version that the index has, which changes nothing there.
  enable_exactly_once_delivery = false
  # Versions decide, not the order of arrival.
  enable_message_ordering = false

  # Never: a stream that was stopped for a month would find its subscription gone, and the records with it.
  expiration_policy {
    ttl = ""
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  # No dead_letter_policy: Dataflow hands messages back for reasons of its own (a worker that leaves, a bundle that is
  # tried again), and each would count as a failed delivery. The pipeline tells bad records from sick services, and
  # writes the bad ones to the topic below.
}

resource "google_pubsub_topic" "dead_letters" {
  provider                   = google-beta
  name                       = "${var.name}-dead-letters"
  message_retention_duration = "604800s"
  kms_key_name               = var.kms_key
  depends_on                 = [google_project_service.api]

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

resource "google_pubsub_subscription" "dead_letters" {
  provider                     = google-beta
  name                         = "${var.name}-dead-letters"
  topic                        = google_pubsub_topic.dead_letters.id
  ack_deadline_seconds         = 60
  message_retention_duration   = "2678400s" # the longest there is, 31 days: somebody must put them right first
  enable_exactly_once_delivery = false

  expiration_policy {
    ttl = ""
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }
}
