"""Ranks, objects and arrays between them."""

import contextlib
import functools
import re
import sys
import warnings

import cuop
from cuop import dist
from cuop._arguments import check_callable, describe, integer, refused
from distributed_gpu._arrays import (
    as_tensor,
    in_own_memory,
    kind_of,
    place_of,
    root_tensor,
    this_ranks,
    to_kind,
    to_place,
)
from distributed_gpu._call import MPIError, mpi_errors, text_of, told

__all__ = ["MAX", "MIN", "PROD", "SUM", "MPIError", "MPIManager"]

SUM, PROD, MAX, MIN = "sum", "prod", "max", "min"

_FOLDS = {
    SUM: lambda a, b: a + b,
    PROD: lambda a, b: a * b,
    MAX: max,
    MIN: min,
}


class MPIManager:
    """This process's (or thread's) place among the ranks, and messages between them.

    Finds what it runs under: the ranks of mpirun, srun or torchrun, the threads of cuop.dist.run_ranks,
    or a single rank in a plain `python script.py`, whose functions use all GPUs of the process where that
    is faster. Errors raise MPIError on every rank.
    """

    def __init__(self, comm=None):
        if comm is not None and not isinstance(comm, dist.Communicator):
            raise refused(comm, "MPIManager", "comm", "a cuop.dist.Communicator or None")
        self.comm = dist.world() if comm is None else comm

    def get_rank(self):
        """This rank's number, from 0."""
        return self.comm.rank

    def get_size(self):
        """How many ranks there are."""
        return self.comm.size

    def is_master_process(self):
        """Whether this is rank 0."""
        return self.comm.rank == 0

    def get_gpu_id(self):
        """The rank's GPU, on which it keeps its parts of tensors on GPUs; -1 on CPU ranks."""
        device = cuop.current_device()
        return device.index if device.type == "cuda" else -1

    def barrier(self):
        """Returns when all ranks have called it."""
        with mpi_errors(self.comm):
            self.comm.barrier()

    def synchronize(self):
        """Waits for this rank's work and then for all ranks."""
        with told(self, "synchronize"):
            cuop.synchronize()
        self.barrier()

    def check_health(self):
        """Whether no failure of any rank is known; returns at once and is not a collective.

        Ranks of one host watch each other: one that has died (within a fraction of a second), that
        is stopped or that is stuck in a call (after CUOP_HEARTBEAT_TIMEOUT, 1.5 s) is named by a
        RuntimeWarning. A rank of another host is known by its connection alone. `comm.health()` has
        what is known of each rank.
        """
        ill = [
            f"rank {rank} is {_described(health)}"
            for rank, health in enumerate(self.comm.health())
            if health.state in ("dead", "stopped", "stuck", "lost")
        ]
        if ill:
            warnings.warn(f"check_health: {'; '.join(ill)}", RuntimeWarning, stacklevel=2)
        return not ill and self.comm.failure == ""

    def shrink(self):
        """The manager of the ranks that are left after a failure, in order and numbered anew.

        Collective over those. A rank that is dead, has ended, is stopped or does not come within the
        time-out is left out; should it come all the same, it raises MPIError.
        """
        with mpi_errors(self.comm):
            return MPIManager(self.comm.shrink())

    def get_neighbors(self):
        """(previous rank, next rank) in the line of ranks; None where there is none."""
        rank, size = self.comm.rank, self.comm.size
        return (rank - 1 if rank > 0 else None, rank + 1 if rank + 1 < size else None)

    def print_master(self, *values):
        """Prints on rank 0 only."""
        if self.is_master_process():
            print(*values, flush=True)

    def print_all(self, *values):
        """Prints on every rank, in rank order, with the rank's number."""
        text = " ".join(str(value) for value in values)
        lines = self.gather(text)
        if lines is not None:
            sys.stdout.write("".join(f"[rank {r}] {line}\n" for r, line in enumerate(lines)))
            sys.stdout.flush()

    # Objects, by pickle.

    def broadcast(self, obj, root=0):
        """Root's object on every rank."""
        with mpi_errors(self.comm):
            return self.comm.broadcast(obj, root)

    def scatter(self, objects, root=0):
        """Element r of root's sequence on rank r."""
        with mpi_errors(self.comm):
            return self.comm.scatter(objects, root)

    def gather(self, obj, root=0):
        """Every rank's object as a list on the root, None elsewhere."""
        with mpi_errors(self.comm):
            return self.comm.gather(obj, root)

    def allgather(self, obj):
        """Every rank's object as a list on every rank."""
        with mpi_errors(self.comm):
            return self.comm.all_gather(obj)

    def reduce(self, obj, op=SUM, root=0):
        """All objects combined in rank order, on the root; None elsewhere. `op` may be a function."""
        with told(self, "reduce"):
            function = _function(op, "reduce")
        objects = self.gather(obj, root)
        return None if objects is None else functools.reduce(function, objects)

    def allreduce(self, obj, op=SUM):
        """All objects combined in rank order, on every rank."""
        with told(self, "allreduce"):
            function = _function(op, "allreduce")
        return functools.reduce(function, self.allgather(obj))

    def send(self, obj, dest, tag=0):
        """Sends an object to a rank that receives it."""
        with mpi_errors(self.comm), _renamed(dst="dest"):
            self.comm.send(obj, dest, tag)

    def recv(self, source, tag=0):
        """Receives an object from a rank that sends it."""
        with mpi_errors(self.comm), _renamed(src="source"):
            return self.comm.recv(source, tag)

    def sendrecv(self, obj, dest, source, tag=0):
        """Sends to one rank and receives from one, without deadlock."""
        with mpi_errors(self.comm), _renamed(dst="dest", src="source"):
            return self.comm.sendrecv(obj, dest, source, tag)

    # Arrays of any library; results are of the kind and on the device that was given (on the root,
    # where only it has one; another rank's part of an array of a GPU is on that rank's own GPU). They
    # have memory of their own but for root's of a broadcast, which is the array that was given.

    # `wire` is the form in which elements travel (dist.Wire).

    def broadcast_tensor(self, tensor, root=0, *, wire=None):
        """Root's array on every rank; root's own shares the memory of what it gave."""
        return on_all_ranks(self, tensor, root, wire, "broadcast_tensor")

    def scatter_tensor(self, tensor, dim=0, root=0, *, wire=None):
        """Nearly equal blocks of root's array along `dim`, copied: block r on rank r."""
        return scattered(self, tensor, dim, root, wire, "scatter_tensor")

    def gather_tensor(self, tensor, dim=0, root=0, *, wire=None):
        """The ranks' arrays joined along `dim` on the root, None elsewhere."""
        with told(self, "gather_tensor"):
            root = _root(self.comm, root, "gather_tensor")
        at_root = dist.Sharding.on_rank(dist.Mesh.line(self.comm.size), root)

        def joined(x):
            whole = x.redistribute(at_root, wire=wire).local
            return whole if self.comm.rank == root else None

        return self._joined(tensor, dim, "gather_tensor", joined)

    def allgather_tensor(self, tensor, dim=0):
        """The ranks' arrays joined along `dim` on every rank."""
        return self._joined(tensor, dim, "allgather_tensor", lambda x: x.gather_all())

    def allreduce_tensor(self, tensor, op=SUM):
        """The ranks' arrays, of one shape and dtype, combined element by element on every rank."""
        with mpi_errors(self.comm):
            with told(self, "allreduce_tensor"):
                local = as_tensor(tensor, "allreduce_tensor", "tensor")
            result = dist.all_reduce(self.comm, local, op)
        return to_kind(result, kind_of(tensor))

    def clear_pinned_pool(self):
        """Gives idle page-locked memory back to the system, and returns the bytes; 0 on CPU ranks.

        GPU ranks that are processes exchange tensors through it.
        """
        with told(self, "clear_pinned_pool"):
            gpu = self.get_gpu_id()
            return 0 if gpu < 0 else cuop.release_pinned(f"cuda:{gpu}")

    def place_tensor(self, tensor, place, root=0):
        """place(root's array as a DistTensor), which returns this rank's part, as root's kind."""
        with told(self, "place_tensor"):
            check_callable(place, "place_tensor", "place")
        return _placed_from(self, tensor, lambda x: self._placed(place, x), root, "place_tensor")

    def _placed(self, place, whole):
        """place(whole); of an exception of its own all ranks hear."""
        try:
            local = place(whole)
        except cuop.errors.Error:  # of which they know
            raise
        except Exception as error:
            with contextlib.suppress(cuop.errors.Error):
                dist.fail_together(self.comm, "place_tensor", text_of(error))
            raise
        with told(self, "place_tensor"):
            if local is not None and not isinstance(local, cuop.Tensor):
                raise refused(local, "place_tensor", "place", "a function that returns a tensor")
        return local

    def _joined(self, tensor, dim, who, collect):
        with mpi_errors(self.comm):
            with told(self, who):
                local = as_tensor(tensor, who, "tensor")
                dim = _axis(dim, local.ndim, who)
            parts = dist.DistTensor.from_parts(self.comm, local, dim)
            return to_place(in_own_memory(collect(parts), parts), place_of(tensor, local))


