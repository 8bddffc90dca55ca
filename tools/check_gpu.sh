#!/usr/bin/env bash
# The gate for machines with a GPU: configures, builds, runs all C++ and Python tests with a GPU as the
# default device, and those of kernels under compute-sanitizer. Results go to $OUT, or build/gpu-results.
#   CUOP_GTEST_SOURCE  GoogleTest's sources, where the machine has no GoogleTest
#   CUOP_GPU_BUILD     an existing build folder to use instead of building
#   CUOP_GPU_STAGES    which to run, of: build gpu-tests ctest pytest pytest-default pages jit fuzz memcheck
#                      memcheck-pool racecheck bench (default: all)
#   CUOP_PAGES         the folder of the documented pages and their runner (default: ../shared/pages)
#   CUOP_SANITIZE_FILTER  GoogleTest's filter for memcheck and racecheck
set -uo pipefail
cd "$(dirname "$0")/.."
results=${OUT:-build/gpu-results}
build=${CUOP_GPU_BUILD:-build/gpu}
all="build gpu-tests ctest pytest pytest-default pages jit fuzz memcheck memcheck-pool racecheck bench"
stages=${CUOP_GPU_STAGES:-$all}
python=${PYTHON:-python3}
mkdir -p "$results"
failed=()

# stage NAME SECONDS COMMAND...: runs it if it was asked for, keeps its log, prints one line.
stage() {
  local name=$1 limit=$2 begin=$SECONDS
  shift 2
  [[ " $stages " == *" $name "* ]] || return 0
  if timeout --kill-after=10 "$limit" bash -c '"$@"' "$name" "$@" >"$results/$name.log" 2>&1; then
    echo "ok      $name ($((SECONDS - begin)) s)"
  else
    echo "FAILED  $name ($((SECONDS - begin)) s), the end of $results/$name.log:"
    tail -n 40 "$results/$name.log"
    failed+=("$name")
    return 1
  fi
}

configure_and_build() {
  local options=(-DCMAKE_BUILD_TYPE=Release -DCUOP_PYTHON=ON -DCUOP_SIMULATED_GPU=OFF
    -DPython_EXECUTABLE="$(command -v "$python")")
  [ -z "${CUOP_GTEST_SOURCE:-}" ] || options+=(-DCUOP_GTEST_SOURCE="$(realpath "$CUOP_GTEST_SOURCE")")
  [ ! -x /usr/bin/g++ ] || options+=(-DCMAKE_CXX_COMPILER=/usr/bin/g++)
  cmake -G Ninja -B "$build" "${options[@]}" && cmake --build "$build"
}

# The folders of NVIDIA's Python packages, which hold the libraries where no toolkit is installed.
package_libraries() {
  "$python" - <<'END'
import glob, site
print(":".join(p for s in site.getsitepackages() for p in sorted(glob.glob(s + "/nvidia/*/lib"), reverse=True)))
END
}

# sharded TESTS FILTER: a program of tests in $at_once processes, or 8, spread over the GPUs.
sharded() {
  local count=${at_once:-8} gpus status=0 shard waiting=()
  gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
  for ((shard = 0; shard < count; ++shard)); do
    CUDA_VISIBLE_DEVICES=$(order_of $((shard % gpus)) "$gpus") GTEST_TOTAL_SHARDS=$count \
      GTEST_SHARD_INDEX=$shard "$build/tests/$1" --gtest_filter="$2" \
      >"$results/$1-$shard.txt" 2>&1 &
    waiting+=($!)
  done
  for ((shard = 0; shard < count; ++shard)); do
    wait "${waiting[shard]}" && continue
    status=1
    echo "FAILED $1, shard $shard of $count:"
    grep -E '^\[  FAILED|Failure$' -A4 "$results/$1-$shard.txt" ||
      tail -n 5 "$results/$1-$shard.txt"
  done
  return "$status"
}

# order_of FIRST COUNT: all GPUs, beginning with that one.
order_of() {
  local first=$1 count=$2 i
  for ((i = 0; i < count; ++i)); do echo $(((first + i) % count)); done | paste -sd,
}

# The rest a process each: those that fill a GPU's memory or measure it, that end their process, or
# whose ranks are processes.
gpu_tests() {
  local alone=(GpuPool GpuRuntime Runtime_cuda GpuMeasure GpuUserKernel GpuLibraryTuning) status=0
  local filter regex
  filter=$(printf '%s.*:' "${alone[@]}")
  regex=$(printf '%s\\.|' "${alone[@]}")
  sharded cuop_gpu_tests "-$filter*DeathTest*" || status=1
  sharded cuop_gpu_rank_tests '*' || status=1
  ctest --test-dir "$build" -R "^gpu\.($regex.*DeathTest|processes)" --no-tests=error -j 3 \
    --timeout 200 --output-on-failure || status=1
  return "$status"
}

