"""Sorting and distinct elements against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import laid_out
from raised_errors import each_raises

import cuop

settings.register_profile("sort", max_examples=100, deadline=None)
settings.load_profile("sort")

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64"]  # fmt: skip


def numpy_sort(x, axis=-1):
    """The stable one: NumPy 2.4's quicksort misplaces float16 where the processor has AVX-512."""
    return np.sort(x, axis, kind="stable")


def random_array(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        info = np.iinfo(dtype) if dtype.kind != "b" else None
        low, high = (0, 1) if info is None else (info.min, info.max)
        wide = rng.integers(low, high, shape, dtype=dtype if info else np.int8, endpoint=True)
        few = rng.integers(0, 2, shape)
        return np.where(rng.random(shape) < 0.5, wide, few).astype(dtype)
    values = np.round(rng.standard_normal(shape) * 3, 1).astype(dtype)
    special = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], shape).astype(dtype)
    return np.where(rng.random(shape) < 0.3, special, values).astype(dtype)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.sampled_from([0, 1, 300]),
       st.data(), st.sampled_from(DTYPES), st.integers(0, 2**32))  # fmt: skip
def test_sort(shape, extra, data, dtype, seed):
    rng = np.random.default_rng(seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] += extra
    x = random_array(rng, shape, dtype)
    for view in (x, np.ascontiguousarray(x[..., ::-1])[..., ::-1], np.ascontiguousarray(x.T).T):
        given_tensor = laid_out(view)
        wanted = numpy_sort(x, axis)
        result = np.asarray(cuop.sort(given_tensor, axis))
        assert result.dtype == x.dtype
        assert np.array_equal(result, wanted, equal_nan=x.dtype.kind == "f")
        order = np.asarray(cuop.argsort(given_tensor, axis))
        assert np.array_equal(order, np.argsort(x, axis, kind="stable"))
        falling = np.asarray(cuop.sort(given_tensor, axis, descending=True))
        assert np.array_equal(falling, np.flip(wanted, axis), equal_nan=x.dtype.kind == "f")


def test_descending_order_is_stable():
    x = np.array([2, 1, 2, 1, 3])
    assert np.asarray(cuop.argsort(x, descending=True)).tolist() == [4, 0, 2, 1, 3]


def same_bits(given, wanted):
    """But for NaN, of which any may be the one."""
    given, wanted = np.asarray(given), np.asarray(wanted)
    if wanted.dtype.kind == "f" and wanted.size > 0 and np.isnan(wanted[-1]):
        return np.isnan(given[-1]) and given[:-1].tobytes() == wanted[:-1].tobytes()
    return given.tobytes() == wanted.tobytes()


