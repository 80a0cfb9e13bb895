# Sourced by the scripts beside it, in the repository's root. Sets BINARY (built here, or the one in .gpu/ that was
# built elsewhere and carried along), TILEWRIGHT_PYTHON and OUT, and makes the Python package known.
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
