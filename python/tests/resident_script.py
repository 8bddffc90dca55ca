"""What is in memory while AutoExecutor works on files ten times as large as its limit: a line a method.

Pages of mapped files are the system's to keep or to drop; counted is what is the process's own.
"""

import json
import os
import sys
import threading
import time

import numpy as np

import cuop
from distributed_gpu.auto_executor import AutoExecutor

MIB = 1 << 20
LIMIT = 12 * MIB
WIDE, TALL = (512, 5600), (5600, 512)
GRID, IMAGES, VOLUMES = (5600, 5600), (16, 8, 352, 360), (4, 4, 60, 200, 168)
#: Shapes and options of every method, and how many arrays as large as the result take turns.
CALLS = {
    "matmul": ([TALL, WIDE], {}, 1),
    "pipelined_matmul": ([TALL, WIDE], {}, 1),
    "matmul_mixed_precision": ([TALL, WIDE], {}, 1),
    "matmul_sparse_aware": ([TALL, WIDE], {}, 1),
    "batch_matmul": ([(60, 600, 100), (60, 100, 620)], {}, 1),
    "tensordot": ([TALL, WIDE], {"dims": 1}, 1),
    "einsum": (["ij,jk->ki", TALL, WIDE], {}, 1),
    "einsum_with_path": (["ij,jk->ik", TALL, WIDE], {"path": [(0, 1)]}, 1),
    "add": ([GRID, GRID[:1]], {}, 1),
    "transpose": ([GRID], {}, 1),
    "sum": ([GRID], {}, 1),
    "mean": ([GRID], {"dim": 1}, 1),
    "max": ([GRID], {"dim": 0}, 1),
    "min": ([GRID], {}, 1),
    "sum_kahan": ([GRID], {}, 1),
    "mean_kahan": ([GRID], {"dim": 0}, 1),
    "fft": ([(4000, 4096)], {}, 1),
    "ifft": ([(15_000_000,)], {}, 2),
    "rfft": ([(30_000_000,)], {}, 2),
    "irfft": ([(15_000_000,)], {"n": 29_997_000}, 2),
    "fft2d": ([(160, 300, 340)], {}, 1),
    "fft2d_pencil": ([(4000, 4096)], {}, 1),
    "conv2d": ([IMAGES, (8, 8, 3, 3), (8,)], {"padding": 1}, 1),
    "conv3d": ([VOLUMES, (4, 4, 3, 3, 3)], {"padding": 1}, 1),
    "stencil_2d": ([GRID], {"iterations": 5}, 2),
    "jacobi_2d": ([GRID, GRID], {"iterations": 5, "tol": 0.0}, 2),
}


def own_bytes():
    """Of this process's memory what belongs to no file."""
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


class Peak(threading.Thread):
    """The most that was there at a time while it ran."""

    def __enter__(self):
        self.before = self.most = own_bytes()
        self.is_over = False
        self.start()
        return self

    def run(self):
        while not self.is_over:
            self.most = max(self.most, own_bytes())
            time.sleep(0.001)

    def __exit__(self, *_):
        self.is_over = True
        self.join()


def file_of(folder, shape):
    """A .npy file of float32; files of equal shape are one."""
    path = os.path.join(folder, "x".join(map(str, shape)) + ".npy")
    if not os.path.exists(path):
        values = np.lib.format.open_memmap(path, "w+", "f4", shape)
        for part in np.array_split(values.reshape(-1), 64):
            part[:] = np.random.default_rng(1).standard_normal(part.size, "f4")
    return path


def measured(auto, op, folder):
    """Bytes of one call."""
    shapes, options, arrays = CALLS[op]
    inputs = [each if isinstance(each, str) else file_of(folder, each) for each in shapes]
    data = sum(os.path.getsize(path) for path in inputs if os.path.exists(path))
    getattr(auto, op)(*inputs, **options)  # libraries and threads make themselves at home
    cuop.release_cached("cpu")
    with Peak(daemon=True) as peak:
        result = np.asarray(getattr(auto, op)(*inputs, **options))
    report = auto.last_report
    return {
        "op": op,
        "data": data + result.nbytes,
        "own": peak.most - peak.before,
        "arrays": arrays * result.nbytes,
        "counted": report.peak,
        "promised": report.plan.memory,
    }


def main(folder):
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=LIMIT / 2**30)
    for op in CALLS:
        print(json.dumps(measured(auto, op, folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
