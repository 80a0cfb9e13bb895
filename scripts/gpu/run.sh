#!/usr/bin/env bash
# Verifies every problem, and a labelled corpus if there is one, on this machine's GPU, and prints Markdown tables.
#   scripts/gpu/run.sh [CORPUS]
# BINARY names the binary (default: built here, or the one in .gpu/ that was built elsewhere and carried along);
# OUT is where the verdicts go as JSON lines.
set -uo pipefail
cd "$(dirname "$0")/../.."
corpus=${1:-}
out=${OUT:-/tmp}
if [ -z "${BINARY:-}" ]; then
  if command -v cargo >/dev/null; then
    cargo build --release --locked -p tilewright && BINARY=target/release/tilewright
  else
    BINARY=.gpu/tilewright
    chmod +x "$BINARY"
  fi
fi
export TILEWRIGHT_PYTHON=${TILEWRIGHT_PYTHON:-python3}
# The Python side runs isolated from the environment, so the package is made known by a .pth file.
if ! "$TILEWRIGHT_PYTHON" -I -c 'import tilewright' 2>/dev/null; then
  site=$("$TILEWRIGHT_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" >"$site/tilewright.pth"
fi
"$BINARY" doctor
python3 scripts/verdict_table.py --binary "$BINARY" --target cuda:0 --jobs 6 --json "$out/problems.jsonl" problems
status=$?
if [ -n "$corpus" ]; then
  python3 scripts/verdict_table.py --binary "$BINARY" --target cuda:0 --jobs 6 \
    --json "$out/corpus.jsonl" --corpus "$corpus" || status=1
fi
exit $status
