"""Joining, padding, shifting and repeating against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_errors import each_raises

import cuop

settings.register_profile("arrange", max_examples=100, deadline=None)
settings.load_profile("arrange")

DTYPES = st.sampled_from(["bool", "int8", "uint64", "float16", "float32", "complex128"])
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def filled(shape, dtype="int64"):
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count).reshape(shape) * 7 % 127).astype(dtype)


def same(result, wanted):
    result = np.asarray(result)
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.shape
    assert np.array_equal(result, wanted)


@given(SHAPES, st.data(), DTYPES, DTYPES)
def test_joins(shape, data, first, second):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    other = list(shape)
    other[axis] = data.draw(st.integers(0, 4))
    a, b = filled(shape, first), filled(other, second)
    wanted = np.concatenate([a, b, a.T.copy().T], axis)
    result = cuop.concatenate([a, b, cuop.tensor(a.T).T], axis)
    assert np.array_equal(np.asarray(result), wanted)
    assert str(result.dtype) == str(np.promote_types(first, second))
    same(cuop.stack([a, a], axis), np.stack([a, a], axis))


@given(
    SHAPES, st.data(), DTYPES, st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"])
)
def test_pad(shape, data, dtype, mode):
    if mode != "constant":
        shape = [max(1, size) for size in shape]
    widths = [data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in shape]
    x = filled(shape, dtype)
    same(cuop.pad(x, widths, mode), np.pad(x, widths, mode))
    same(cuop.pad(x.T, 2, mode), np.pad(x.T, 2, mode))
    if mode == "constant":
        same(cuop.pad(x, (1, 2), constant_values=1), np.pad(x, (1, 2), constant_values=1))


@given(SHAPES, st.data(), DTYPES)
def test_flip_and_roll(shape, data, dtype):
    x = filled(shape, dtype)
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    same(cuop.flip(x, tuple(axes)), np.flip(x, tuple(axes)))
    same(cuop.flip(x), np.flip(x))
    shift = data.draw(st.integers(-20, 20))
    same(cuop.roll(x, shift), np.roll(x, shift))
    if axes:
        shifts = tuple(data.draw(st.integers(-20, 20)) for _ in axes)
        same(cuop.roll(x, shifts, tuple(axes)), np.roll(x, shifts, tuple(axes)))
        same(cuop.roll(x, shift, tuple(axes)), np.roll(x, shift, tuple(axes)))


@given(SHAPES, st.data(), DTYPES)
def test_tile_and_repeat(shape, data, dtype):
    x = filled(shape, dtype)
    repeats = data.draw(st.lists(st.integers(0, 3), max_size=5))
    same(cuop.tile(x, repeats), np.tile(x, repeats))
    count = data.draw(st.integers(0, 4))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    same(cuop.repeat(x, count, axis), np.repeat(x, count, axis))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 31, 32, 65, 1024, 1025])
def test_repeated_elements(dtype, count):
    x = filled((3, 700), dtype)
    for view in [x, x[:, ::-1], x[:, ::3], x.T, x[::2]]:
        same(cuop.repeat(view, count), np.repeat(view, count))
        same(cuop.repeat(view, count, 1), np.repeat(view, count, 1))
    spread = cuop.broadcast_to(cuop.tensor(x)[..., None], (3, 700, count))
    target = cuop.zeros((3, 700, 2 * count), dtype)
    target[:, :, count:] = spread
    same(target[:, :, count:], np.broadcast_to(x[..., None], spread.shape))
    assert not target[:, :, :count].any().item()


def test_out():
    a, b = filled((2, 3)), filled((2, 2))
    out = cuop.zeros((2, 5), "int64")
    cuop.concatenate([a, b], 1, out=out)
    same(out, np.concatenate([a, b], 1))
    out = cuop.zeros((2, 2, 3), "int64")
    cuop.stack([a, a], out=out)
    same(out, np.stack([a, a]))
    out = cuop.zeros((4, 3), "int64")
    cuop.pad(a, [(1, 1), (0, 0)], "wrap", out=out)
    same(out, np.pad(a, [(1, 1), (0, 0)], "wrap"))
    with pytest.raises(cuop.ExecutionError, match="shares memory"):
        cuop.concatenate([out[:2], out[2:]], out=out)


test_errors = each_raises(
    (lambda: cuop.concatenate([]), cuop.ShapeError, "at least one tensor"),
    (lambda: cuop.concatenate([1.0, 2.0]), cuop.ShapeError, "no axis to join"),
    (lambda: cuop.concatenate([np.ones((2, 3)), np.ones((2, 2))]), cuop.ShapeError,
     "concatenate: shapes (2, 3) and (2, 2) differ besides axis 0"),
    (lambda: cuop.concatenate([[1.0]], 1), cuop.ShapeError, "axis 1 is out of range"),
    (lambda: cuop.stack([np.ones(2), np.ones(3)]), cuop.ShapeError, "(2,) and (3,) differ"),
    (lambda: cuop.pad(np.ones(2), 2**63 - 1), cuop.ShapeError, "does not fit in 64 bits"),
    (lambda: cuop.pad(np.ones(2), 2**62), cuop.ShapeError, "does not fit in 64 bits"),
    (lambda: cuop.pad(np.ones(2), -1), cuop.ShapeError, "must not be negative"),
    (lambda: cuop.pad(np.ones(2), [(1, 1)] * 3), cuop.ShapeError, "3 pairs of widths"),
    (lambda: cuop.pad(np.ones(0), 1, "edge"), cuop.ShapeError, "axis 0 is empty"),
    (lambda: cuop.pad(np.ones(2), 1, "odd"), cuop.ExecutionError, "mode 'odd' is unknown"),
    (lambda: cuop.flip(np.ones(2), 1), cuop.ShapeError, "flip: axis 1 is out of range"),
    (lambda: cuop.flip(np.ones(2), (0, -1)), cuop.ShapeError, "given twice"),
    (lambda: cuop.roll(np.ones((2, 2)), (1, 2, 3), (0, 1)), cuop.ShapeError, "do not fit"),
    (lambda: cuop.tile([1.0], (-1,)), cuop.ShapeError, "< 0"),
    (lambda: cuop.repeat([1.0], -1), cuop.ShapeError, "must not be negative"),
)  # fmt: skip
