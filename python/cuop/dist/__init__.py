"""Tensors over ranks: communicators, meshes, shardings, distributed tensors, plans, algorithms.

Ranks are threads of this process, MPI processes, or processes over TCP.

    def work(comm):
        x = dist.DistTensor.from_root(comm, array if comm.rank == 0 else None)
        x = x.redistribute(dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None)))
        return (x @ x.T).gather()        # on rank 0, None elsewhere

    dist.run_ranks(work, 4)              # or under mpirun: work(dist.world())

Most operations on a DistTensor are collective; what only computes or cuts its parts waits for
nobody. Inside `dist.strict()` nothing is gathered silently. `dist.last_report().plan.explain()` tells what was
moved and computed, and what else was considered, predicted beside measured; `dist.profile_report(comm)`
what calls cost over all ranks.
"""

import contextlib
import functools
import sys

from cuop._arguments import check_callable
from cuop._core import _dist
from cuop._core._dist import *  # noqa: F403
from cuop.dist.profile import ProfileReport, profile_report

__all__ = [
    *(name for name in dir(_dist) if not name.startswith("_")),
    "ProfileReport",
    "profile_report",
    "strict",
]


@contextlib.contextmanager
def strict():
    """Context manager: no call of this thread gathers silently.

    GatherError on all ranks for a call that would make a tensor, of which no rank has all, whole on
    several ranks or on one, and for conversions (np.asarray, tolist, ...) of a DistTensor of
    several elements that does not lie on every rank. What is asked for stays allowed: gather,
    gather_all, redistribute, `output=`. Everything else is computed as outside. All ranks enter it,
    or none; threads of run_ranks begin as strict as their caller.
    """
    before = _dist._set_strict(True)
    try:
        yield
    finally:
        _dist._set_strict(before)


def world():
    """The communicator of everybody who was started together: the thread's inside run_ranks, MPI
    under mpirun, TCP under torchrun, one rank alone otherwise.

    An exception that nobody catches on a rank that is a process ends the waits of the others: they
    raise CommunicationError with its words and its rank at once, not at their deadline.
    """
    comm = _dist.world()
    if comm.kind in ("mpi", "socket"):
        _tell_others_of_uncaught_exceptions(comm)
    return comm


@functools.cache
def _tell_others_of_uncaught_exceptions(comm):
    before = sys.excepthook

    def hook(kind, error, traceback):
        comm.abort(f"{kind.__name__}: {error}")
        before(kind, error, traceback)

    sys.excepthook = hook


def run_ranks(work, ranks):
    """Calls work(comm) on `ranks` threads, each a rank with its own communicator; the results.

    The first exception that a rank raised itself, not what others heard of it, is raised here, with
    a note that names its rank, after it has ended the waits of the other ranks. `world()` returns the
    thread's communicator inside.
    """
    check_callable(work, "run_ranks", "work")
    is_strict = _dist.is_strict()

    def named(comm):
        _dist._set_strict(is_strict)
        try:
            return work(comm)
        except BaseException as error:
            with contextlib.suppress(Exception):  # of what an exception makes of notes
                error.add_note(f"raised on rank {comm.rank} of {comm.size}")
            raise

    return _dist.run_ranks(named, ranks)
