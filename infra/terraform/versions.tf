terraform {
  required_version = ">= 1.5"

  required_providers {
    # The flex-template job is in the beta provider alone; one provider for all leaves no two versions to keep alike.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "~> 6.50"
    }
  }

  # The state knows every name and address of the installation, and two people may apply at once: keep it in a bucket,
  # which is made once and by hand (README.md, "The state"):
  #   terraform init -backend-config="bucket=PROJECT-terraform" -backend-config="prefix=pause"
  backend "gcs" {}
}

provider "google-beta" {
  project               = var.project
  region                = var.region
  billing_project       = var.project
  user_project_override = true
}

data "google_project" "this" {
  provider   = google-beta
  project_id = var.project
}
