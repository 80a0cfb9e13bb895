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
tilewright() { cargo run --quiet --locked -p tilewright -- "$@"; }
generated=(rules operations.md)
for document in plan verdict profile audit controls screen sanitize run; do
  tilewright schema "$document" >"$out/$document.schema.json"
  generated+=("$document.schema.json")
done
rm -rf "$out/rules"
tilewright rule --pages "$out/rules"
cargo run --quiet --locked -p tilewright-emulate --example operations -- crates/ttir/tests/fixtures \
  crates/emulate/tests/fixtures crates/emulate/tests/fixtures/planted >"$out/operations.md"
if $check; then
  for name in "${generated[@]}"; do
    diff -ru "$dir/$name" "$out/$name" ||
      { echo "docs/reference is stale: run make reference" >&2; exit 1; }
  done
fi
