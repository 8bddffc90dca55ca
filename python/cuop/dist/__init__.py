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
