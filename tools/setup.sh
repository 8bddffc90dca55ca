#!/usr/bin/env bash
# Installs what a fresh Debian or Ubuntu lacks to build, test and run cuOP: the system packages of
# tools/apt-packages.txt and, in .venv, the Python packages of pyproject.toml. Run it as often as you
# like: with everything there it only looks. Details go to build/log/setup.log.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
log=build/log/setup.log
mkdir -p build/log

fail() {
  echo "setup: $1" >&2
  exit 1
}

# --- system packages -----------------------------------------------------------------------------
mapfile -t wanted < <(grep -v '^#' tools/apt-packages.txt)

# A Python from elsewhere (pyenv, conda) brings its own venv and headers.
python=${PYTHON:-python3}
python_is_complete() {
  "$python" - <<'EOF' 2>/dev/null
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(header)))
EOF
}

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
  for package in "${wanted[@]}"; do
    grep -qx "installed $package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  local sudo=() apt=(apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "needs root or sudo to install: $*"
    sudo=(sudo)
  fi
  echo "setup: installing system packages: $*"
  local unreachable="the system package registry cannot be reached (apt-get update failed, see $log)"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" update >>"$log" 2>&1 ||
    fail "$unreachable"
  for package in "$@"; do
    [ -z "$(apt-cache show "$package" 2>/dev/null)" ] || continue
    ! grep -q '^W: Failed to fetch' "$log" || fail "$unreachable"  # which apt-get calls a warning
    fail "the system package registry has no package '$package'"
  done
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends "$@" \
    >>"$log" 2>&1 || fail "apt-get could not install: $* (see $log)"
}

if command -v apt-get >/dev/null; then
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
else
  for tool in g++ cmake ninja "$python"; do
    command -v "$tool" >/dev/null || fail "'$tool' is missing and there is no apt-get to install it"
  done
fi

# --- Python packages -----------------------------------------------------------------------------
# The stamp says for which list, and in which folder, .venv was filled.
stamp=.venv/cuop-setup.stamp
state="$root $(cat pyproject.toml tools/requirements.py tools/setup.sh | sha256sum)"
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$state" ]; then
  python_is_complete || python=/usr/bin/python3
  python_is_complete || fail "needs Python 3.11 or newer with venv and headers; $python is not"
  echo "setup: installing Python packages into .venv"
  .venv/bin/python -c '' 2>/dev/null || rm -rf .venv
  "$python" -m venv .venv >>"$log" 2>&1 || fail "$python cannot make .venv (see $log)"
  .venv/bin/python tools/requirements.py >build/log/requirements.txt
  : >build/log/pip.log
  if ! .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
    -r build/log/requirements.txt >build/log/pip.log 2>&1; then
    absent=$(sed -n 's/.*No matching distribution found for \([^ ]*\).*/\1/p' build/log/pip.log | tail -1)
    # pip says "no matching distribution" for an unreachable registry too; then it has warned before.
    if [ -n "$absent" ] && ! grep -qiE 'connection|name resolution|timed out|ProxyError' build/log/pip.log; then
      fail "the Python package registry has no '$absent' for $($python --version)"
    fi
    fail "pip could not install ${absent:-the Python packages}: is its registry reachable? (see build/log/pip.log)"
  fi
  echo "$state" >"$stamp"
fi
