"""cuOP's own products beside cuBLASLt's on a GPU: TFLOP/s, their ratio and the error of each kernel.

    python benchmarks/own_products.py                          # all sizes, float32 and float64
    python benchmarks/own_products.py --sizes 512 4097 --dtypes Float

The error is the largest one in three rows of the result, in units of the sum of the magnitudes of
its terms, beside NumPy's product in float64. A kernel that a GPU does not have is shown with its
reason. The command ends with 1 when a result is wrong.
"""

import argparse
import sys

import numpy as np

import cuop

SIMPLE, TILED, UNITS = ({"kernel_type": kind} for kind in ("simple", "tiled", "tensor_core"))
CONFIGS = [
    {},
    {**SIMPLE, "tile_size": 16},
    {**TILED, "tile_size": 32, "block_size": 256},
    {**TILED, "tile_size": 64},
    {**TILED, "tile_size": 128},
    {**TILED, "tile_size": 128, "enable_tma": True},
    {**UNITS, "tile_size": 64},
    {**UNITS, "tile_size": 64, "enable_tma": True},
    {**UNITS, "tile_size": 128},
    {**UNITS, "tile_size": 128, "num_stages": 4},
    {**UNITS, "tile_size": 128, "enable_tma": True},
]
WRONG = {"Float": 1e-5, "Double": 1e-14}


def milliseconds(op, *tensors):
    """The kernel's own time: the median of several runs, fewer of long ones."""
    first = cuop.benchmark(op, *tensors, num_runs=2, warmup_runs=2)["gpu_time_ms"]
    runs = int(min(30, max(3, 60 / first)))
    return cuop.benchmark(op, *tensors, num_runs=runs, warmup_runs=1)["gpu_time_ms"]


def worst(c, a, b, rows):
    """The largest error in the rows, of the sum of the terms' magnitudes."""
    wide = a[rows].astype(np.float64)
    wanted = wide @ b.astype(np.float64)
    size = np.abs(wide) @ np.abs(b).astype(np.float64)
    return float(np.max(np.abs(c.to_numpy()[rows] - wanted) / size))


def compare(kind, n):
    """Prints a line for each configuration; whether all results are right."""
    dtype = "float32" if kind == "Float" else "float64"
    numbers = np.random.default_rng(n)
    a, b = (numbers.standard_normal((n, n)).astype(dtype) for _ in range(2))
    on_gpu = [cuop.tensor(x, device="cuda") for x in (a, b)]
    rows = [0, n // 2, n - 1]
    library, is_right = None, True
    for fields in CONFIGS:
        c = cuop.zeros((n, n), dtype, device="cuda")
        op = getattr(cuop, "JITMatMul" + kind)()
        try:
            config = cuop.JITConfig(**fields)
            if not fields:
                config.optimization_level = "fast"  # cuBLASLt's first choice
            op.set_jit_config(config)
        except cuop.CompilationError as error:
            print(f"{dtype} {n:5} {fields}: {error}")
            continue
        time = milliseconds(op, *on_gpu, c)
        profile = op.get_performance_profile()
        rate = 2e-9 * n**3 / time
        library = library or rate
        error = worst(c, a, b, rows)
        is_right = is_right and error < WRONG[kind]
        print(
            f"{dtype} {n:5} {profile.kernel_type:28} {profile.precision:8} {rate:8.2f} TFLOP/s  "
            f"{rate / library:5.2f} of cuBLASLt  error {error:.1e}",
            flush=True,
        )
    op = getattr(cuop, "JITMatMul" + kind)()
    op.set_jit_config(cuop.JITConfig(optimization_level="best"))
    op.forward(*on_gpu, cuop.zeros((n, n), dtype, device="cuda"))
    report = op.get_tuning_report()
    print(f"{dtype} {n:5} auto: {report.kernel}, {report.gain:.0%} less time\n{report.text}")
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1000, 2048, 4096, 4097, 8192])
    parser.add_argument(
        "--dtypes", nargs="+", choices=["Float", "Double"], default=["Float", "Double"]
    )
    options = parser.parse_args()
    results = [compare(kind, n) for kind in options.dtypes for n in options.sizes]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
