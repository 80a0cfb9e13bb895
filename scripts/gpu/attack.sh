#!/usr/bin/env bash
# Attacks by kernels, on this machine's GPU: none may be accepted, and the honest candidate after each must be.
#   scripts/gpu/attack.sh
# BINARY names the binary (default: built here, or the one in .gpu/ that was built elsewhere and carried along);
# OUT is where the verdicts go as JSON lines.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp}
attacks=scripts/gpu/attack
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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One after the other, an honest one behind each.
number=10
for attack in "$attacks"/hack/*.py; do
  cp "$attack" "$work/$number-$(basename "$attack")"
  cp "$attacks/honest/plain.py" "$work/$number-then-honest.py"
  number=$((number + 1))
done
cp "$attacks/honest/prints.py" "$work/99-prints.py"
"$BINARY" verify "$attacks/problems/add_one.py" --batch "$work" --jobs 1 --target cuda:0 --timeout 20 --trials 2 \
  >"$out/attack.jsonl" || exit 1
"$TILEWRIGHT_PYTHON" scripts/gpu/attack_report.py "$attacks/labels.csv" "$out/attack.jsonl"
