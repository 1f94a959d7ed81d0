# terraform apply -var-file=example.tfvars, after a copy of it is yours. No secret belongs in here: they are added by hand.
project = "acme-similarity"
region  = "europe-west1"
release = "0.1.0"

serving = "serving.pause.internal:8500"
index   = "https://elasticsearch.pause.internal:9200/companies"
secrets = ["PAUSE_ES_API_KEY"]

# First apply with false; true once image, template and secrets are there.
stream  = false
workers = { least = 1, most = 8, machine = "n2-standard-2" }

batch = {
  input    = "gs://acme-register/companies/*.jsonl"
  schedule = "0 3 * * *"
  zone     = "Europe/Berlin"
}

publishers = ["serviceAccount:register@acme-similarity.iam.gserviceaccount.com"]
identities = { search = "pause/pause-search", serving = "pause/pause-serving" }

alert_emails = ["on-call@acme.example"]
budget       = { billing_account = "0A1B2C-3D4E5F-6A7B8C", amount = 1500, currency = "EUR" }