# sanitize STAGE FILTER TOOL OPTION...: a process for each test, as one error ends what follows it;
# $at_once of them, or 8.
sanitize() {
  local stage=$1 filter=$2 tests=$build/tests/cuop_gpu_tests
  shift 2
  "$tests" --gtest_list_tests --gtest_filter="$filter" |
    awk '/^[^ ]/ { suite = $1; next } !/DISABLED_/ { print suite $1 }' |
    xargs -P "${at_once:-8}" -I TEST bash -c '
      test=$1 && shift
      said=$("$@" --gtest_filter="$test" 2>&1) || { echo "FAILED $test"; echo "$said"; exit 1; }' \
      sanitize TEST compute-sanitizer --tool "$@" --error-exitcode 1 \
      --log-file "$results/$stage-%p.txt" "$tests"
}
# Only what kernels do to memory counts. Driver calls that fail do not: tests let them fail on purpose
# (five of cuMemCreate in GpuPool.ANeighbourThatHoldsMostOfTheDeviceIsNamed), and every other one is
# an error of the test that meets it. One kernel of cuDNN is passed over: it reads a bias of 24 bytes as
# whole vectors, to the 32nd byte; no allocator gives those eight to anybody else.
memcheck() {
  sanitize "$1" "$2" memcheck --report-api-errors no \
    --kernel-name-exclude kns=xmma_fprop_implicit_gemm_indexed
}

# One kernel of cuSPARSE is passed over: its blocks write the same sums of rows in shared memory without
# a barrier (csrmv_v3, CUDA 13.0), and the products are right. Within kernels of cuBLAS for Hopper
# (nvjet) racecheck reports hazards too, and fails on an illegal address where they are passed over by
# name: the stage leaves out the tests whose products they make.
racecheck() {
  sanitize "$1" "$2" racecheck --kernel-name-exclude kns=csrmv_v3_kernel
}

# pages PAGE BLOCKS...: all blocks of the documented pages, as printed, with PyTorch and Triton
# themselves: on a machine without them the runner would take a stand-in, and prove nothing.
pages() {
  local folder output
  folder=$(realpath "${CUOP_PAGES:-../shared/pages}")
  [ -f "$folder/run.py" ] || { echo "no $folder/run.py: CUOP_PAGES names the pages' folder"; return 1; }
  "$python" -c 'import torch, triton; assert torch.cuda.is_available()' || return 1
  while [ $# -gt 0 ]; do
    output=$(cd "$(mktemp -d)" && "$python" "$folder/run.py" "$1" 2>&1)
    echo "$output"
    grep -qx "0 of $2 blocks fail" <<<"$output" && [ "$(grep -c "^ok   $1\[" <<<"$output")" = "$2" ] ||
      return 1
    shift 2
  done
}

# The table, which fails for a missed goal, is for people to judge; without one the stage failed.
bench() {
  "$python" -m cuop.cli.main bench --suite gpu --output "$results/bench-gpu.md" ||
    [ -s "$results/bench-gpu.md" ]
}

export results build python
export -f configure_and_build sharded order_of gpu_tests sanitize memcheck racecheck pages bench
if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
  echo "check_gpu: this machine has no usable NVIDIA GPU" >&2
  exit 1
fi
export CUOP_LIBRARY_PATH=${CUOP_LIBRARY_PATH:-$(package_libraries)}
[ -n "${CUOP_GPU_BUILD:-}" ] || stage build 1500 configure_and_build || exit 1
export PYTHONPATH=$(realpath "$build")/python
# All of them, as a GPU is the default device. Those of GPUs in few processes: making a context takes
# longer than most tests.
stage gpu-tests 900 gpu_tests
stage ctest 900 env CUOP_TEST_ARCHITECTURES=all \
  ctest --test-dir "$build" -E '^gpu\.' --no-tests=error -j 8 --timeout 200 --output-on-failure --output-junit "$(realpath "$results")/ctest.xml"
stage pytest 600 "$python" -m pytest python/tests/gpu -q -rsfE -p no:cacheprovider \
  --junitxml="$results/pytest.xml"
# All other tests of the Python package, which use the GPU as its users do: by default.
stage pytest-default 600 "$python" -m pytest python/tests --ignore=python/tests/gpu -q -rsfE \
  -p no:cacheprovider -n 12 --junitxml="$results/pytest-default.xml"
stage pages 600 pages cuop 21 genesis 11 distributed_gpu 43
stage jit 600 "$python" tools/check_jit.py
POOL_FUZZ_OPERATIONS=5000000 stage fuzz 600 "$build/tests/cuop_gpu_tests" \
  --gtest_filter='GpuPool.SurvivesRandomPrograms*'
# Left out below: kernels that fail on purpose, and what is recorded into graphs of others: there the
# sanitizer itself does what must not be recorded. With the driver's allocator each tensor is a block
# of its own, whose end memcheck knows; the pool's blocks lie side by side in one, and where they lie
# over two mapped pieces memcheck calls a bulk copy of both (GpuSplitConv, GpuSplitProduct) out of
# bounds. Tests of the pool fill the GPU's memory or measure it, and graphs of others take theirs from
# it.
unfit=GpuErrorDeathTest.*:GpuLibraryCalls.WhatTheyNeedIsMadeWhileAnotherLibraryRecords
CUOP_CUDA_ALLOCATOR=driver stage memcheck 600 memcheck memcheck \
  "${CUOP_SANITIZE_FILTER:--$unfit:GpuPool.*:GpuGraph.*}"
at_once=1 stage memcheck-pool 600 memcheck memcheck-pool 'GpuPool.*:GpuGraph.*'
stage racecheck 600 racecheck racecheck "${CUOP_SANITIZE_FILTER:--$unfit:GpuPool.*:GpuPaddedProduct.*}"
stage bench 600 bench
for log in gpu-tests ctest pytest pytest-default pages jit; do
  [ ! -f "$results/$log.log" ] || tail -n 3 "$results/$log.log"
done
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
[ ${#failed[@]} -eq 0 ]
