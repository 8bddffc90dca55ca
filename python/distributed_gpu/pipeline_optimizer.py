"""Products and all-reduces in chunks, whose moves overlap with their arithmetic."""

import math
import time
from dataclasses import dataclass

import cuop
from cuop import dist
from cuop._arguments import MOST_SIZE, integer, number, refused, switch
from cuop.errors import ExecutionError
from distributed_gpu._arrays import as_tensor, place_of, this_ranks, to_kind
from distributed_gpu._call import check_manager, from_root, mpi_errors, told

__all__ = ["PipelineConfig", "PipelineOptimizer"]

_MOST_CHUNKS = 64


@dataclass(frozen=True)
class PipelineConfig:
    """How chunks follow each other.

    Attributes:
        num_chunks: chunks of a call that is not told how many; 0 lets products' planner choose.
        enable_overlap: False moves and computes in turn.
        prefetch_count: chunks that are fetched before they are needed.
    """

    num_chunks: int = 4
    enable_overlap: bool = True
    prefetch_count: int = 1

    def __post_init__(self):
        integer(self.num_chunks, "PipelineConfig", "num_chunks", least=0)
        switch(self.enable_overlap, "PipelineConfig", "enable_overlap")
        integer(self.prefetch_count, "PipelineConfig", "prefetch_count", least=1)


class PipelineOptimizer:
    """Calls of the ranks of an MPIManager in chunks: while one is computed, others are on their way.

    GPUs move chunks on a stream of their own; on CPU ranks the arithmetic has a thread of its own.
    All calls but estimates are collective; MPIError on every rank.
    """

    def __init__(self, mpi, config=None):
        check_manager(mpi, "PipelineOptimizer")
        if config is not None and not isinstance(config, PipelineConfig):
            raise refused(config, "PipelineOptimizer", "config", "a PipelineConfig or None")
        self.mpi = mpi
        self.config = config or PipelineConfig()
        self.reset_stats()

    def pipelined_matmul(self, A, B, num_chunks=None):
        """A [M, K] @ B [K, N] of rank 0 on rank 0 (None elsewhere): rows of A in chunks.

        num_chunks: None takes the config's; with 0 the planner says in how many chunks, or that rank
        0 multiplies alone.
        """
        chunks = self._chunks(num_chunks, "pipelined_matmul", least=0)
        return self._product("pipelined_matmul", A, B, chunks, self.config.enable_overlap)

    def baseline_matmul(self, A, B):
        """The same product in one chunk: out, multiplied, back."""
        return self._product("baseline_matmul", A, B, 1, False)

    def _product(self, name, A, B, chunks, overlap):
        with self._timed(name):
            return from_root(
                dist.matmul_pipelined_from_root,
                self.mpi,
                {"A": A, "B": B},
                chunks,
                overlap=overlap,
                ahead=self.config.prefetch_count,
            )

    def pipelined_allreduce(self, tensor, num_chunks=None):
        """The sum of the ranks' arrays, of one shape and dtype, on every rank, bit by bit that of
        allreduce_tensor: while a chunk is added up the next is fetched. A rank that gives None adds
        nothing; it gets the sum as the kind of the first array that was given.
        """
        chunks = self._chunks(num_chunks, "pipelined_allreduce", least=1)
        with self._timed("pipelined_allreduce"), mpi_errors(self.mpi.comm):
            local, kind = self._contribution(tensor, "pipelined_allreduce")
            result = dist.all_reduce_pipelined(
                self.mpi.comm,
                local,
                "sum",
                chunks,
                overlap=self.config.enable_overlap,
                ahead=self.config.prefetch_count,
            )
        return to_kind(result, kind)

    def _contribution(self, tensor, who):
        """(the array as a tensor, its kind); zeros like the first given one for None."""
        with told(self.mpi, who):
            local = None if tensor is None else as_tensor(tensor, who, "tensor")
            place = None if tensor is None else place_of(tensor, local)
        mine = None if local is None else (local.shape, str(local.dtype), place)
        given = [each for each in self.mpi.allgather(mine) if each is not None]
        with told(self.mpi, who):
            if not given:
                raise ExecutionError(f"{who}: no rank gave an array")
            if local is None:
                shape, dtype, place = given[0]
                place = this_ranks(place)
                local = cuop.zeros(shape, dtype=dtype, device=place[1])
        return local, place[0]

    def _chunks(self, num_chunks, who, least):
        with told(self.mpi, who):
            if num_chunks is None:
                return max(self.config.num_chunks, least)
            return integer(num_chunks, who, "num_chunks", least=least)

    def estimate_overlap_benefit(self, compute_time_ms, comm_time_ms, num_chunks):
        """What overlapping chunks gain where a chunk costs nothing by itself.

        Returns a dict: sequential_time_ms, pipelined_time_ms = max + min / chunks, time_saved_ms,
        speedup, and overlap_efficiency, the part of the shorter time that is hidden.
        """
        who = "estimate_overlap_benefit"
        compute = _time(compute_time_ms, who, "compute_time_ms")
        moves = _time(comm_time_ms, who, "comm_time_ms")
        chunks = integer(num_chunks, who, "num_chunks", least=1)
        sequential = compute + moves
        pipelined = dist.overlapped_seconds(compute, moves, chunks)
        return {
            "sequential_time_ms": sequential,
            "pipelined_time_ms": pipelined,
            "time_saved_ms": sequential - pipelined,
            "speedup": sequential / pipelined if pipelined > 0 else 1.0,
            "overlap_efficiency": 1.0 - 1.0 / chunks,
        }

    def compute_optimal_chunk_count(self, bytes, compute_intensity, bandwidth_gbps, latency_ms=0.5):
        """How many chunks take the least time, 1 to 64.

        bytes travel at bandwidth_gbps (10^9 bytes a second); compute_intensity is the time of the
        arithmetic in parts of that; a chunk costs latency_ms by itself. The least of
        max + min / k + k latency over k.
        """
        who = "compute_optimal_chunk_count"
        count = integer(bytes, who, "bytes", least=0, most=MOST_SIZE)
        intensity = _time(compute_intensity, who, "compute_intensity")
        bandwidth = _time(bandwidth_gbps, who, "bandwidth_gbps")
        latency = _time(latency_ms, who, "latency_ms")
        if bandwidth == 0:
            raise ExecutionError(f"{who}: bandwidth_gbps is 0; it must be above 0")
        moves = count / bandwidth / 1e6
        return dist.best_chunks(moves * intensity, moves, latency, most=_MOST_CHUNKS)

    def print_stats(self):
        """Prints calls and times by name, on rank 0."""
        for name, times in self._times.items():
            mean = sum(times) / len(times)
            self.mpi.print_master(
                f"{name}: {len(times)} calls, {mean:.3f} ms on average, {min(times):.3f} ms at least"
            )

    def reset_stats(self):
        """Forgets the calls so far."""
        self._times = {}

    def _timed(self, name):
        return _Timed(self._times.setdefault(name, []))


class _Timed:
    """Appends the milliseconds of a block, its work on the device included, unless it raises."""

    def __init__(self, times):
        self._times = times

    def __enter__(self):
        self._begin = time.perf_counter()

    def __exit__(self, kind, error, traceback):
        if kind is None:
            cuop.synchronize()
            self._times.append((time.perf_counter() - self._begin) * 1e3)


def _time(value, who, name):
    duration = number(value, who, name)
    if not 0 <= duration < math.inf:
        raise ExecutionError(f"{who}: {name} is {duration}; it must be finite and at least 0")
    return duration
