"""What products over ranks cost, predicted by cuop.dist's planner from figures of a cluster."""

import copy
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import cuop
from cuop import dist
from cuop._arguments import MOST_RANKS, integer, number, refused, size_arguments, switch
from cuop.dist import compute_2d_grid
from cuop.errors import ExecutionError

__all__ = [
    "ClusterConfig",
    "CostEstimate",
    "CostModel",
    "SplitPlan",
    "SplitStrategy",
    "compute_2d_grid",
]

_GIB = 2**30
#: Of a figure: with less or more, times and bytes are no longer numbers.
_LEAST, _MOST = 1e-12, 1e9
_DTYPES = {2: "float16", 4: "float32", 8: "float64", 16: "complex128"}


class SplitStrategy(enum.Enum):
    """How a matrix product is split over the ranks."""

    ROW_SPLIT = "row"
    COLUMN_SPLIT = "column"
    BLOCK_2D = "block_2d"
    BATCH_SPLIT = "batch"


def strategy_name(strategy):
    """The planner's name of a strategy given as None, a string, a SplitStrategy or a plan."""
    if strategy is None:
        return ""
    strategy = getattr(strategy, "strategy", strategy)
    name = strategy.value if isinstance(strategy, SplitStrategy) else str(strategy)
    return "row" if name == "batch" else name  # the rows of A are the batch of a plain product


def _figures(value, name, count):
    """A positive number for each node."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    values = list(value) if is_list else [value] * count
    if len(values) != count:
        raise ExecutionError(
            f"ClusterConfig: {name} has {len(values)} values, needed is one number or {count}"
        )
    return [_positive(each, name) for each in values]


def _positive(value, name):
    figure = number(value, "ClusterConfig", name)
    if not _LEAST <= figure <= _MOST:
        raise ExecutionError(
            f"ClusterConfig: {name} is {figure:g}; it must be from {_LEAST:g} to {_MOST:g}"
        )
    return figure


@dataclass(frozen=True)
class ClusterConfig:
    """The figures of a cluster whose nodes have a device each, from 1e-12 to 1e9.

    Attributes:
        num_nodes: devices, each of them a rank; 1 to 32768.
        gpu_memory_gb: memory of a device in GiB; one number or one for each node.
        gpu_tflops: 10^12 float32 operations a second of a matrix product; the same.
        intra_node_bandwidth: 10^9 bytes a second that a device sends to another one of its host.
        inter_node_bandwidth: the same between hosts; None takes that within a host.
        network_latency_ms: milliseconds before a message's first byte arrives.
        nodes_per_host: devices that share a host; None when all do. The slowest link that a
            product has to use is the one that counts.
        memory_bandwidth: 10^9 bytes a second between a device and its own memory.
    """

    num_nodes: int
    gpu_memory_gb: float | Sequence[float] = 16.0
    gpu_tflops: float | Sequence[float] = 15.0
    intra_node_bandwidth: float = 50.0
    inter_node_bandwidth: float | None = None
    network_latency_ms: float = 0.01
    nodes_per_host: int | None = None
    memory_bandwidth: float = 900.0
    machine: dist.Machine | None = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        nodes = integer(self.num_nodes, "ClusterConfig", "num_nodes", least=1, most=MOST_RANKS)
        memory = _figures(self.gpu_memory_gb, "gpu_memory_gb", nodes)
        tflops = _figures(self.gpu_tflops, "gpu_tflops", nodes)
        for name in ("intra_node_bandwidth", "network_latency_ms", "memory_bandwidth"):
            object.__setattr__(self, name, _positive(getattr(self, name), name))
        between = self.inter_node_bandwidth
        between = self.intra_node_bandwidth if between is None else between
        object.__setattr__(self, "inter_node_bandwidth", _positive(between, "inter_node_bandwidth"))
        if self.nodes_per_host is not None:
            integer(self.nodes_per_host, "ClusterConfig", "nodes_per_host", least=1)
        object.__setattr__(self, "_memory", memory)
        object.__setattr__(self, "_tflops", tflops)

    @classmethod
    def from_auto_detect(cls, num_nodes=None, mpi=None):
        """The figures of this machine for `num_nodes` ranks like this one (default: of `mpi`, or 1).

        Memory is that of the current device; speed and links are assumed from what the device says
        of itself. With an MPIManager the ranks measure them together (some tenths of a second, kept
        for the next time): then it is a collective call.
        """
        if num_nodes is None:
            num_nodes = 1 if mpi is None else mpi.get_size()
        machine = dist.Machine.of_device() if mpi is None else dist.calibrate(mpi.comm)
        _, total = cuop.get_memory_info()
        return cls(
            num_nodes=num_nodes,
            gpu_memory_gb=total / _GIB,
            gpu_tflops=machine.flops / 1e12,
            intra_node_bandwidth=machine.link_bandwidth / 1e9,
            network_latency_ms=machine.latency * 1e3,
            memory_bandwidth=machine.memory_bandwidth / 1e9,
            machine=machine,
        )

    @property
    def total_memory_gb(self):
        """GiB of all devices."""
        return sum(self._memory)

    @property
    def total_tflops(self):
        """10^12 operations a second of all devices."""
        return sum(self._tflops)

    @property
    def min_memory_gb(self):
        """GiB of the smallest device, which bounds an even split."""
        return min(self._memory)

    def planned_machine(self, memory_limit=True):
        """cuop.dist's figures of one rank: those of the slowest device and link."""
        machine = copy.copy(self.machine or dist.Machine())
        machine.ranks_per_host, machine.memory = 0, dist.Machine().memory
        machine.flops = min(self._tflops) * 1e12
        machine.memory_bandwidth = self.memory_bandwidth * 1e9
        crosses = self.nodes_per_host is not None and self.nodes_per_host < self.num_nodes
        link = (
            min(self.intra_node_bandwidth, self.inter_node_bandwidth)
            if crosses
            else self.intra_node_bandwidth
        )
        machine.link_bandwidth = link * 1e9
        machine.latency = self.network_latency_ms / 1e3
        if switch(memory_limit, "planned_machine", "memory_limit"):
            machine.memory = max(1, int(self.min_memory_gb * _GIB))  # 0 is no limit
        return machine


