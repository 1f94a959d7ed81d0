#!/bin/sh
# Publishes the newest version of one base path to another, unless it is the newest there: publish.sh FROM TO.
set -eu

facts() { # of the newest version: its fingerprint, golden vectors and lineage
    version="$(find "$1" -mindepth 1 -maxdepth 1 -type d 2> /dev/null | sed 's#.*/##' | grep -x '[0-9]*' | sort -n | tail -n 1)"
    cat "$1/$version/assets.extra/pause.json" 2> /dev/null
}

if wanted="$(facts "$1")" && [ "$wanted" = "$(facts "$2")" ]; then
    echo "the newest model of $1 is published already"
else
    exec python -m serving.publish --from "$1" --to "$2"
fi
