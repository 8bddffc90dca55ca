"""Tensors of the two dtypes that the operator classes are named after."""

from cuop import _core

__all__ = ["TensorDouble", "TensorFloat"]


def TensorFloat(shape, device=None):  # noqa: N802
    """A float32 tensor of zeros."""
    return _core.zeros(shape, dtype="float32", device=device)


def _tensor_of_bytes(elements, shape, dtype, device):
    """The tensor that was pickled; pickles name this function, so it stays where it is."""
    return _core._tensor_of_bytes(elements, shape, dtype, device)


def TensorDouble(shape, device=None):  # noqa: N802
    """A float64 tensor of zeros."""
    return _core.zeros(shape, dtype="float64", device=device)