@dataclass(frozen=True)
class CostEstimate:
    """What a product costs with inputs and result on rank 0.

    Attributes:
        compute_time_ms: arithmetic of the busiest rank.
        comm_time_ms: moving blocks to the ranks and the result back.
        memory_gb: GiB of the rank that needs most.
        total_time_ms: predicted time of the call.
        efficiency: speedup divided by the ranks.
        speedup: time on one rank divided by the total time.
        feasible: whether every rank's part fits its memory.
        floor_ms: time below which nothing on these ranks can be.
        bytes_moved: bytes between ranks.
    """

    compute_time_ms: float
    comm_time_ms: float
    memory_gb: float
    total_time_ms: float
    efficiency: float
    speedup: float
    feasible: bool
    floor_ms: float = 0.0
    bytes_moved: int = 0


@dataclass(frozen=True)
class SplitPlan:
    """The strategy of the least predicted time.

    Attributes:
        strategy: a SplitStrategy.
        split_dim: the dimension of the result that is split; -1 when both are.
        chunk_sizes: rows (columns, of split_dim 1) of the result on each rank or grid row.
        cost: its CostEstimate.
        grid_rows, grid_cols: the ranks as a grid over the result.
    """

    strategy: SplitStrategy
    split_dim: int
    chunk_sizes: list
    cost: CostEstimate
    grid_rows: int
    grid_cols: int