@given(st.lists(st.integers(0, 9), max_size=3), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_unique(shape, dtype, seed):
    x = random_array(np.random.default_rng(seed), shape, dtype)
    wanted = np.unique(x, True, True, True)
    result = cuop.unique(x, True, True, True)
    for ours, theirs in zip(result, wanted, strict=True):
        ours = np.asarray(ours)
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
    every_part = dict(zip(("values", "indices", "inverse_indices", "counts"), result, strict=True))
    for some in (cuop.unique_all(x), cuop.unique_counts(x), cuop.unique_inverse(x)):
        for name, part in some._asdict().items():
            assert same_bits(part, every_part[name])
    for values in (cuop.unique(x), cuop.unique_values(x), cuop.unique(x, return_counts=True)[0]):
        assert same_bits(values, result[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_unique_takes_the_zero_that_came_first(dtype):
    for zeros in ([0.0, -0.0], [-0.0, 0.0], [0.0], [-0.0, -0.0]):
        x = np.array([1.0, *zeros, -1.0, np.nan, *zeros], dtype)
        for values in (cuop.unique(x), cuop.unique_values(x), cuop.unique_counts(x).values):
            values = np.asarray(values)
            assert values[:3].tolist() == [-1.0, 0.0, 1.0]
            assert np.signbit(values[1]) == np.signbit(zeros[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_that_threads_share(dtype):
    rng = np.random.default_rng(DTYPES.index(dtype))
    x = random_array(rng, 200_003, dtype)
    number = x.dtype.kind == "f"
    assert np.array_equal(np.asarray(cuop.sort(x)), numpy_sort(x), equal_nan=number)
    assert np.array_equal(np.asarray(cuop.argsort(x)), np.argsort(x, kind="stable"))
    falling = np.asarray(cuop.argsort(x, descending=True))
    assert np.array_equal(x[falling], numpy_sort(x)[::-1], equal_nan=number)
    columns = np.stack([x, x[::-1]], axis=1)
    assert np.array_equal(
        np.asarray(cuop.sort(columns, 0)), numpy_sort(columns, 0), equal_nan=number
    )


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((300, 71), 0),
        ((5000, 3), 0),
        ((3, 700, 130), 1),
        ((400, 2, 40), 0),
        ((40, 17, 1100), 0),
        ((2, 9000, 5), 1),
    ],
)
def test_lines_that_lie_across_rows(shape, axis, dtype):
    x = random_array(np.random.default_rng(3), shape, dtype)
    sorted_, order = numpy_sort(x, axis=axis), np.argsort(x, axis=axis, kind="stable")
    for view in (x, np.ascontiguousarray(x[..., ::-1])[..., ::-1], np.ascontiguousarray(x.T).T):
        tensor = laid_out(view)
        np.testing.assert_array_equal(np.asarray(cuop.sort(tensor, axis=axis)), sorted_)
        np.testing.assert_array_equal(np.asarray(cuop.argsort(tensor, axis=axis)), order)
    falling = cuop.sort(cuop.asarray(x), axis=axis, descending=True)
    np.testing.assert_array_equal(np.flip(np.asarray(falling), axis), sorted_)
    out = cuop.zeros(shape[::-1], dtype=dtype).T
    cuop.sort(cuop.asarray(x), axis=axis, out=out)
    np.testing.assert_array_equal(np.asarray(out), sorted_)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64"])
@pytest.mark.parametrize("length", [7, 300, 200_003])
def test_in_place(dtype, length):
    # Keys that differ in one digit, in several and in none.
    for values in (
        np.arange(length) * 7 % 100,
        np.arange(length) * 7919 % 100_003,
        np.ones(length),
    ):
        x = values.astype(dtype)
        for descending in (False, True):
            given_tensor = cuop.tensor(x)
            cuop.sort(given_tensor, descending=descending, out=given_tensor)
            wanted = numpy_sort(x)[::-1] if descending else numpy_sort(x)
            assert np.array_equal(np.asarray(given_tensor), wanted)


def test_long_lines_and_bfloat16():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(200_001).astype(np.float32)
    assert np.array_equal(np.asarray(cuop.sort(x)), numpy_sort(x))
    assert np.array_equal(np.asarray(cuop.argsort(x)), np.argsort(x, kind="stable"))
    half = cuop.tensor(x[:1000], "bfloat16")
    wanted = numpy_sort(np.asarray(half.to("float32")))
    assert np.array_equal(np.asarray(cuop.sort(half).to("float32")), wanted)


def test_out_and_in_place():
    x = np.array([[3, 1, 2], [9, 7, 8]], np.int16)
    out = cuop.zeros((3, 2), "int16")
    cuop.sort(x, out=out.T)
    assert np.array_equal(np.asarray(out).T, numpy_sort(x))
    tensor = cuop.tensor(x)
    cuop.sort(tensor, 0, out=tensor)
    assert np.array_equal(np.asarray(tensor), numpy_sort(x, 0))


test_errors = each_raises(
    (lambda: cuop.sort([1j, 2.0]), cuop.DTypeError, "sort: dtype complex64 is not supported"),
    (lambda: cuop.argsort([1.0], 1), cuop.ShapeError, "argsort: axis 1 is out of range"),
    (lambda: cuop.sort(1.0), cuop.ShapeError, "axis -1 is out of range for a tensor of 0"),
    (lambda: cuop.unique([1j]), cuop.DTypeError, "unique: x: dtype complex64 is not supported"),
    (lambda: cuop.sort([1.0], out=cuop.zeros(2)), cuop.ShapeError, "the output has shape"),
)
