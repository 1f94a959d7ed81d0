variable "project" {
  description = "Id of the project in which everything is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "A project's id has 6 to 30 small letters, digits and hyphens, and begins with a letter."
  }
}

variable "region" {
  description = "Region of the workers, the buckets and the registry: that of TensorFlow Serving and Elasticsearch."
  type        = string
  default     = "europe-west1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region is named as europe-west1 is."
  }
}

variable "name" {
  description = "Begins the name of all that is made, so that two installations can share a project."
  type        = string
  default     = "pause"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,14}[a-z0-9]$", var.name))
    error_message = "3 to 16 small letters, digits and hyphens: service accounts' names end at 30."
  }
}

variable "release" {
  description = "Tag of the image pause-pipeline that launcher and workers run; one that is never moved."
  type        = string
  default     = "0.1.0"

  validation {
    condition     = can(regex("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$", var.release)) && var.release != "latest"
    error_message = "A tag of its own, not latest: workers that start later must run what the launcher ran."
  }
}

variable "serving" {
  description = "TensorFlow Serving's gRPC endpoint as the workers reach it, HOST:PORT, several by commas."
  type        = string

  validation {
    condition     = can(regex("^[^,\\s]+:[0-9]+(,[^,\\s]+:[0-9]+)*$", var.serving))
    error_message = "HOST:PORT,... is wanted, as serving.internal:8500."
  }
}

variable "index" {
  description = "The index as the workers reach it, https://HOST:9200/ALIAS."
  type        = string

  validation {
    condition     = can(regex("^https://[^@/\\s]+/[^@/\\s]+$", var.index))
    error_message = "https://HOST:9200/ALIAS is wanted, with neither user nor password: those are in Secret Manager."
  }
}

variable "secrets" {
  description = "Environment variables of the clients whose values are kept in Secret Manager, added by hand."
  type        = set(string)
  default     = ["PAUSE_ES_API_KEY"]

  validation {
    condition     = alltrue([for variable in var.secrets : can(regex("^PAUSE_[A-Z_]+$", variable))])
    error_message = "Names of variables are wanted, as PAUSE_ES_API_KEY; never their values."
  }
}

variable "stream" {
  description = "Whether the streaming job runs. Off at first: image, template and secrets must be there before it."
  type        = bool
  default     = false
}

variable "batch" {
  description = "The scheduled batch: files it reads, and when, as cron writes it; null for none."
  type = object({
    input    = string
    schedule = optional(string, "0 3 * * *")
    zone     = optional(string, "Etc/UTC")
  })
  default = null

  validation {
    condition     = var.batch == null ? true : can(regex("^gs://[^/]+/.+$", var.batch.input))
    error_message = "batch.input is a pattern of files, as gs://BUCKET/companies/*.jsonl."
  }

  validation {
    condition     = var.batch == null ? true : length(split(" ", var.batch.schedule)) == 5
    error_message = "batch.schedule has the five fields of cron."
  }
}

variable "workers" {
  description = "Of the streaming job: how many at least and at most, and their kind. Their sum calls TensorFlow Serving."
  type = object({
    least   = optional(number, 1)
    most    = optional(number, 8)
    machine = optional(string, "n2-standard-2")
  })
  default = {}

  validation {
    condition     = var.workers.least >= 1 && var.workers.least <= var.workers.most && var.workers.most <= 1000
    error_message = "1 <= least <= most <= 1000 is wanted."
  }
}

variable "subnet" {
  description = "Addresses of the workers. A /24 is enough for 250 of them."
  type        = string
  default     = "10.90.0.0/24"

  validation {
    condition     = can(cidrhost(var.subnet, 1)) && tonumber(split("/", var.subnet)[1]) <= 28
    error_message = "A range of addresses is wanted, /28 or wider, that nothing the workers reach has."
  }
}

variable "nat" {
  description = "Whether workers may open connections to the internet. Off: all they need is Google's, or in the network."
  type        = bool
  default     = false
}

variable "publishers" {
  description = "Who may publish company records, as serviceAccount:NAME@PROJECT.iam.gserviceaccount.com."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.publishers : can(regex("^(serviceAccount|group|user):[^:]+$", member))])
    error_message = "Members are serviceAccount:..., group:... or user:...; nobody in general."
  }
}

variable "identities" {
  description = "NAMESPACE/ACCOUNT in Kubernetes of search and serving, where they run in a cluster of this project."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for account, identity in var.identities : contains(["search", "serving"], account) && can(regex("^[a-z0-9-]+/[a-z0-9-]+$", identity))])
    error_message = "As { search = \"pause/pause-search\", serving = \"pause/pause-serving\" }."
  }
}

variable "kms_key" {
  description = "Key of one's own for topics, buckets, registry and jobs, projects/.../cryptoKeys/NAME; null for Google's."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null ? true : can(regex("^projects/.+/locations/.+/keyRings/.+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/NAME is wanted."
  }
}

variable "alert_emails" {
  description = "Who is told of alerts and of the budget."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for address in var.alert_emails : can(regex("^[^@\\s]+@[^@\\s]+$", address))])
    error_message = "Addresses of e-mail are wanted."
  }
}

variable "oldest_message_minutes" {
  description = "Age of the oldest message that is not in the index, above which somebody is told."
  type        = number
  default     = 15

  validation {
    condition     = var.oldest_message_minutes >= 1
    error_message = "At least 1 minute."
  }
}

variable "budget" {
  description = "What a month may cost before somebody is told, and the billing account's id; null for no alert."
  type = object({
    billing_account = string
    amount          = number
    currency        = optional(string, "EUR")
  })
  default = null

  validation {
    condition     = var.budget == null ? true : var.budget.amount >= 1 && can(regex("^[A-F0-9]{6}(-[A-F0-9]{6}){2}$", var.budget.billing_account))
    error_message = "An amount of at least 1, and a billing account as 0A1B2C-3D4E5F-6A7B8C."
  }
}
