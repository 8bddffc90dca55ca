"""A step of the demo: what it gives to the report, and how it is timed and checked."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Picture:
    """A grey picture of the report; `limits` are the values shown black and white."""

    caption: str
    pixels: np.ndarray
    limits: tuple[float, float] | None = None


@dataclass
class Result:
    """What one step did, as rank 0 saw it."""

    title: str
    what: str
    seconds: float
    strategy: str
    bytes_moved: int
    error: float
    tolerance: float
    oracle: str
    pictures: list[Picture] = field(default_factory=list)
    note: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the error (NaN fails) is within the tolerance."""
        return bool(self.error <= self.tolerance)


class Context:
    """What a step works with: the ranks, and distributed calls whose time, bytes and strategies are
    counted. Arrays are given on rank 0 and None elsewhere; the ranks work on "cpu" or "cuda"."""

    def __init__(self, comm, device):
        from cuop import dist

        self.comm = comm
        self.device = device
        self.is_root = comm.rank == 0
        self._rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self.seconds = 0.0
        self.strategies: list[str] = []
        self._sent_before = self.comm.bytes_sent

    def scatter(self, array: np.ndarray | None):
        """Rank 0's array as a DistTensor in blocks of rows, which go where rank 0 has the array."""
        import cuop
        from cuop import dist

        def work():
            whole = None if array is None else cuop.asarray(array, device=self.device)
            return dist.DistTensor.from_root(self.comm, whole).redistribute(self._rows)

        return self._timed(work)

    def call(self, function: Callable, *tensors, **options):
        """function(*tensors, **options) on DistTensors."""
        from cuop import dist

        value = self._timed(lambda: function(*tensors, **options))
        strategy = dist.last_report().plan.strategy
        if strategy not in self.strategies:
            self.strategies.append(strategy)
        return value

    def gather(self, tensor) -> np.ndarray | None:
        """The whole of a DistTensor on rank 0."""
        whole = self._timed(tensor.gather)
        return whole.to_numpy() if self.is_root else None

    def result(self, title: str, **rest) -> Result:
        """The step's result with what was counted since `reset` on this rank."""
        return Result(
            title=title,
            seconds=self.seconds,
            strategy=", ".join(self.strategies),
            bytes_moved=0,
            **rest,
        )

    def total_bytes(self) -> int | None:
        """Bytes that all ranks have sent since `reset`, on rank 0. Collective."""
        sent = self.comm.gather(self.comm.bytes_sent - self._sent_before)
        return sum(sent) if self.is_root else None

    def _timed(self, work: Callable):
        start = time.perf_counter()
        value = work()
        self.seconds += time.perf_counter() - start
        return value


def relative_error(ours: np.ndarray, oracle: np.ndarray) -> float:
    """The largest difference over the oracle's largest magnitude."""
    scale = float(np.abs(oracle).max()) or 1.0
    return float(np.abs(np.asarray(ours) - oracle).max()) / scale
