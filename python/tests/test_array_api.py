"""Functions that the Python Array API names, beside NumPy's of the same name."""

import math

import numpy as np
import pytest

import cuop

RNG = np.random.default_rng(11)
DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
KINDS = {
    "bool": "bool", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
    "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def filled(shape, dtype):
    return (RNG.integers(0, 90, shape) - (0 if dtype[0] in "ub" else 45)).astype(dtype)


def same(got, wanted):
    assert isinstance(got, cuop.Tensor) and got.shape == wanted.shape
    assert got.dtype == str(wanted.dtype)
    np.testing.assert_array_equal(got.numpy(), wanted)


def test_constants():
    assert (cuop.e, cuop.pi, cuop.inf) == (math.e, math.pi, math.inf) and math.isnan(cuop.nan)
    assert cuop.ones(3)[:, cuop.newaxis].shape == (3, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 5), (0, 3), (3, 0), (2, 3, 4)])
def test_triangles(dtype, shape):
    x = filled(shape, dtype)
    for k in [-(2**62), -2, 0, 1, 2**63 - 1]:
        wanted = {"tril": np.tril(x, np.clip(k, -9, 9)), "triu": np.triu(x, np.clip(k, -9, 9))}
        same(cuop.tril(cuop.tensor(x), k), wanted["tril"])
        same(cuop.triu(cuop.tensor(x), k), wanted["triu"])
    flipped = cuop.tensor(x)[..., ::-1]
    same(cuop.tril(flipped), np.tril(x[..., ::-1]))
    out = cuop.empty(shape, dtype)
    assert cuop.triu(cuop.tensor(x), out=out) is out
    same(out, np.triu(x))
    if shape == (3, 3):
        square = cuop.tensor(x)
        with pytest.raises(cuop.ExecutionError, match="tril: the output shares memory with x"):
            cuop.tril(square, out=square.T)
        same(cuop.tril(square, out=square), np.tril(x))


