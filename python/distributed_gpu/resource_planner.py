"""How much memory there is, and how work on arrays of the host is cut so that it fits."""

import dataclasses
from collections.abc import Iterable

from cuop import executor
from cuop._arguments import number, refused, size_arguments
from cuop.errors import ExecutionError
from cuop.report.page import format_bytes
from distributed_gpu._call import check_manager, mpi_errors, told
from distributed_gpu._tiled import planned

__all__ = ["ExecutionPlan", "GPUStatus", "ResourcePlanner"]

_GIB = 2**30


@dataclasses.dataclass(frozen=True)
class GPUStatus:
    """The memory of one rank's device; a rank without a GPU has the host, whose gpu_id is -1."""

    gpu_id: int
    rank: int
    total_memory_gb: float
    free_memory_gb: float
    """Of the whole device, as the driver says: what other processes use is not in it."""
    usable_memory_gb: float
    """By this rank's work: less the safety margin, a share where ranks share the device, at most the
    planner's limit."""


@dataclasses.dataclass(frozen=True)
class ExecutionPlan:
    """How an operation runs in batches (tiles) that fit; GiB and milliseconds."""

    operation: str
    num_gpus_active: int
    num_batches: int
    """That a device makes one after the other, in all passes."""
    batch_sizes: list[int]
    """Of the dimension along which a device's share is cut, in order; of the first of several passes."""
    batch_dim: int
    """That dimension of the result; -1 for parts of a sum."""
    per_gpu_memory_gb: float
    total_data_memory_gb: float
    total_available_gb: float
    min_gpu_available_gb: float
    feasible: bool
    description: str
    predicted_time_ms: float = 0.0
    floor_ms: float = 0.0
    """No plan on these devices takes less: bytes over the links and arithmetic."""
    smallest_memory_gb: float = 0.0
    """Of a device: with less there is no plan."""
    num_passes: int = 1
    """Over the host's memory; 0 where a grid fits and the ranks sweep it as it is."""
    scratch_memory_gb: float = 0.0
    """Of the host, that passes keep beside the arrays and the result."""


class ResourcePlanner:
    """Scans the memory of the ranks' devices and plans within it.

    max_per_gpu_gb: GiB of each device at most, None for all that is free. All ranks make one; a wrong
    limit raises MPIError on all of them, at their next call where it is right. Collective calls, on
    every rank: scan_all_gpus, get_usable_memory, worker, plan_matmul, plan_operation, print_gpu_status.
    """

    #: The part of free memory that is left alone; settable, on the class or on a planner, on every rank.
    SAFETY_MARGIN = 0.2

    def __init__(self, mpi, max_per_gpu_gb=None):
        check_manager(mpi, "ResourcePlanner")
        self.mpi = mpi
        with told(mpi, "ResourcePlanner"):
            self.max_per_gpu_gb = None if max_per_gpu_gb is None else _limit(max_per_gpu_gb)
        self._statuses = None
        self._scanned_with = None
        """The limits of the last scan."""

    def limits(self):
        """The keyword arguments of cuop.executor's calls: memory_limit and safety_margin."""
        limit = self.max_per_gpu_gb
        return {
            "memory_limit": None if limit is None else max(1, int(_limit(limit) * _GIB)),
            "safety_margin": number(self.SAFETY_MARGIN, "ResourcePlanner", "SAFETY_MARGIN"),
        }

    def _told_limits(self, call):
        """Before a call of all ranks, which hear where they are wrong."""
        with told(self.mpi, call):
            return self.limits()

    def scan_all_gpus(self):
        """[GPUStatus] of every rank's device as it is now, in rank order, on every rank."""
        limits = self._told_limits("scan_all_gpus")
        with mpi_errors(self.mpi.comm):
            found = executor.scan_devices(self.mpi.comm, **limits)
        self._scanned_with = limits
        self._statuses = [
            GPUStatus(
                each.device.index if each.device.type == "cuda" else -1,
                each.rank,
                each.total / _GIB,
                each.free / _GIB,
                each.usable / _GIB,
            )
            for each in found
        ]
        return list(self._statuses)

    def get_usable_memory(self):
        """GiB of each rank's device that work may use, by rank: as scanned last with these limits."""
        return [status.usable_memory_gb for status in self._known()]

    def worker(self):
        """What has a share of the work, as a word: "GPU" where every rank has one, else "rank"."""
        return _worker_of(self._known())

    def _known(self):
        limits = self._told_limits("get_usable_memory")
        is_known = self._statuses is not None and self._scanned_with == limits
        return self._statuses if is_known else self.scan_all_gpus()

    def invalidate_mem_cache(self):
        """Forgets the last scan: the next get_usable_memory scans again."""
        self._statuses = None

    def plan_matmul(self, M, K, N, dtype="float32"):
        """The plan for [M, K] @ [K, N]."""
        with told(self.mpi, "plan_matmul"):
            M, K, N = size_arguments("plan_matmul", M=M, K=K, N=N)
        return self.plan_operation("matmul", ((M, K), (K, N)), dtype)

    def plan_operation(self, op, shapes, dtype="float32", **options):
        """The plan for an operation of AutoExecutor by name, the shapes of its arrays and its options.

        feasible is False where the smallest tiles do not fit; smallest_memory_gb says what would do.
        """
        with told(self.mpi, "plan_operation"):
            if isinstance(shapes, str) or not isinstance(shapes, Iterable):
                raise refused(shapes, "plan_operation", "shapes", "a sequence of shapes")
            call = planned(op, shapes, **options)
        return self.plan(op, call, dtype)

    def plan(self, op, call, dtype):
        """The ExecutionPlan of a planner and its shapes (_tiled.planned)."""
        planner, shapes = call
        limits = self._told_limits("plan_operation")
        with mpi_errors(self.mpi.comm):
            machine = executor.RankDevices.of(self.mpi.comm, **limits)
            made = planner(shapes, dtype, machine)
        return self._described(op, made, shapes[0] if shapes else (), dtype)

    def _described(self, op, call, shape, dtype):
        """A CallPlan as an ExecutionPlan."""
        statuses = self._known()
        usable, worker = [status.usable_memory_gb for status in statuses], _worker_of(statuses)
        memory, plans = call.memory, [each.plan for each in call.passes]
        if plans:
            dim, sizes = _batches(plans[0])
            busy = max(plan.busy for plan in plans)
            batches = sum(each.times * each.plan.tiles * each.plan.steps for each in call.passes)
            description = "; ".join(_pass_text(each, len(plans), worker) for each in call.passes)
        else:
            memory = executor.whole_grid_bytes(shape, dtype)
            dim, sizes, busy, batches = 0, [int(shape[0])], self.mpi.get_size(), 1
            description = f"swept whole by {busy} ranks | {format_bytes(memory)} a {worker}"
        if not call.feasible:
            description += f"; not feasible: {format_bytes(call.smallest)} a {worker} are needed"
        return ExecutionPlan(
            operation=op,
            num_gpus_active=busy,
            num_batches=batches,
            batch_sizes=sizes,
            batch_dim=dim,
            per_gpu_memory_gb=memory / _GIB,
            total_data_memory_gb=call.data_bytes / _GIB,
            total_available_gb=sum(usable),
            min_gpu_available_gb=min(usable),
            feasible=call.feasible,
            description=description,
            predicted_time_ms=call.seconds * 1e3,
            floor_ms=call.floor * 1e3,
            smallest_memory_gb=call.smallest / _GIB,
            num_passes=sum(each.times for each in call.passes),
            scratch_memory_gb=call.scratch / _GIB,
        )

    def print_gpu_status(self):
        """Prints a line for each device: a bar of what is used, free of total, usable; on rank 0.

        Returns the [GPUStatus] that it scanned for it, on every rank.
        """
        statuses = self.scan_all_gpus()
        if self.mpi.is_master_process():
            rule = "=" * 70
            place = "GPU" if any(status.gpu_id >= 0 for status in statuses) else "host"
            print(f"{rule}\n  {place} memory (now, other processes included)\n{'-' * 70}")
            for status in statuses:
                print(_status_line(status))
            print(rule)
        return statuses


