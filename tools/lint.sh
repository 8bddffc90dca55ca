#!/usr/bin/env bash
# Checks style and structure: dependency rule, one definition a name, clang-format, ruff. With --fix
# it formats what it can.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
[ -x $bin/clang-format ] || { echo "lint: run tools/setup.sh first" >&2; exit 1; }

mapfile -t cpp < <(git ls-files --cached --others --exclude-standard '*.h' '*.cpp' '*.cuh')
python=(python tools benchmarks examples)
for i in "${!python[@]}"; do [ -d "${python[i]}" ] || unset "python[i]"; done

status=0
if [ "${1:-}" = --fix ]; then
  $bin/clang-format -i "${cpp[@]}"
  $bin/ruff check --quiet --fix "${python[@]}"
  $bin/ruff format --quiet "${python[@]}"
fi
$bin/python tools/check_layers.py || status=1
$bin/python tools/check_names.py || status=1
$bin/python tools/check_stable_api.py || status=1
$bin/clang-format --dry-run -Werror "${cpp[@]}" || status=1
$bin/ruff check --quiet "${python[@]}" || status=1
$bin/ruff format --quiet --diff "${python[@]}" || status=1
[ $status -eq 0 ] && echo "lint: ${#cpp[@]} C++ files and ${python[*]} are clean" ||
  echo "lint: findings above; tools/lint.sh --fix formats"
exit $status