class CostModel:
    """Predicts products A [M, K] @ B [K, N] from rank 0 to rank 0 on the ranks of a ClusterConfig.

    Predictions are cuop.dist's plans, and are kept until `clear_cache`.
    """

    def __init__(self, config):
        if not isinstance(config, ClusterConfig):
            raise refused(config, "CostModel", "config", "a ClusterConfig")
        self.config = config
        self._known = {}

    @cached_property
    def _root(self):
        return dist.Sharding.on_rank(dist.Mesh.line(self.config.num_nodes), 0)

    def _plan(self, M, K, N, strategy, dtype_bytes, who):
        """(plan, whether it fits the memory)."""
        sizes = size_arguments(who, M=M, K=K, N=N)
        if dtype_bytes not in _DTYPES:
            raise ExecutionError(
                f"{who}: dtype_bytes is {dtype_bytes!r}, possible are {sorted(_DTYPES)}"
            )
        name = strategy_name(strategy)
        key = (*sizes, name, dtype_bytes)
        if key not in self._known:
            self._known[key] = self._planned(*sizes, name, _DTYPES[dtype_bytes])
        return self._known[key]

    def _planned(self, M, K, N, name, dtype):
        def plan(is_limited):
            return dist.plan_matmul(
                M,
                N,
                K,
                self._root,
                self._root,
                self._root,
                dtype=dtype,
                machine=self.config.planned_machine(is_limited),
                strategy=name,
            )

        try:
            return plan(True), True
        except cuop.MemoryError:
            return plan(False), False

    def estimate_matmul_cost(self, M, K, N, strategy, dtype_bytes=4):
        """The CostEstimate of one strategy; BATCH_SPLIT takes the rows as the batch."""
        return self._estimate(M, K, N, strategy, dtype_bytes, "estimate_matmul_cost")

    def _estimate(self, M, K, N, strategy, dtype_bytes, who):
        plan, fits = self._plan(M, K, N, strategy, dtype_bytes, who)
        alone, _ = self._plan(M, K, N, "root", dtype_bytes, who)
        compute = sum(step.seconds for step in plan.steps if step.kind == "compute")
        speedup = alone.seconds / plan.seconds if plan.seconds > 0 else 1.0
        return CostEstimate(
            compute_time_ms=compute * 1e3,
            comm_time_ms=(plan.seconds - compute) * 1e3,
            memory_gb=plan.memory_per_rank / _GIB,
            total_time_ms=plan.seconds * 1e3,
            efficiency=speedup / self.config.num_nodes,
            speedup=speedup,
            feasible=fits,
            floor_ms=plan.floor * 1e3,
            bytes_moved=plan.bytes,
        )

    def find_optimal_strategy(self, M, K, N, dtype_bytes=4):
        """The SplitPlan of the least predicted time among row, column and 2-D splits.

        One that fits the memory goes before those that do not.
        """
        who = "find_optimal_strategy"
        splits = (SplitStrategy.ROW_SPLIT, SplitStrategy.COLUMN_SPLIT, SplitStrategy.BLOCK_2D)
        costs = {split: self._estimate(M, K, N, split, dtype_bytes, who) for split in splits}
        best = min(
            splits, key=lambda split: (not costs[split].feasible, costs[split].total_time_ms)
        )
        plan, _ = self._plan(M, K, N, best, dtype_bytes, who)
        rows, columns = plan.settings["pm"], plan.settings["pn"]
        split_dim = {SplitStrategy.ROW_SPLIT: 0, SplitStrategy.COLUMN_SPLIT: 1}.get(best, -1)
        length, parts = (N, columns) if split_dim == 1 else (M, rows)
        return SplitPlan(best, split_dim, _blocks(length, parts), costs[best], rows, columns)

    def estimate_memory_requirement(self, M, K, N, strategy=None, dtype_bytes=4):
        """GiB of the rank that needs most; of the best strategy when none is given."""
        if strategy is None:
            return self.find_optimal_strategy(M, K, N, dtype_bytes).cost.memory_gb
        return self._estimate(
            M, K, N, strategy, dtype_bytes, "estimate_memory_requirement"
        ).memory_gb

    def should_use_distributed(self, M, K, N, dtype_bytes=4):
        """Whether several ranks are faster than one, or the only way to find room."""
        best = self.find_optimal_strategy(M, K, N, dtype_bytes).cost
        _, fits_one = self._plan(M, K, N, "root", dtype_bytes, "should_use_distributed")
        return best.feasible and (not fits_one or best.speedup > 1.0)

    def print_analysis(self, M, K, N, dtype_bytes=4):
        """Prints every strategy with its times, bytes, memory and floor, and the recommended one."""
        best = self.find_optimal_strategy(M, K, N, dtype_bytes)
        config = self.config
        print(
            f"C[{M}, {N}] = A[{M}, {K}] @ B[{K}, {N}], {dtype_bytes} bytes an element, on "
            f"{config.num_nodes} ranks: {config.total_tflops:.3g} TFLOP/s, "
            f"{config.total_memory_gb:.3g} GiB in all"
        )
        print(
            f"  {'strategy':<10}{'compute ms':>12}{'comm ms':>12}{'total ms':>12}{'speedup':>9}"
            f"{'efficiency':>12}{'MB moved':>12}{'GiB a rank':>12}  fits"
        )
        for name in ("root", "row", "column", "block_2d"):
            cost = self._estimate(M, K, N, name, dtype_bytes, "print_analysis")
            mark = "*" if name == best.strategy.value else " "
            print(
                f"{mark} {name:<10}{cost.compute_time_ms:>12.4g}{cost.comm_time_ms:>12.4g}"
                f"{cost.total_time_ms:>12.4g}{cost.speedup:>9.3g}{cost.efficiency:>12.1%}"
                f"{cost.bytes_moved / 1e6:>12.4g}{cost.memory_gb:>12.4g}"
                f"  {'yes' if cost.feasible else 'no'}"
            )
        advice = "" if self.should_use_distributed(M, K, N, dtype_bytes) else ", one rank is faster"
        print(f"floor {best.cost.floor_ms:.4g} ms; recommended: {best.strategy.value}{advice}")

    def clear_cache(self):
        """Forgets all predictions."""
        self._known.clear()


def _blocks(length, parts):
    return [length // parts + (part < length % parts) for part in range(parts)]
