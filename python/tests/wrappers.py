"""The JIT wrappers with their weights, and calls of them, for tests."""

import numpy as np
import pytest

import cuop

kinds = pytest.mark.parametrize("kind, dtype", [("Float", np.float32), ("Double", np.float64)])


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def with_weight(op, *weights):
    for setter, value in weights:
        getattr(op, setter)(value)
    return op


def case(name, prefix, kind):
    """An operator with its weights, the inputs of a call and the shape of its output."""
    make = getattr(cuop, prefix + name + kind)
    if name == "Gemm":
        op = with_weight(make(True, False, 2.0, 0.5), ("set_weight", numbers(1, 33, 21)))
        return op, [numbers(2, 33, 17)], (17, 21)
    if name == "Gemv":
        return with_weight(make(True), ("set_weight", numbers(1, 33, 21))), [numbers(2, 33)], (21,)
    if name == "MatMul":
        return make(False, True), [numbers(1, 3, 17, 33), numbers(2, 21, 33)], (3, 17, 21)
    if name in ("Relu", "Softmax"):
        return make(), [numbers(1, 19, 45)], (19, 45)
    if name == "BatchNorm":
        op = with_weight(make(), ("set_gamma", numbers(1, 5)), ("set_beta", numbers(2, 5)))
        return op, [numbers(3, 4, 5, 6)], (4, 5, 6)
    if name == "LayerNorm":
        op = with_weight(make(), ("set_gamma", numbers(1, 30)))
        return op, [numbers(3, 7, 30)], (7, 30)
    op = with_weight(make(2, 3, 3, 3, pad_h=1), ("set_weight", numbers(1, 3, 2, 3, 3)))
    return op, [numbers(2, 2, 2, 9, 8)], (2, 3, 9, 6)


NAMES = ["Gemm", "Gemv", "MatMul", "Relu", "Softmax", "BatchNorm", "LayerNorm", "Convolution2D"]
names = pytest.mark.parametrize("name", NAMES)
