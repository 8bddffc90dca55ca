#!/usr/bin/env bash
# Builds the wheel as `pip install .` does, installs it into a fresh environment and uses it there,
# with nothing of the tree in reach.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The build requirements stand in .venv: taking them from there lets ccache know the sources again, as
# does the compiler's name, which would be the one of Python's own build.
export CXX=${CXX:-c++}
.venv/bin/python -m pip wheel --no-deps --no-build-isolation --disable-pip-version-check \
  --config-settings cmake.define.CUOP_WERROR=ON --wheel-dir "$work" .
"$root/.venv/bin/python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$work"/*.whl
cd "$work"
"$work/venv/bin/python" "$root/tools/use_wheel.py"
