"""The steps of tools/chaos_program.py on simulated GPUs, and the faults of those.

A fault is ordered from the simulated driver (CONTRIBUTING.md) for the victim's GPU and comes some
operations later, in whatever call the rank is in by then.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np

import cuop
from cuop import dist

# In the words of the simulated driver, but for the number of the operation.
FAULTS = {
    "memory": "alloc:{}+:2",  # out of memory until it is withdrawn
    "refused": "any:{}+:1",  # calls of the driver, until it is withdrawn: one may be a mere finding
    "lost": "any:{}:700",  # the GPU, by an illegal address
    "kill": "any:{}:kill",
    "stop": "any:{}:stop",
}
KINDS = ["matmul", "transform", "sweep", "sum", "move", "reduce"]


def order(text: str) -> None:
    """Orders faults of this process's driver; none withdraws all."""
    if ctypes.CDLL("libcuda.so.1").simOrderFaults(text.encode()) != 0:
        raise ValueError(f"the simulated driver knows no fault {text}")


def order_fault(fault: str, rng: random.Random) -> None:
    """Lets the fault come in this rank's next work but a few."""
    device = str(cuop.current_device()).partition(":")[2]
    later = rng.choice([1, 2, 5, 20, 60])
    if fault == "memory":  # the pool serves most of what is asked for
        cuop.empty_cache()
        later = rng.choice([1, 2, 3])
    order(FAULTS[fault].format(later) + f":{device}")


def withdraw_faults() -> None:
    order("")


def split(comm: Any, array: np.ndarray, *axes: str | None) -> dist.DistTensor:
    """The part of the array that is this rank's, on its GPU; nothing is sent."""
    sharding = dist.Sharding(dist.Mesh.line(comm.size), dist.P(*axes))
    box = sharding.owner_box(array.shape, comm.rank)
    mine = array[tuple(slice(low, high) for low, high in box)]
    local = cuop.tensor(np.ascontiguousarray(mine), device=cuop.current_device())
    return dist.DistTensor(comm, sharding, array.shape, "float64", local)


def check(result: Any, expected: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(result.to_numpy()), expected, rtol=1e-12, atol=1e-9)


def step(comm: Any, kind: str, seed: int) -> None:
    """A call that all ranks of a part make, checked on each of them."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(8, 90, 2))
    a = rng.integers(-9, 9, (rows, columns)).astype(np.float64)
    x = split(comm, a, "r", None)
    if kind == "matmul":
        check((x @ split(comm, a.T.copy(), None, "r")).gather_all(), a @ a.T)
    elif kind == "transform":
        spectrum = np.abs(np.fft.fft2(a)) ** 2
        power = (abs(x.fft2d()) ** 2).sum(axis=0).gather_all()
        np.testing.assert_allclose(power.to_numpy(), spectrum.sum(0), rtol=1e-9)
    elif kind == "sweep":
        kernel = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])
        swept = dist.stencil_2d(x, split(comm, kernel, None, None), boundary="periodic")
        rolled = sum(np.roll(a, by, axis) for by in (1, -1) for axis in (0, 1))
        check(swept.gather_all(), rolled - 4 * a)
    elif kind == "sum":
        check(x.sum(axis=0).gather_all(), a.sum(0))
    elif kind == "move":
        line = dist.Mesh.line(comm.size)
        turned = x.redistribute(dist.Sharding(line, dist.P(None, "r")))
        check(turned.T.gather_all(), a.T)
    else:
        check(dist.all_reduce(comm, cuop.tensor(a, device=cuop.current_device())), comm.size * a)
