"""Pickles: tensors out of them, and functions in them by their names, as Python's own are."""

import copyreg
import operator

from cuop import _core

__all__ = []


def _tensor_of_bytes(elements, shape, dtype, device):
    """The tensor that was pickled; pickles name this function, so it stays where it is."""
    return _core._tensor_of_bytes(elements, shape, dtype, device)


def _of_object(method):
    return getattr, (method.__self__, method.__name__)


for _function in (_core.add, _core.Tensor.exp):  # nanobind's functions and methods
    copyreg.pickle(type(_function), operator.attrgetter("__qualname__"))
copyreg.pickle(type(_core.dtype("bool").__reduce__), _of_object)
