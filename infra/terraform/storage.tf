locals {
  # Days after which what is no longer live goes, and what is live. Dead letters quote records: nobody keeps them for
  # ever. Models are kept by `serving.publish --keep_versions`, not by age.
  buckets = {
    templates    = { former_days = 90, days = null, soft_delete_days = 7 }
    models       = { former_days = 90, days = null, soft_delete_days = 7 }
    dead-letters = { former_days = 7, days = 90, soft_delete_days = 7 }
    # Written and read by running jobs alone: every kept copy is only a cost.
    temp = { former_days = 1, days = 14, soft_delete_days = 0 }
  }
}

resource "google_storage_bucket" "this" {
  #checkov:skip=CKV_GCP_62:Access is told by Cloud Audit Logs; a second log of it would be a bucket more to guard.
  provider                    = google-beta
  for_each                    = local.buckets
  name                        = "${var.project}-${var.name}-${each.key}"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = each.key == "temp"

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = each.value.soft_delete_days * 86400
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = each.value.former_days
      with_state                 = "ARCHIVED"
    }
  }

  dynamic "lifecycle_rule" {
    for_each = each.value.days == null ? [] : [each.value.days]
    content {
      action {
        type = "Delete"
      }
      condition {
        age = lifecycle_rule.value
      }
    }
  }

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]
    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [google_project_service.api]
}

resource "google_artifact_registry_repository" "images" {
  provider      = google-beta
  repository_id = var.name
  location      = var.region
  format        = "DOCKER"
  description   = "pause-pipeline, pause-search and pause-serving"
  kms_key_name  = var.kms_key

  # A tag that could be moved would give a running job's new workers another program than its first ones.
  docker_config {
    immutable_tags = true
  }

  cleanup_policies {
    id     = "untagged"
    action = "DELETE"
    condition {
      tag_state  = "UNTAGGED"
      older_than = "2592000s"
    }
  }

  depends_on = [google_project_service.api]
}
