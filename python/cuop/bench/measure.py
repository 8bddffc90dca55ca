"""Interleaved timing: every contender runs in turn, so that a slow moment of the machine hits all."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np

_LEAST_SECONDS = 0.02  # of one timed batch of calls
_ROUNDS = 7
# Untimed calls before each timed batch: threads of the contender before spin on for a while, and
# those of this one must wake up.
_SETTLE_SECONDS = 0.08
_RESAMPLES = 2000
_EVEN = 0.015  # a gap that is none: the goals say 1.0x, in one decimal
_NOISE = 0.03  # the widest gap that noise may excuse


@dataclass
class Case:
    """One line of the table.

    `ours` and each of `peers` take the index of a buffer set and return an array-like; `sets` is how
    many sets they rotate through, so that nothing stays in cache that would not in real use.
    `nbytes` and `flops` are what one call must move and compute at least; `exact` returns the
    result for set 0 in double precision; `goals` maps a peer to the speed ratio to reach, 0 where none
    is set.
    """

    name: str
    precision: str
    ours: Callable[[int], object]
    peers: dict[str, Callable[[int], object]]
    goals: dict[str, float]
    sets: int = 1
    nbytes: int = 0
    flops: float = 0.0
    exact: Callable[[], np.ndarray] | None = None


@dataclass
class Row:
    """What was measured: seconds a call, and ratios (peer's time over ours)."""

    name: str
    precision: str
    seconds: float
    peer: str
    peer_seconds: float
    goal: float
    floor_seconds: float
    error: float
    samples: dict[str, list[float]] = field(default_factory=dict)
    kind: str = "S"  # one call from Python until its result is there

    @property
    def ratio(self) -> float:
        """The peer's time over ours: above 1 we are faster."""
        return self.peer_seconds / self.seconds

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """The 95 % interval of the ratio: percentile bootstrap of the two medians.

        The ratio itself, twice, where there are no samples of both.
        """
        own, other = self.samples.get("cuop"), self.samples.get(self.peer)
        if not own or not other:
            return self.ratio, self.ratio
        generator = np.random.default_rng(0)
        medians = [
            np.median(generator.choice(times, (_RESAMPLES, len(times))), axis=1)
            for times in (own, other)
        ]
        low, high = np.percentile(medians[1] / medians[0], [2.5, 97.5])
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """'reached'; 'even', when the ratio is at most 1.5 % below the goal, or at most 3 % and the
        goal within its 95 % interval, so that these samples cannot tell the two apart; or
        'MISSED'. Without a goal 'faster' or 'slower'."""
        if not self.goal:
            return "faster" if self.ratio >= 1 else "slower"
        if self.ratio >= self.goal:
            return "reached"
        gap = 1 - self.ratio / self.goal
        is_even = gap <= _EVEN or (gap <= _NOISE and self.ratio_interval[1] >= self.goal)
        return "even" if is_even else "MISSED"

    @property
    def is_reached(self) -> bool:
        """Whether the goal is not missed."""
        return self.verdict != "MISSED"


@dataclass(frozen=True)
class Roofs:
    """What this machine can do at most: bytes and float32 operations a second."""

    bandwidth: float
    flops: float

    def floor(self, case: Case) -> float:
        """The least seconds that the machine allows for the case."""
        return max(case.nbytes / self.bandwidth, case.flops / self.flops)


def measure(case: Case, roofs: Roofs) -> list[Row]:
    """One row for each peer of the case, all from the same interleaved rounds."""
    contenders = {"cuop": case.ours, **case.peers}
    calls = {name: _calibrate(function, case.sets) for name, function in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for turn in range(_ROUNDS):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            _settle(contenders[name], case.sets)
            samples[name].append(_time(contenders[name], calls[name], case.sets))
    error = _error(case)
    ours = median(samples["cuop"])
    floor = roofs.floor(case)
    return [
        Row(
            case.name,
            case.precision,
            ours,
            peer,
            median(samples[peer]),
            goal,
            floor,
            error,
            samples,
        )
        for peer, goal in case.goals.items()
    ]


def measure_roofs() -> Roofs:
    """The bandwidth of a large copy and the rate of a float32 product, best of several."""
    import cuop

    source = cuop.ones(1 << 25)
    target = cuop.empty(1 << 25)
    copy = min(_time(lambda i: target.copy_from(source), 1, 1) for _ in range(7))
    a = cuop.random((2048, 2048))
    product = min(_time(lambda i: cuop.matmul(a, a), 1, 1) for _ in range(7))
    return Roofs(2 * source.nbytes / copy, 2 * 2048.0**3 / product)


def _calibrate(function: Callable[[int], object], sets: int) -> int:
    """Calls a timed batch needs; warms caches and plans as well."""
    for i in range(sets):
        function(i)
    return max(1, int(_LEAST_SECONDS / max(_time(function, 1, sets), 1e-9)))


def _settle(function: Callable[[int], object], sets: int) -> None:
    end = time.perf_counter() + _SETTLE_SECONDS
    while time.perf_counter() < end:
        for i in range(sets):
            function(i)


def _time(function: Callable[[int], object], calls: int, sets: int) -> float:
    start = time.perf_counter()
    for i in range(calls):
        function(i % sets)
    return (time.perf_counter() - start) / calls


def _error(case: Case) -> float:
    if case.exact is None:
        return float("nan")
    exact = case.exact()
    scale = float(np.abs(exact).max()) or 1.0
    return float(np.abs(np.asarray(case.ours(0)) - exact).max()) / scale
