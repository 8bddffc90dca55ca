#!/usr/bin/env bash
# Type-checks the generated stubs and a typed program that uses them, and runs that program:
#   tools/check_stubs.sh build/release
set -euo pipefail
cd "$(dirname "$0")/.."
package=$1/python
export MYPYPATH=$package
.venv/bin/mypy --cache-dir=/dev/null --follow-imports=silent "$package/cuop/_core"
.venv/bin/mypy --cache-dir=/dev/null --strict --follow-imports=silent tools/tests/typed_sample.py
PYTHONPATH=$package .venv/bin/python tools/tests/typed_sample.py
