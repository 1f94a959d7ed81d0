# The names alone. Values are added by hand (output `commands.add_secrets`): what Terraform writes is in its state.
resource "google_secret_manager_secret" "this" {
  provider   = google-beta
  for_each   = var.secrets
  secret_id  = "${var.name}-${lower(replace(trimprefix(each.key, "PAUSE_"), "_", "-"))}"
  depends_on = [google_project_service.api]

  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
}

resource "google_secret_manager_secret_iam_member" "readers" {
  provider  = google-beta
  for_each  = { for pair in setproduct(var.secrets, ["worker", "search"]) : "${pair[1]} ${pair[0]}" => pair }
  secret_id = google_secret_manager_secret.this[each.value[0]].id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.this[each.value[1]].member
}
