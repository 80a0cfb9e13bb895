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
# The whole workspace with its examples, as the tests build it: another choice of packages means other features of what
# they depend on, and all of that once more.
cargo build --workspace --bins --examples --locked
target=${CARGO_TARGET_DIR:-target}/debug
generated=(rules operations.md)
for document in plan verdict profile report audit bench-run bench-report bench-compare controls screen sanitize run; do
  "$target/tilewright" schema "$document" >"$out/$document.schema.json"
  generated+=("$document.schema.json")
done
rm -rf "$out/rules"
"$target/tilewright" rule --pages "$out/rules"
"$target/examples/operations" crates/ttir/tests/fixtures \
  crates/emulate/tests/fixtures crates/emulate/tests/fixtures/planted >"$out/operations.md"
if $check; then
  for name in "${generated[@]}"; do
    diff -ru "$dir/$name" "$out/$name" ||
      { echo "docs/reference is stale: run make reference" >&2; exit 1; }
  done
fi
