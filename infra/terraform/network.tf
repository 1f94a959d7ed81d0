# The workers' own network: no public address on any of them, Google's services reached by private ones.
resource "google_compute_network" "this" {
  provider                = google-beta
  name                    = var.name
  auto_create_subnetworks = false
  depends_on              = [google_project_service.api]
}

resource "google_compute_subnetwork" "workers" {
  provider                 = google-beta
  name                     = "${var.name}-workers"
  network                  = google_compute_network.this.id
  region                   = var.region
  ip_cidr_range            = var.subnet
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

# Workers exchange data with each other; Dataflow puts this tag on them. Nothing else may come in.
resource "google_compute_firewall" "between_workers" {
  provider    = google-beta
  name        = "${var.name}-between-workers"
  network     = google_compute_network.this.id
  direction   = "INGRESS"
  source_tags = ["dataflow"]
  target_tags = ["dataflow"]

  allow {
    protocol = "tcp"
    ports    = ["12345-12346"]
  }
}

resource "google_compute_router" "nat" {
  provider = google-beta
  count    = var.nat ? 1 : 0
  name     = "${var.name}-nat"
  network  = google_compute_network.this.id
  region   = var.region
}

resource "google_compute_router_nat" "nat" {
  provider                           = google-beta
  count                              = var.nat ? 1 : 0
  name                               = "${var.name}-nat"
  router                             = google_compute_router.nat[0].name
  region                             = var.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.workers.id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