def _worker_of(statuses):
    return "GPU" if all(status.gpu_id >= 0 for status in statuses) else "rank"


def _limit(max_per_gpu_gb):
    """GiB whose bytes are a number of 64 bits."""
    gib = number(max_per_gpu_gb, "ResourcePlanner", "max_per_gpu_gb")
    if not 0 < gib < 2**33:
        raise ExecutionError(
            f"ResourcePlanner: max_per_gpu_gb is {gib}; needed are GiB above 0 and below 2**33, or None"
        )
    return gib


def _status_line(status):
    used = 1 - status.free_memory_gb / status.total_memory_gb
    bar = "█" * round(30 * used)
    name = f"GPU {status.gpu_id}" if status.gpu_id >= 0 else "host"
    return (
        f"  {name} (Rank {status.rank:2}): [{bar:░<30}] {gib_text(status.free_memory_gb)} / "
        f"{gib_text(status.total_memory_gb)} free | usable {gib_text(status.usable_memory_gb)}"
    )


def gib_text(gib):
    """Memory in a unit that fits: 0.5 -> '512.0 MiB'."""
    return format_bytes(round(gib * _GIB))


def _pass_text(each, passes, worker):
    """What one of so many passes is."""
    plan = each.plan
    dim, sizes = _batches(plan)
    size = f"{sizes[0]} rows each" if dim == 0 else f"{sizes[0]} of dimension {dim} each"
    if dim < 0:
        size = f"{sizes[0]} elements of each sum at a time"
    text = (
        f"{len(sizes)} batches x {plan.devices} {worker}s | {size} | {format_bytes(plan.memory)} a "
        f"{worker}"
    )
    if passes == 1 and each.text == "at once":
        return text
    times = f"{each.times} x " if each.times > 1 else ""
    return f"{times}{each.text}: {text}"


def _batches(plan):
    """(dimension, sizes) of the parts into which a device's share is cut most finely."""
    parts = [*plan.cuts, plan.steps]
    finest = max(range(len(parts)), key=parts.__getitem__)
    length = plan.lengths[finest]
    count = parts[finest]
    sizes = [length // count + (i < length % count) for i in range(count)]
    return (-1 if finest == len(plan.cuts) else finest), sizes
