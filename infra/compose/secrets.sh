#!/usr/bin/env bash
# Passwords, keys and certificates of infra/compose.yaml, made where they are missing and never changed otherwise.
#
#     infra/compose/secrets.sh [--renew] [FOLDER]      --renew: new certificates, all else stays
#
# PAUSE_HOST is the name people reach the page by (localhost). Needs openssl.
set -euo pipefail
umask 077

renew=false
if [[ "${1:-}" == --renew ]]; then renew=true; shift; fi
folder="${1:-$(cd "$(dirname "$0")" && pwd)/secrets}"
if [[ $# -gt 1 || "$folder" == -* ]]; then
    echo "error: takes --renew and a folder, got: $*" >&2
    exit 2
fi
command -v openssl > /dev/null || { echo "error: openssl is needed to make keys; install it" >&2; exit 2; }
host="${PAUSE_HOST:-localhost}"
days=820 # browsers take no certificate for longer than 825
mkdir -p "$folder"
chmod 700 "$folder"
scratch="$(mktemp -d "$folder/.new.XXXXXX")" # beside them, so that a file appears by rename
trap 'rm -rf "$scratch"' EXIT

# Whole or not at all.
put() { cat > "$scratch/new" && mv "$scratch/new" "$folder/$1"; }

certificate() { # NAME, then subject alternative names
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -keyout "$scratch/$1.key" -out "$scratch/$1.csr" 2> "$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
    openssl x509 -req -in "$scratch/$1.csr" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -CAcreateserial -days "$days" \
        -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' "$2") \
        -out "$scratch/$1.pem" 2> "$scratch/said" || { cat "$scratch/said" >&2; exit 1; }
}

for name in elastic_password pipeline_password search_password grafana_password signing; do
    [[ -s "$folder/$name" ]] || openssl rand -hex 32 | tr -d '\n' | put "$name"
done

# A first API key of the search service. The service has its hash alone; api_key is for people, and is mounted nowhere.
if [[ ! -s "$folder/keys" ]]; then
    key="$(openssl rand -hex 32)"
    printf %s "$key" | put api_key
    printf 'first read,feedback %s\n' "$(printf %s "$key" | openssl dgst -sha256 -r | cut -d ' ' -f 1)" | put keys
fi

wanted=(ca.pem elasticsearch.pem elasticsearch.key proxy.pem proxy.key)
for name in "${wanted[@]}"; do [[ -s "$folder/$name" ]] || renew=true; done
if $renew; then
    # The authority signs these two and is gone: nobody can sign a third.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=pause" -days "$days" \
        -addext keyUsage=critical,keyCertSign -keyout "$scratch/ca.key" -out "$scratch/ca.pem" 2> "$scratch/said" \
        || { cat "$scratch/said" >&2; exit 1; }
    certificate elasticsearch "DNS:elasticsearch,DNS:localhost,IP:127.0.0.1"
    certificate proxy "DNS:$host,DNS:localhost,IP:127.0.0.1"
    for name in "${wanted[@]}"; do put "$name" < "$scratch/$name"; done
fi

# Containers read these as the user they belong to. Root's become nobody's: no container runs as root.
owner="$(id -u)"
if [[ "$owner" == 0 ]]; then
    owner=65534
    chown "$owner" "$folder"/*
fi
printf 'PAUSE_UID=%s\n' "$owner" | put env
