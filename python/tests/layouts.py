"""Tensors on the default device behind the strides of NumPy's views."""

import numpy as np

import cuop


def laid_out(view):
    """A tensor of the default device with a view's values, order of axes, directions and steps.

    `cuop.asarray(view)` would have the same strides, but on the host.
    """
    if view.ndim == 0 or view.size == 0:
        return cuop.tensor(view)
    flips = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in view.strides)
    order = np.argsort([-abs(stride) for stride in view.strides], kind="stable")
    ordered = view[flips].transpose(order)
    step = max(1, ordered.strides[-1] // view.itemsize)
    memory = cuop.zeros((*ordered.shape[:-1], step * ordered.shape[-1]), str(view.dtype))
    spread = memory[..., ::step]
    spread[...] = ordered
    return cuop.permute_dims(spread, np.argsort(order).tolist())[flips]
