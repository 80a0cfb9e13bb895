#!/usr/bin/env bash
# Fuzzes one target for some seconds, from the files of this repository.
#   fuzz/run.sh parse|analyse|ttir|emulate SECONDS
set -euo pipefail
cd "$(dirname "$0")"
target=$1 seconds=$2
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
case $target in
parse)
  for file in ../problems/*/candidate.py ../corpus/*/*.py ../crates/screen/tests/cut/*.py; do
    cp "$file" "$seeds/$(echo "${file#../}" | tr / _)"
  done
  options=(-dict=python.dict -max_len=16384)
  ;;
ttir)
  cp ../crates/ttir/tests/fixtures/*.ttir "$seeds"
  options=(-dict=ttir.dict -max_len=16384)
  ;;
*) options=(-max_len=1024) ;;
esac
mkdir -p "corpus/$target"
cargo +nightly fuzz run "$target" "corpus/$target" "$seeds" -- \
  "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 "${options[@]}"
