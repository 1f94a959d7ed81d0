#!/usr/bin/env bash
# Topics and subscriptions of the Pub/Sub emulator, made where it has none: topics.sh URL PROJECT.
set -euo pipefail

url="$1/v1/projects/$2"

make() { # PATH BODY
    local status
    status="$(curl --silent --output /dev/null --write-out '%{http_code}' --request PUT "$url/$1" \
        --header 'Content-Type: application/json' --data "$2")"
    [[ "$status" == 200 || "$status" == 409 ]] # 409: it is there
}

for name in companies dead-letters; do
    make "topics/$name" '{}'
    make "subscriptions/$name" "{\"topic\": \"projects/$2/topics/$name\", \"ackDeadlineSeconds\": 60}"
done
