"""Timing on a GPU in the three ways that users meet: a launch, a call, a call that is waited for.

G is the GPU's time of one call inside a CUDA graph of many, E the wall time of a call among many with
one wait at the end, S that of one call and its wait.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from cuop.bench.measure import Roofs, Row

Call = Callable[[int], Any]  # takes the number of a buffer set

_ROUNDS = 7
_BATCH_SECONDS = 0.02  # of one timed batch
_GRAPH_SECONDS = 0.002  # of one replay
_MIN_GRAPH_CALLS, _MAX_GRAPH_CALLS = 4, 60


@dataclass
class GpuCase:
    """A line of the table for each peer and kind.

    Calls return device arrays of their library. `goals` maps a peer and a kind to the ratio to reach;
    `sets` is how many buffer sets are gone through in turn, so that a small case does not live in the
    L2 cache; `nbytes` and `flops` are what one call must move and compute at least; `exact` returns
    the result for set 0 in double precision as a torch tensor.
    """

    name: str
    precision: str
    ours: Call
    peers: dict[str, Call]
    goals: dict[tuple[str, str], float]
    sets: int = 1
    nbytes: int = 0
    flops: float = 0.0
    exact: Callable[[], Any] | None = None


class Cuop:
    """How cuOP waits and records."""

    def __init__(self) -> None:
        import cuop

        self._cuop = cuop

    def synchronize(self) -> None:
        self._cuop.synchronize("cuda")

    def graph(self, run: Callable[[], None]) -> Callable[[], None]:
        graph = self._cuop.Graph("cuda")
        with graph:
            run()
        return graph.replay


class Torch:
    """How PyTorch waits and records."""

    def __init__(self) -> None:
        import torch

        self._torch = torch

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def graph(self, run: Callable[[], None]) -> Callable[[], None]:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            run()
        return graph.replay


class CuPy:
    """How CuPy waits; its allocator takes no part in captures, so it has no graph."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy

    def synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()


LIBRARIES: dict[str, Callable[[], Any]] = {"cuop": Cuop, "torch": Torch, "cupy": CuPy}


class Contender:
    """One library's call with the timer of each kind, calibrated when it is first used."""

    def __init__(self, library: Any, call: Call, sets: int) -> None:
        self._library, self._call, self._sets = library, call, sets
        self._replay: Callable[[], None] | None = None
        self._calls: dict[str, int] = {}
        for _ in range(2):
            for i in range(sets):
                call(i)
        library.synchronize()
        self._once = min(self._waited() for _ in range(5))

    def sample(self, kind: str) -> float:
        """Seconds a call."""
        if kind == "S":
            return median(self._waited() for _ in range(self._count("S", self._once)))
        if kind == "E":
            return self._back_to_back(self._count("E", self._once))
        calls = min(
            max(int(_GRAPH_SECONDS / self._once), _MIN_GRAPH_CALLS, self._sets), _MAX_GRAPH_CALLS
        )
        if self._replay is None:
            self._replay = self._library.graph(lambda: self._run(calls))
            self._replays(1)
        return self._replays(self._count("G", self._once * calls)) / calls

    def _run(self, calls: int) -> None:
        for i in range(calls):
            self._call(i % self._sets)

    def _count(self, kind: str, seconds: float) -> int:
        return self._calls.setdefault(kind, max(3, int(_BATCH_SECONDS / seconds)))

    def _waited(self) -> float:
        start = time.perf_counter()
        self._call(0)
        self._library.synchronize()
        return time.perf_counter() - start

    def _back_to_back(self, calls: int) -> float:
        start = time.perf_counter()
        self._run(calls)
        self._library.synchronize()
        return (time.perf_counter() - start) / calls

    def _replays(self, count: int) -> float:
        replay = self._replay
        assert replay is not None
        start = time.perf_counter()
        for _ in range(count):
            replay()
        self._library.synchronize()
        return (time.perf_counter() - start) / count


def measure(case: GpuCase, libraries: dict[str, Any], roofs: Roofs) -> list[Row]:
    """One row for each goal, kind by kind from the same interleaved rounds."""
    calls = {"cuop": case.ours, **case.peers}
    contenders = {name: Contender(libraries[name], call, case.sets) for name, call in calls.items()}
    error = _error(case)
    rows = []
    for kind in dict.fromkeys(kind for _, kind in case.goals):
        names = ["cuop", *(peer for peer, other in case.goals if other == kind)]
        samples: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(_ROUNDS):
            for k in range(len(names)):
                name = names[(turn + k) % len(names)]
                samples[name].append(contenders[name].sample(kind))
        for peer in names[1:]:
            rows.append(
                Row(
                    case.name, case.precision, median(samples["cuop"]), peer,
                    median(samples[peer]), case.goals[peer, kind], _floor(case, roofs, kind), error,
                    {name: samples[name] for name in ("cuop", peer)}, kind=kind,
                )
            )  # fmt: skip
    return rows


def _floor(case: GpuCase, roofs: Roofs, kind: str) -> float:
    """What the memory and the arithmetic allow; calls have other floors."""
    if kind != "G":
        return 0.0
    return max(case.nbytes / roofs.bandwidth, case.flops / roofs.flops)


def _error(case: GpuCase) -> float:
    if case.exact is None:
        return float("nan")
    import torch

    exact = case.exact()
    ours = torch.from_dlpack(case.ours(0)).to(exact.dtype)
    scale = float(exact.abs().max()) or 1.0
    return float((ours - exact).abs().max()) / scale
