"""Ranks that work together: threads of this process, MPI processes, or processes over TCP."""

from cuop._core._dist import (
    Communicator,
    launcher,
    mpi_unavailable_reason,
    run_ranks,
    world,
)

__all__ = ["Communicator", "launcher", "mpi_unavailable_reason", "run_ranks", "world"]
