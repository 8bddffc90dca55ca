"""Arrays of any library in, arrays of the same library out."""

import sys

import numpy as np

import cuop


def kind_of(array):
    """The library of an array by name: "cuop", "torch", another array module, else "numpy"."""
    if isinstance(array, cuop.Tensor):
        return "cuop"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return "torch"
    if isinstance(array, np.ndarray) or not hasattr(array, "__array_namespace__"):
        return "numpy"
    return array.__array_namespace__().__name__


def to_kind(tensor, kind):
    """A cuop tensor as an array of the named library, sharing memory; None stays None.

    A library that is not imported here (the kind may come from another rank) gives NumPy arrays.
    """
    if tensor is None or kind == "cuop":
        return tensor
    library = sys.modules.get(kind)
    if kind == "numpy" or library is None:
        return np.asarray(tensor)
    return library.from_dlpack(tensor)


def plain(array):
    """The array without what only its own library understands (torch's gradients)."""
    return array.detach() if kind_of(array) == "torch" else array
