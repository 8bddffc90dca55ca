"""Shows on a GPU what the cache of compiled kernels promises, with real processes and kernels.

    python tools/check_jit.py [--processes 64] [--kernels 32] [--kills 40]

Many processes that need the same kernels compile each of them once; processes that are killed leave
nothing that is believed; damaged files and files that others could have written are compiled anew.
Fails on a broken promise. The times at the end are for people to judge.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_PROGRAM = """
import json, random, sys, time
import numpy as np
import cuop
from cuop import _core
numbers = list(range(int(sys.argv[1])))
random.shuffle(numbers)
def relu(a): return np.maximum(a, np.float32(0))
steps = [(cuop.abs, np.abs), (cuop.relu, relu), (cuop.square, np.square), (cuop.floor, np.floor),
         (cuop.negative, np.negative)]
joins = [(cuop.multiply, np.multiply), (cuop.subtract, np.subtract), (cuop.add, np.add),
         (cuop.maximum, np.maximum), (cuop.minimum, np.minimum)]
def chain(number, side):
    first, join, last = steps[number % 5], joins[number // 5 % 5], steps[number // 25 % 5]
    return lambda x, y: last[side](join[side](first[side](x), y))
host = [np.random.default_rng(i).standard_normal((64, 1024), "float32") for i in range(2)]
x, y = (cuop.asarray(a).to("cuda") for a in host)
seconds = []
for number in numbers:
    begin = time.perf_counter()
    result = cuop.fuse(chain(number, 0))(x, y)
    cuop.synchronize("cuda")
    seconds.append(time.perf_counter() - begin)
    if not np.array_equal(result.numpy(), chain(number, 1)(*host)):
        sys.exit(f"kernel {number} answers wrongly")
info = _core.kernel_cache_info()
print(json.dumps({"seconds": seconds, **info}))
"""


class Cache:
    """A cache folder, and processes that use it."""

    def __init__(self, folder: Path, kernels: int) -> None:
        self._folder, self._kernels = folder, kernels

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._kernels)],
            env={**os.environ, "CUOP_CACHE_DIR": str(self._folder)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, processes: int = 1) -> list[dict]:
        """What each of so many processes says at its end; they run at the same time."""
        running = [self.start() for _ in range(processes)]
        said = [process.communicate()[0] for process in running]
        if any(process.returncode != 0 for process in running):
            check(False, "every process gets its kernels")
        return [json.loads(text) for text in said]

    def files(self) -> list[Path]:
        return sorted((self._folder / "kernels").glob("*.kernel"))


def check(holds: bool, promise: str) -> None:
    print("ok     " if holds else "BROKEN ", promise, flush=True)
    if not holds:
        sys.exit(1)


def check_single_flight(folder: Path, processes: int, kernels: int) -> None:
    cache = Cache(folder, kernels)
    compilations = sum(row["compilations"] for row in cache.run(processes))
    check(
        compilations == kernels,
        f"{processes} processes that need {kernels} kernels compile {compilations}",
    )


def check_kills(folder: Path, kills: int, kernels: int) -> None:
    cache = Cache(folder, kernels)
    for _ in range(kills):
        for path in cache.files()[::2]:
            path.unlink()
        known = len(cache.files())
        process = cache.start()
        while process.poll() is None and len(cache.files()) == known:
            time.sleep(0.001)
        time.sleep(random.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    left = len(cache.files())
    row = cache.run()[0]
    check(
        row["damaged_entries"] == 0 and row["disk_hits"] == left,
        f"all {left} files that {kills} killed processes left are whole",
    )


def check_damage(folder: Path, kernels: int) -> None:
    cache = Cache(folder, kernels)
    cache.run()
    files = cache.files()
    content = files[0].read_bytes()
    middle = len(content) // 2
    files[0].write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    os.truncate(files[1], files[1].stat().st_size - 1)
    files[2].chmod(0o666)
    spoilt = ["one wrong bit", "cut short", "writable by others"]
    if os.geteuid() == 0:
        os.chown(files[3], 65534, 65534)
        spoilt.append("another's")
    row = cache.run()[0]
    check(
        row["compilations"] == len(spoilt) <= row["damaged_entries"],
        f"compiled anew, not run: what is {', '.join(spoilt)}",
    )
    (folder / "kernels").chmod(0o777)
    check(
        cache.run()[0]["disk_hits"] == 0, "nothing is read from a folder that others can write to"
    )


def show_times(folder: Path, kernels: int) -> None:
    cache = Cache(folder, kernels)
    for what in ("compiled", "from disk"):
        row = cache.run()[0]
        middle = statistics.median(row["seconds"][1:]) * 1e3
        compiler = row["compile_ms"] / max(1, row["compilations"])
        print(f"a new fused kernel, {what}: {middle:.2f} ms, of which the compiler {compiler:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--kernels", type=int, default=32, help="4 to 125")
    parser.add_argument("--kills", type=int, default=40)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        check_single_flight(root / "shared", asked.processes, asked.kernels)
        check_kills(root / "killed", asked.kills, asked.kernels)
        check_damage(root / "damaged", asked.kernels)
        show_times(root / "timed", asked.kernels)


if __name__ == "__main__":
    main()
