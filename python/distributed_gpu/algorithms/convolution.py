"""Convolutions of images that lie on rank 0.

Every rank makes the same call; arrays are given on rank 0 and are None elsewhere, the result comes
back on rank 0 as the kind of the input. Errors raise MPIError on every rank.
"""

from cuop import dist
from distributed_gpu._call import from_root

__all__ = ["distributed_conv2d", "distributed_conv3d"]


def distributed_conv2d(
    input,
    weight,
    mpi,
    distributor,
    bias=None,
    stride=(1, 1),
    padding=(0, 0),
    dilation=(1, 1),
    groups=1,
):
    """input [N, C, H, W] by weight [O, C / groups, h, w] plus bias [O], as torch's conv2d."""
    return _convolve(input, weight, mpi, bias, stride, padding, dilation, groups)


def distributed_conv3d(
    input,
    weight,
    mpi,
    distributor,
    bias=None,
    stride=(1, 1, 1),
    padding=(0, 0, 0),
    dilation=(1, 1, 1),
    groups=1,
):
    """input [N, C, D, H, W] by weight [O, C / groups, d, h, w] plus bias [O]."""
    return _convolve(input, weight, mpi, bias, stride, padding, dilation, groups)


def _convolve(input, weight, mpi, bias, stride, padding, dilation, groups):
    return from_root(
        dist.conv_from_root,
        mpi,
        {"input": input, "weight": weight, "bias": bias},
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
