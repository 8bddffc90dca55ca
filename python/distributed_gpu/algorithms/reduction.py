"""Reductions of arrays that lie on rank 0.

Every rank makes the same call; the array is given on rank 0 and is None elsewhere, the result comes
back on rank 0 as the kind of the input. `dim` is an int, a tuple or None (all). NaN propagates.
Errors raise MPIError on every rank.
"""

from cuop import dist
from distributed_gpu._call import from_root

__all__ = [
    "distributed_max",
    "distributed_mean",
    "distributed_mean_kahan",
    "distributed_min",
    "distributed_sum",
    "distributed_sum_kahan",
]


def distributed_sum(tensor, mpi, distributor, dim=None, keepdim=False, *, mode="plain"):
    """Sum; mode "exact" is rounded once and has the same bits on any number of ranks."""
    return from_root(dist.sum_from_root, mpi, {"tensor": tensor}, dim, keepdim, mode=mode)


def distributed_mean(tensor, mpi, distributor, dim=None, keepdim=False, *, mode="plain"):
    """Arithmetic mean; modes as for distributed_sum."""
    return from_root(dist.mean_from_root, mpi, {"tensor": tensor}, dim, keepdim, mode=mode)


def distributed_max(tensor, mpi, distributor, dim=None, keepdim=False):
    """Largest element."""
    return from_root(dist.max_from_root, mpi, {"tensor": tensor}, dim, keepdim)


def distributed_min(tensor, mpi, distributor, dim=None, keepdim=False):
    """Smallest element."""
    return from_root(dist.min_from_root, mpi, {"tensor": tensor}, dim, keepdim)


def distributed_sum_kahan(tensor, mpi, distributor, dim=None, keepdim=False):
    """Compensated sum: an error of one rounding whatever the number of elements."""
    return distributed_sum(tensor, mpi, distributor, dim, keepdim, mode="compensated")


def distributed_mean_kahan(tensor, mpi, distributor, dim=None, keepdim=False):
    """Compensated mean."""
    return distributed_mean(tensor, mpi, distributor, dim, keepdim, mode="compensated")