def _root(comm, root, who):
    root = integer(root, who, "root")
    if not 0 <= root < comm.size:
        raise cuop.ExecutionError(f"{who}: root {root} is not one of the {comm.size} ranks")
    return root


def _placed_from(mpi, tensor, place, root, who):
    """What `place_tensor` returns, for the call `who`."""
    comm = mpi.comm
    with told(mpi, who):
        root = _root(comm, root, who)
        is_root = comm.rank == root
        given = root_tensor(tensor, who, "tensor") if is_root else None
    with mpi_errors(comm):
        local = place(dist.DistTensor.from_root(comm, given, root))
    where = mpi.broadcast(place_of(tensor, given) if is_root else None, root)
    with mpi_errors(comm):
        return to_place(local, where if is_root else this_ranks(where))


def on_all_ranks(mpi, tensor, root, wire, who):
    """What `broadcast_tensor` returns, for the call `who`."""
    everywhere = dist.Sharding.replicated(dist.Mesh.line(mpi.comm.size))
    return _placed_from(
        mpi, tensor, lambda x: x.redistribute(everywhere, wire=wire).local, root, who
    )


def scattered(mpi, tensor, dim, root, wire, who, name="dim"):
    """What `scatter_tensor` returns, for the call `who` whose dimension is its argument `name`."""

    def part(x):
        with told(mpi, who):
            spec = [None] * x.ndim
            spec[_axis(dim, x.ndim, who, name)] = "r"
            blocks = dist.Sharding(dist.Mesh.line(mpi.comm.size), dist.P(*spec))
        return in_own_memory(x.redistribute(blocks, wire=wire).local, x)

    return _placed_from(mpi, tensor, part, root, who)


@contextlib.contextmanager
def _renamed(**names):
    """Errors about a communicator's arguments by the names that they have here."""
    try:
        yield
    except cuop.errors.Error as error:
        text = str(error)
        for theirs, ours in names.items():
            text = re.sub(rf"(?<=: ){theirs}\b", ours, text, count=1)
        error.args = (text,)
        raise


def _described(health):
    if not health.operation:
        return health.state
    return f"{health.state} in {health.operation} (call {health.sequence})"


def _axis(dim, ndim, who, name="dim"):
    dim = integer(dim, who, name)
    if not -ndim <= dim < ndim:
        raise cuop.ShapeError(f"{who}: {name} {dim} is out of range for {ndim} dimensions")
    return dim


def _function(op, who):
    function = _FOLDS.get(op, op) if isinstance(op, str) else op
    if not callable(function):
        raise cuop.ExecutionError(
            f"{who}: op {describe(op)} was given, possible are {sorted(_FOLDS)} and functions of two"
        )
    return function