def test_triangles_leave_nothing_of_what_is_no_number():
    x = np.full((3, 3), np.nan, "float32")
    same(cuop.tril(cuop.tensor(x)), np.tril(x))
    with pytest.raises(cuop.ShapeError, match="tril: x has shape .3,."):
        cuop.tril([1, 2, 3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_differences(dtype):
    x = filled((4, 5), dtype)
    for order in [0, 1, 2, 4, 9]:
        for axis in [0, 1, -1]:
            same(cuop.diff(cuop.tensor(x), order, axis), np.diff(x, order, axis))
    with pytest.raises(cuop.ExecutionError, match="diff: n is -1"):
        cuop.diff(x, -1)
    with pytest.raises(cuop.ShapeError, match="diff: axis -1 is out of range"):
        cuop.diff(1.0)


def test_repeating_each_element_its_own_number_of_times():
    x = filled((3, 4), "int32")
    same(cuop.repeat(cuop.tensor(x), [2, 0, 3], axis=0), np.repeat(x, [2, 0, 3], axis=0))
    same(cuop.repeat(cuop.tensor(x), [1, 2, 0, 1], axis=-1), np.repeat(x, [1, 2, 0, 1], axis=-1))
    same(cuop.repeat(cuop.tensor(x), range(12)), np.repeat(x, range(12)))
    same(cuop.repeat(cuop.tensor(x), [2], axis=0), np.repeat(x, 2, axis=0))
    same(cuop.repeat(cuop.tensor(x)[:0], [], axis=0), x[:0])
    many = RNG.integers(0, 4, 1000)
    same(
        cuop.repeat(np.arange(1000), cuop.tensor(many[::-1])),
        np.repeat(np.arange(1000), many[::-1]),
    )
    with pytest.raises(cuop.ShapeError, match="repeat: repeats has shape"):
        cuop.repeat(x, [[1, 2, 3]], axis=0)
    for counts, words in [
        ([1, 2], "2 counts do not fit the 3"),
        ([1, -1, 1], "repeats holds -1; counts must not be negative"),
    ]:
        with pytest.raises(cuop.ShapeError, match=words):
            cuop.repeat(x, counts, axis=0)
    with pytest.raises(cuop.ShapeError, match="repeat"):
        cuop.repeat(x, [2**62, 2**62, 2**62], axis=0)


def test_joins_and_parts():
    a, b = filled((2, 3), "int32"), filled((4,), "float32")
    same(cuop.concat([cuop.tensor(a), cuop.tensor(b)], axis=None), np.concat([a, b], axis=None))
    for axis in [0, 1, -1]:
        parts = cuop.unstack(cuop.tensor(a), axis=axis)
        assert isinstance(parts, tuple)
        for got, wanted in zip(parts, np.unstack(a, axis=axis), strict=True):
            same(got, wanted)
    x = cuop.tensor(a)
    cuop.unstack(x)[1].fill(0)
    assert x[1].tolist() == [0, 0, 0]
    with pytest.raises(cuop.ShapeError, match="unstack: axis 2"):
        cuop.unstack(x, axis=2)
    for got, wanted in zip(
        cuop.broadcast_arrays(cuop.tensor(a), [[1], [2]], 3.0),
        np.broadcast_arrays(a, np.array([[1], [2]]), np.float32(3)),
        strict=True,
    ):
        np.testing.assert_array_equal(got.numpy(), wanted)
        assert got.shape == wanted.shape
    assert cuop.broadcast_arrays() == []
    with pytest.raises(cuop.ShapeError, match="broadcast_arrays"):
        cuop.broadcast_arrays([1, 2], [1, 2, 3])


def test_axes_that_move():
    x = filled((2, 3, 4, 5), "int8")
    for source, destination in [(0, -1), ((0, 1), (2, 3)), ((3, 1), (0, -1)), ((), ())]:
        same(
            cuop.moveaxis(cuop.tensor(x), source, destination), np.moveaxis(x, source, destination)
        )
    for axes in [0, -1, (0, 2), (1, -1), ()]:
        same(cuop.expand_dims(cuop.tensor(x), axes), np.expand_dims(x, axes))
    same(cuop.matrix_transpose(cuop.tensor(x)), np.matrix_transpose(x))
    same(cuop.ravel(cuop.tensor(x).T), np.ravel(x.T))
    for call in [
        lambda: cuop.moveaxis(x, (0, 0), (1, 2)),
        lambda: cuop.moveaxis(x, (0, 1), (2, 2)),
        lambda: cuop.moveaxis(x, 4, 0),
        lambda: cuop.expand_dims(x, range(30)),
        lambda: cuop.expand_dims(x, 9),
        lambda: cuop.matrix_transpose([1]),
    ]:
        with pytest.raises(cuop.ShapeError):
            call()


def test_numbers_of_nonzeros():
    x = filled((3, 4), "float32") * (RNG.random((3, 4)) < 0.5).astype("float32")
    x[0, 0] = np.nan
    assert type(cuop.count_nonzero(x)) is int and cuop.count_nonzero(x) == np.count_nonzero(x)
    for axis in [0, 1, -1, (0, 1)]:
        for keepdims in [False, True]:
            got = cuop.count_nonzero(cuop.tensor(x), axis, keepdims=keepdims)
            same(got, np.asarray(np.count_nonzero(x, axis, keepdims=keepdims)))
    assert cuop.count_nonzero(x, keepdims=True).shape == (1, 1)
    same(cuop.count_nonzero(cuop.tensor(x), ()), (x != 0).astype("int64"))
    assert cuop.count_nonzero([True, False], 0).item() == 1
    with pytest.raises(cuop.ShapeError, match="count_nonzero: axis 2 is out of range"):
        cuop.count_nonzero(x, 2)
    for length in [1, 63, 64, 65, 64 * 255, 64 * 255 + 70, 100_003]:
        bits = RNG.random(length) < 0.7
        assert cuop.count_nonzero(bits) == np.count_nonzero(bits)
        assert cuop.count_nonzero(np.ones(length, bool)) == length


@pytest.mark.parametrize("dtype", DTYPES)
def test_running_sums(dtype):
    x = filled((3, 4), dtype)
    for axis in [0, 1, -1]:
        for initial in [False, True]:
            got = cuop.cumulative_sum(cuop.tensor(x), axis=axis, include_initial=initial)
            wanted = np.cumulative_sum(x, axis=axis, include_initial=initial)
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3)
            assert got.dtype == str(wanted.dtype)
    assert cuop.cumulative_sum(x[0], dtype="complex128").dtype == "complex128"
    assert cuop.cumulative_sum([], include_initial=True).tolist() == [0]
    with pytest.raises(cuop.ShapeError, match="cumulative_sum: axis is needed"):
        cuop.cumulative_sum(x)
    with pytest.raises(cuop.ShapeError, match="cumulative_sum: axis 2 is out of range"):
        cuop.cumulative_sum(x, axis=2)


def test_result_types_of_arrays_dtypes_and_numbers():
    for a in DTYPES:
        for b in DTYPES:
            wanted = np.result_type(a, b)
            assert cuop.result_type(a, b) == str(wanted)
            assert cuop.result_type(cuop.ones(1, a), np.ones(1, b)) == str(wanted)
            assert cuop.can_cast(a, b) == np.can_cast(a, b)
            assert cuop.can_cast(cuop.ones(1, a), b) == np.can_cast(a, b)
        for number in [True, 1, 1.5, 1j]:
            wanted = str(np.result_type(np.dtype(a), number))
            assert cuop.result_type(number, a) == wanted
            assert (cuop.ones(1, a) + number).dtype == wanted
    assert cuop.result_type("int8") == "int8"
    assert cuop.result_type("int8", cuop.float32, np.ones(2, "uint8"), 1j) == "complex64"
    assert cuop.result_type([1, 2], "float32") == "float64"
    for arguments in [(), (1,), ("int8", "int9"), (object(),)]:
        with pytest.raises(cuop.DTypeError, match="result_type"):
            cuop.result_type(*arguments)


def test_kinds_of_dtypes():
    for dtype in [*DTYPES, "bfloat16"]:
        kind = "f" if dtype == "bfloat16" else np.dtype(dtype).kind
        for name, kinds in KINDS.items():
            assert cuop.isdtype(dtype, name) == (kind in kinds if name != "bool" else kind == "b")
        assert cuop.isdtype(dtype, dtype)
        assert cuop.isdtype(dtype, ("complex64", "integral")) == (
            kind in "iu" or dtype == "complex64"
        )
    assert not cuop.isdtype("int8", cuop.float32) and not cuop.isdtype("int8", ())
    for kind in ["real  floating", "floaty", 3, None]:
        with pytest.raises(cuop.DTypeError, match="isdtype: "):
            cuop.isdtype("int8", kind)


def test_limits_of_dtypes():
    for dtype in ["float16", "float32", "float64", "complex64", "complex128"]:
        ours, numpys = cuop.finfo(dtype), np.finfo(dtype)
        for name in ["bits", "eps", "max", "min", "smallest_normal", "tiny"]:
            assert getattr(ours, name) == getattr(numpys, name), (dtype, name)
        assert ours.dtype == str(numpys.dtype)
    half = cuop.finfo(cuop.ones(1, "bfloat16"))
    one = cuop.ones(1, "bfloat16")
    assert (one + half.eps).item() == 1 + half.eps and (one + half.eps / 4).item() == 1
    assert cuop.full(1, half.max, "bfloat16").item() == half.max == -half.min
    assert half.smallest_normal == 2.0**-126 and half.bits == 16
    assert repr(half) == "cuop.finfo('bfloat16')"
    for dtype in DTYPES[1:9]:
        for given in [dtype, np.ones(1, dtype)]:
            ours, numpys = cuop.iinfo(given), np.iinfo(dtype)
            assert (ours.bits, ours.max, ours.min) == (numpys.bits, numpys.max, numpys.min)
            assert ours.dtype == dtype
    for function, dtype in [(cuop.finfo, "int8"), (cuop.iinfo, "float32"), (cuop.iinfo, "bool")]:
        with pytest.raises(cuop.DTypeError, match=f"dtype {dtype} is not supported"):
            function(dtype)


def test_dtypes_are_numpys_where_numpy_asks():
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("NumPy asks for it since 2.4")
    for dtype in DTYPES:
        made = np.zeros(2, dtype=cuop.ones(1, dtype).dtype)
        assert made.dtype == dtype and np.dtype(cuop.dtype(dtype)) == dtype
    with pytest.raises(cuop.DTypeError, match="NumPy has no bfloat16"):
        np.zeros(2, dtype=cuop.bfloat16)


def test_asarray_with_a_dtype_and_a_copy():
    array = np.arange(4, dtype="float32")
    for data in [array, memoryview(array), cuop.tensor(array)]:
        place = cuop.asarray(data).data_ptr()
        assert cuop.asarray(data, "float32", copy=False).data_ptr() == place
        assert cuop.asarray(data, copy=True).data_ptr() != place
        wide = cuop.asarray(data, dtype="float64")
        assert wide.dtype == "float64" and wide.tolist() == [0, 1, 2, 3]
        with pytest.raises(cuop.ExecutionError, match="asarray: copy is False"):
            cuop.asarray(data, dtype="float64", copy=False)
    # numbers take the dtype, and are not rounded on the way
    assert cuop.asarray([2**53 + 1, 0], "int64").tolist() == [2**53 + 1, 0]
    assert cuop.asarray([0.1], "float64").item() == 0.1
    assert cuop.asarray(0.1, dtype="float64").item() == 0.1
    with pytest.raises(cuop.OverflowError, match="asarray: data"):
        cuop.asarray([300], dtype="int8")
    with pytest.raises(cuop.DTypeError, match="asarray: data"):
        cuop.asarray(np.ones(1) + 1j, dtype="float32")
    for data in [[1.0], 1.0, np.ones(2, ">f8")]:
        with pytest.raises(cuop.ExecutionError, match="asarray: copy is False"):
            cuop.asarray(data, copy=False)
        assert cuop.asarray(data, copy=True).dtype in ("float32", "float64")
    assert cuop.asarray(array[::-1], copy=False).tolist() == [3, 2, 1, 0]
    with pytest.raises(cuop.DTypeError, match="asarray: copy"):
        cuop.asarray(array, copy="yes")
