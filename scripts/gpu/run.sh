#!/usr/bin/env bash
# Verifies every problem and audits the corpus on this machine's GPU; prints Markdown and the audit's tables.
#   scripts/gpu/run.sh [OPTION OF tilewright audit…]
# OUT is where verdicts (JSON lines) and the audit's page go.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/gpu/setup.sh
"$BINARY" doctor
python3 scripts/verdict_table.py --binary "$BINARY" --target cuda:0 --jobs 6 --json "$out/problems.jsonl" problems
status=$?
"$BINARY" audit corpus --target cuda:0 --resume "$out/audit.jsonl" --html "$out/audit.html" "$@" || status=1
exit $status
