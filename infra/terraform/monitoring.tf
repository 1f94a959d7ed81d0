locals {
  runbook = "infra/terraform/README.md"

  # Of what Google counts by itself. Thresholds are for a stream that should be minutes behind at most.
  alerts = {
    stale = {
      name     = "companies are late"
      filter   = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = \"${google_pubsub_subscription.companies.name}\" AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      aligner  = "ALIGN_MAX"
      above    = var.oldest_message_minutes * 60
      duration = "300s"
    }
    dead-letters = {
      name     = "dead letters wait to be put right"
      filter   = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = \"${google_pubsub_subscription.dead_letters.name}\" AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      aligner  = "ALIGN_MAX"
      above    = 0
      duration = "300s"
    }
    bad-records = {
      name     = "the batch had bad records"
      filter   = "resource.type = \"dataflow_job\" AND resource.labels.job_name = \"${var.name}-batch\" AND metric.type = \"dataflow.googleapis.com/job/user_counter\" AND metric.labels.metric_name = one_of(\"bad\", \"dead\")"
      aligner  = "ALIGN_MAX"
      above    = 0
      duration = "0s"
    }
    lag = {
      name     = "the stream does not keep up"
      filter   = "resource.type = \"dataflow_job\" AND resource.labels.job_name = \"${var.name}-stream\" AND metric.type = \"dataflow.googleapis.com/job/system_lag\""
      aligner  = "ALIGN_MAX"
      above    = var.oldest_message_minutes * 60
      duration = "300s"
    }
    failed = {
      name     = "a job failed"
      filter   = "resource.type = \"dataflow_job\" AND resource.labels.job_name = monitoring.regex.full_match(\"${var.name}-(stream|batch)\") AND metric.type = \"dataflow.googleapis.com/job/is_failed\""
      aligner  = "ALIGN_MAX"
      above    = 0
      duration = "0s"
    }
    errors = {
      name     = "workers report errors"
      filter   = "resource.type = \"dataflow_job\" AND metric.type = \"logging.googleapis.com/user/${google_logging_metric.worker_errors.name}\""
      aligner  = "ALIGN_DELTA"
      above    = 20
      duration = "600s"
    }
    launch = {
      name     = "the batch was not started"
      filter   = "resource.type = \"cloud_scheduler_job\" AND metric.type = \"logging.googleapis.com/user/${google_logging_metric.failed_launches.name}\""
      aligner  = "ALIGN_DELTA"
      above    = 0
      duration = "0s"
    }
  }
}

resource "google_logging_metric" "worker_errors" {
  provider    = google-beta
  name        = "${var.name}-worker-errors"
  description = "Errors in the logs of workers and launchers"
  filter      = "resource.type = \"dataflow_step\" AND resource.labels.job_name =~ \"^${var.name}-(stream|batch)$\" AND severity >= ERROR"
  depends_on  = [google_project_service.api]

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }
}

resource "google_logging_metric" "failed_launches" {
  provider    = google-beta
  name        = "${var.name}-failed-launches"
  description = "Scheduled batches that Dataflow did not take"
  filter      = "resource.type = \"cloud_scheduler_job\" AND resource.labels.job_id = \"${var.name}-batch\" AND severity >= ERROR"
  depends_on  = [google_project_service.api]

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }
}

resource "google_monitoring_notification_channel" "email" {
  provider     = google-beta
  for_each     = var.alert_emails
  display_name = "PAUSE: ${each.key}"
  type         = "email"
  labels       = { email_address = each.key }
  depends_on   = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "this" {
  provider              = google-beta
  for_each              = local.alerts
  display_name          = "PAUSE ${var.name}: ${each.value.name}"
  combiner              = "OR"
  severity              = contains(["dead-letters", "bad-records"], each.key) ? "WARNING" : "ERROR"
  notification_channels = [for channel in google_monitoring_notification_channel.email : channel.name]
  user_labels           = local.labels

  conditions {
    display_name = each.value.name

    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = each.value.duration

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = each.value.aligner
      }

      trigger {
        count = 1
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "What it means and what to do: ${local.runbook}, section \"${each.key}\"."
  }
}

resource "google_billing_budget" "month" {
  provider        = google-beta
  count           = var.budget == null ? 0 : 1
  billing_account = var.budget.billing_account
  display_name    = "PAUSE ${var.name}"

  budget_filter {
    projects = ["projects/${data.google_project.this.number}"]
  }

  amount {
    specified_amount {
      currency_code = var.budget.currency
      units         = tostring(floor(var.budget.amount))
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]
    content {
      threshold_percent = threshold_rules.value
    }
  }

  # What the month will come to if it goes on like this: told before it is spent.
  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  all_updates_rule {
    monitoring_notification_channels = [for channel in google_monitoring_notification_channel.email : channel.name]
    disable_default_iam_recipients   = false
  }
}
