"""Tensors over ranks: communicators, meshes, shardings, distributed tensors, plans, algorithms.

Ranks are threads of this process, MPI processes, or processes over TCP.

    def work(comm):
        x = dist.DistTensor.from_root(comm, array if comm.rank == 0 else None)
        x = x.redistribute(dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None)))
        return (x @ x.T).gather()        # on rank 0, None elsewhere

    dist.run_ranks(work, 4)              # or under mpirun: work(dist.world())

Every operation on a DistTensor is collective. `dist.last_report().plan.explain()` tells what was
moved and computed, and what else was considered.
"""

from cuop._core import _dist
from cuop._core._dist import *  # noqa: F403

__all__ = [name for name in dir(_dist) if not name.startswith("_")]


def run_ranks(work, ranks):
    """Calls work(comm) on `ranks` threads, each a rank with its own communicator; the results.

    The first exception is raised here, with a note that names its rank, after it has ended the
    waits of the other ranks. `world()` answers the thread's communicator inside.
    """

    def named(comm):
        try:
            return work(comm)
        except BaseException as error:
            error.add_note(f"raised on rank {comm.rank} of {comm.size}")
            raise

    return _dist.run_ranks(named, ranks)
