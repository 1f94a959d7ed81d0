#!/usr/bin/env bash
# Roles and users of Elasticsearch, made or brought to what is wanted: users.sh URL. Runs in Elasticsearch's own image.
set -euo pipefail

url="$1"
secrets="${SECRETS:-/run/secrets}"
roles="${ROLES:-$(dirname "$0")/roles.tsv}"

ask() { # METHOD PATH, body on stdin; the password of `elastic` stays off the command line
    curl --silent --show-error --fail-with-body --cacert "$secrets/ca" --request "$1" "$url/$2" \
        --config <(printf 'user = "elastic:%s"' "$(cat "$secrets/elastic_password")") \
        --header 'Content-Type: application/json' --data-binary @-
    echo
}

# A line of the file is a role: its name, a tab, and what it may do.
while IFS=$'\t' read -r role rights; do
    ask PUT "_security/role/pause_$role" <<< "$rights"
    ask PUT "_security/user/pause_$role" \
        <<< "{\"password\": \"$(cat "$secrets/${role}_password")\", \"roles\": [\"pause_$role\"]}"
done < "$roles"
