"""Fourier transforms of arrays that lie on rank 0.

Every rank makes the same call; the array is given on rank 0 and is None elsewhere, the result comes
back on rank 0 as the kind of the input. `norm` is "backward", "ortho" or "forward". Errors raise
MPIError on every rank.
"""

from cuop import dist
from distributed_gpu._call import from_root

__all__ = [
    "distributed_fft",
    "distributed_fft2d",
    "distributed_fft2d_pencil",
    "distributed_ifft",
    "distributed_rfft",
]


def distributed_fft(tensor, mpi, distributor, n=None, dim=-1, norm="backward"):
    """1-D transforms along `dim`, cut or padded to length n, the other dimensions split."""
    return from_root(dist.fft_from_root, mpi, {"tensor": tensor}, n, dim, norm)


def distributed_ifft(tensor, mpi, distributor, n=None, dim=-1, norm="backward"):
    """Inverse of distributed_fft."""
    return from_root(dist.ifft_from_root, mpi, {"tensor": tensor}, n, dim, norm)


def distributed_rfft(tensor, mpi, distributor, n=None, dim=-1, norm="backward"):
    """Of real input: the n/2 + 1 outputs that are not conjugates of others."""
    return from_root(dist.rfft_from_root, mpi, {"tensor": tensor}, n, dim, norm)


def distributed_fft2d(tensor, mpi, distributor, s=None, dim=(-2, -1), norm="backward"):
    """2-D transforms over two dimensions of at least three, split over another."""
    return from_root(dist.fft2d_from_root, mpi, {"tensor": tensor}, s, dim, norm)


def distributed_fft2d_pencil(tensor, mpi, distributor, norm="backward"):
    """The 2-D transform of one grid: rows, an all-to-all, columns. Any size on any number of ranks."""
    return from_root(dist.fft2d_pencil_from_root, mpi, {"tensor": tensor}, norm)
