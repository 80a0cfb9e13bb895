#!/usr/bin/env bash
# Writes the generated pages of docs/reference, or with --check fails if they are not what the code generates.
#   scripts/reference.sh [--check] DIR
set -euo pipefail
check=false
if [ "$1" = --check ]; then check=true; shift; fi
dir=$1
out=$dir
if $check; then out=$(mktemp -d); trap 'rm -rf "$out"' EXIT; fi
mkdir -p "$out"
cargo build --quiet --locked -p tilewright
for document in plan verdict profile audit; do
  cargo run --quiet --locked -p tilewright -- schema "$document" >"$out/$document.schema.json"
done
if $check; then
  for document in plan verdict profile audit; do
    diff -u "$dir/$document.schema.json" "$out/$document.schema.json" ||
      { echo "docs/reference is stale: run make reference" >&2; exit 1; }
  done
fi
