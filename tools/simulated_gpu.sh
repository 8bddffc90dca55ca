#!/usr/bin/env bash
# Runs a command with the simulated GPU of a build folder in the place of a real one:
#   tools/simulated_gpu.sh build/ci .venv/bin/python -m pytest python/tests/gpu
# The variables SIM_* are in CONTRIBUTING.md.
set -euo pipefail
folder=$(realpath "$1")/simulator
shift
[ -f "$folder/libcuda.so.1" ] || { echo "simulated_gpu: $folder has no libcuda.so.1" >&2; exit 1; }
export LD_LIBRARY_PATH=$folder CUOP_LIBRARY_PATH=$folder CUOP_CACHE_DIR=$folder/cache
# Simulated matrix units are a hundred times slower than the simulated cuBLASLt.
export CUOP_SPLIT_PRODUCTS=${CUOP_SPLIT_PRODUCTS:-0}
exec "$@"
