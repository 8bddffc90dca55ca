"""Transforms against NumPy in double precision, over random shapes, dtypes, views and options."""

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import laid_out
from raised_errors import each_raises

import cuop
from cuop import fft

settings.register_profile("fft", max_examples=120, deadline=None)
settings.load_profile("fft")

LENGTHS = st.sampled_from(
    [
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        11,
        13,
        16,
        17,
        30,
        31,
        53,
        63,
        64,
        65,
        97,
        101,
        127,
        128,
        206,
        251,
        509,
        1021,
    ]
)
NORMS = st.sampled_from([None, "backward", "forward", "ortho"])
DTYPES = st.sampled_from(
    ["float16", "float32", "float64", "complex64", "complex128", "int8", "int64", "uint32", "bool"]
)


def random_array(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    elif dtype.kind == "f":
        values = rng.standard_normal(shape)
    else:
        values = rng.integers(0, 2 if dtype.kind == "b" else 100, shape)
    return values.astype(dtype)


def wide(array):
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def is_single(dtype):
    return np.dtype(dtype) in (np.float16, np.float32, np.complex64)


def check(given_tensor, wanted, dtype, is_real=False):
    result = np.asarray(given_tensor)
    single = is_single(dtype)
    kinds = ("float32", "float64") if is_real else ("complex64", "complex128")
    assert result.dtype == np.dtype(kinds[0] if single else kinds[1])
    assert result.shape == wanted.shape
    scale = np.max(np.abs(wanted), initial=1e-300)
    assert np.allclose(result, wanted, rtol=0, atol=(2e-6 if single else 5e-15) * scale)


def strided(rng, array):
    """The same values behind other strides: reversed, spread out, transposed or as they are."""
    choice = rng.integers(4)
    if choice == 0 and array.ndim:
        return laid_out(np.ascontiguousarray(array[::-1])[::-1])
    if choice == 1 and array.ndim:
        spread = np.zeros((*array.shape[:-1], 3 * array.shape[-1]), array.dtype)
        spread[..., 1::3] = array
        return laid_out(spread[..., 1::3])
    if choice == 2:
        return laid_out(np.ascontiguousarray(array.T).T)
    return laid_out(array)


@given(
    st.sampled_from(["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]),
    st.integers(0, 5),
    LENGTHS,
    st.integers(0, 5),
    DTYPES,
    NORMS,
    st.none() | LENGTHS,
    st.integers(0, 2**32),
)
def test_one_axis(name, before, n, after, dtype, norm, length, seed):
    rng = np.random.default_rng(seed)
    if name in ("rfft", "ihfft") and np.dtype(dtype).kind == "c":
        dtype = "float32"
    is_real = name in ("irfft", "hfft")
    if is_real and length is None and n == 1:
        n = 2
    x = random_array(rng, (before, n, after), dtype)
    wanted = getattr(np.fft, name)(wide(x), length, 1, norm)
    result = getattr(fft, name)(strided(rng, x), length, 1, norm)
    check(result, wanted, dtype, is_real)


@given(
    st.sampled_from(["fftn", "ifftn", "rfftn", "irfftn"]),
    st.data(),
    DTYPES,
    NORMS,
    st.integers(0, 2**32),
)
def test_many_axes(name, data, dtype, norm, seed):
    rng = np.random.default_rng(seed)
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 17]), min_size=1, max_size=4))
    axes = data.draw(st.permutations(range(-len(shape), 0)))
    axes = tuple(axes[: data.draw(st.integers(1, len(shape)))])
    s = data.draw(
        st.none()
        | st.lists(st.sampled_from([1, 2, 3, 6, 9, 20]), min_size=len(axes), max_size=len(axes))
    )
    if name == "rfftn" and np.dtype(dtype).kind == "c":
        dtype = "float64"
    if name == "irfftn" and s is None and shape[axes[-1]] == 1:
        shape[axes[-1]] = 3
    x = random_array(rng, shape, dtype)
    wanted = getattr(np.fft, name)(wide(x), s, axes, norm)
    check(getattr(fft, name)(strided(rng, x), s, axes, norm), wanted, dtype, name == "irfftn")


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("shape", [(1, 2), (37, 64), (3, 20, 31), (130, 7)])
def test_two_axes(name, shape):
    x = random_array(np.random.default_rng(5), shape, "float64" if name[0] == "r" else "complex128")
    check(getattr(fft, name)(x), getattr(np.fft, name)(x), x.dtype, name == "irfft2")


@pytest.mark.parametrize("n", [4096, 10007, 30011, 65536, 100000, 2 * 65537, 262144])
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "float64"])
def test_long_lines(n, dtype):
    x = random_array(np.random.default_rng(n), (3, n), dtype)
    wanted = scipy.fft.fft(wide(x))
    check(fft.fft(x), wanted, dtype)
    check(fft.ifft(x), scipy.fft.ifft(wide(x)), dtype)
    if not np.iscomplexobj(x):
        check(fft.rfft(x), wanted[:, : n // 2 + 1], dtype)
        check(fft.irfft(fft.rfft(x), n), wide(x), dtype, is_real=True)


@pytest.mark.parametrize("name", ["dst1", "dct1", "dct2", "dct3"])
@pytest.mark.parametrize("axis", [0, 1])
def test_real_transforms_in_place_and_of_every_length(name, axis):
    transform, theirs = getattr(fft, name), getattr(scipy.fft, name[:3])
    rng = np.random.default_rng(axis)
    for n in [*range(2, 34), 63, 64, 65, 127, 128, 257, 1000, 1024, 4099, 20_000]:
        x = rng.standard_normal((n, 9) if axis == 0 else (9, n))
        wanted = theirs(x, int(name[3]), axis=axis)
        given_tensor = cuop.tensor(x)
        result = transform(given_tensor, axis, out=given_tensor)
        assert result is given_tensor
        np.testing.assert_allclose(
            np.asarray(result), wanted, atol=1e-14 * np.log2(n + 2) * abs(wanted).max()
        )


def test_real_transforms_of_as_many_dimensions_as_there_may_be():
    x = cuop.ones((1,) * 31 + (5,))
    for name in ("dst1", "dct1", "dct2", "dct3"):
        wanted = getattr(fft, name)(cuop.ones(5))
        assert np.array_equal(np.asarray(getattr(fft, name)(x)).ravel(), np.asarray(wanted))


@given(
    st.integers(1, 4),
    LENGTHS,
    st.sampled_from(["float16", "float32", "float64", "int32"]),
    st.integers(0, 1),
    st.integers(0, 2**32),
)
def test_sine_and_cosine(rows, n, dtype, axis, seed):
    rng = np.random.default_rng(seed)
    x = random_array(rng, (rows + 1, n + 1), dtype)
    check(fft.dst1(strided(rng, x), axis), scipy.fft.dst(wide(x), 1, axis=axis), dtype, True)
    check(fft.dct1(strided(rng, x), axis), scipy.fft.dct(wide(x), 1, axis=axis), dtype, True)
    lines = x[: rows if axis == 0 else None, : n if axis == 1 else None]
    check(
        fft.dct2(strided(rng, lines), axis), scipy.fft.dct(wide(lines), 2, axis=axis), dtype, True
    )
    check(
        fft.dct3(strided(rng, lines), axis), scipy.fft.dct(wide(lines), 3, axis=axis), dtype, True
    )


def test_not_a_number_stays_in_its_line():
    x = np.ones((40, 32), np.float32)
    x[17, 3] = np.nan
    result = np.isnan(np.asarray(fft.fft(x)))
    assert result[17].all() and result.sum() == 32


def test_only_halves_of_the_spectrum_are_read():
    x = random_array(np.random.default_rng(1), (4, 6), "complex128")
    x[:, 0] += 3j  # NumPy ignores the imaginary part of what must be real
    for n in (10, 11, 4 * 53):
        check(fft.irfft(x, n), np.fft.irfft(x, n), x.dtype, is_real=True)


def test_no_lines_and_no_axes():
    assert fft.fft(np.zeros((0, 4))).shape == (0, 4)
    assert fft.rfft(np.zeros((3, 0, 4)), axis=0).shape == (2, 0, 4)
    assert np.all(np.asarray(fft.fft(np.zeros((2, 0)), 5)) == np.zeros((2, 5)))
    x = np.array([1.0, 2.0], np.float32)
    assert np.array_equal(np.asarray(fft.fftn(x, axes=())), x.astype(np.complex64))


def test_out():
    x = random_array(np.random.default_rng(2), (5, 12), "complex64")
    whole = cuop.zeros((12, 5), "complex64")
    out = cuop.transpose(whole)
    result = fft.fft(x, out=out)
    assert result.data_ptr() == whole.data_ptr()
    check(cuop.transpose(whole), np.fft.fft(x), x.dtype)
    with pytest.raises(cuop.ExecutionError):
        fft.fft(whole, out=whole)
    with pytest.raises(cuop.ShapeError):
        fft.fft(x, 5, out=out)
    with pytest.raises(cuop.DTypeError):
        fft.fft(x.astype(np.complex128), out=out)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 1001])
def test_frequencies_and_shifts(n):
    assert np.array_equal(np.asarray(fft.fftfreq(n, 0.1)), np.fft.fftfreq(n, 0.1))
    assert np.array_equal(np.asarray(fft.rfftfreq(n, 0.3)), np.fft.rfftfreq(n, 0.3))
    x = np.arange(3.0 * n).reshape(n, 3)
    for axes in (None, 0, (0, 1), ()):
        assert np.array_equal(np.asarray(fft.fftshift(x, axes)), np.fft.fftshift(x, axes))
        assert np.array_equal(np.asarray(fft.ifftshift(x, axes)), np.fft.ifftshift(x, axes))


test_errors = each_raises(
    (
        lambda: fft.fft([1.0, 2.0], 0),
        cuop.ShapeError,
        "fft: the length along axis 0 is 0, at least 1 is needed",
    ),
    (
        lambda: fft.irfft([1.0]),
        cuop.ShapeError,
        "irfft: the length along axis 0 is 0, at least 1 is needed",
    ),
    (
        lambda: fft.rfft([1j, 2.0]),
        cuop.DTypeError,
        "rfft: the input must be real, it is complex64",
    ),
    (
        lambda: fft.fft([1.0], axis=1),
        cuop.ShapeError,
        "fft: axis 1 is out of range for a tensor of 1 dimensions",
    ),
    (lambda: fft.fftn(np.ones((2, 2)), axes=(0, -2)), cuop.ShapeError, "given twice"),
    (lambda: fft.fftn(np.ones((2, 2)), (2,), (0, 1)), cuop.ShapeError, "must have one length"),
    (lambda: fft.fft2([1.0, 2.0]), cuop.ShapeError, "fft2: 2 axes do not fit a tensor of 1"),
    (lambda: fft.rfftn(1.0), cuop.ShapeError, "at least 1 is needed"),
    (
        lambda: fft.fft([1.0], norm="both"),
        cuop.ExecutionError,
        "norm 'both' is unknown; known are backward, forward, ortho",
    ),
    (lambda: fft.dct1([1.0]), cuop.ShapeError, "dct1: the length along axis 0 is 1"),
    (lambda: fft.dst1([1j]), cuop.DTypeError, "dst1: the input must be real"),
    (lambda: fft.dct2([1j]), cuop.DTypeError, "dct2: the input must be real"),
    (lambda: fft.dct2([]), cuop.ShapeError, "dct2: the length along axis 0 is 0"),
    (
        lambda: fft.dct3([1.0], 1),
        cuop.ShapeError,
        "dct3: axis 1 is out of range for a tensor of 1 dimensions",
    ),
    (lambda: fft.fftfreq(0), cuop.ShapeError, "fftfreq: n is 0, at least 1 is needed"),
    (lambda: fft.fftfreq(4, 0.0), cuop.ExecutionError, "must not be 0"),
)


def test_info():
    is_available, description = cuop.fft_info()
    assert is_available and "fftw" in description


def placed(values, offset):
    """The array in memory whose address is `offset` bytes behind a cache line."""
    room = np.zeros(values.nbytes + 128, "u1")
    start = -room.ctypes.data % 64 + offset
    result = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    result[...] = values
    assert result.ctypes.data % 64 == offset
    return result


@pytest.mark.parametrize("offset", [4, 8, 16, 24, 48])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_arrays_that_begin_within_a_cache_line(offset, dtype):
    rng = np.random.default_rng(offset)
    if offset % np.dtype(dtype).itemsize % 8:
        pytest.skip("numbers would not lie at a multiple of their size")
    single = np.dtype(dtype) in ("f4", "c8")
    # Columns, lines in the middle and rows; several tiles, a last one that is short, and few lines.
    for shape in [(67, 83), (9, 64, 21), (5000, 3), (3, 6000), (40, 200)]:
        x = placed(random_array(rng, shape, dtype), offset)
        kinds = ["fft", "ifft", "irfft"] + (["rfft"] if x.dtype.kind == "f" else [])
        for axis in range(len(shape)):
            for kind in kinds:
                wanted = getattr(np.fft, kind)(
                    x.astype("c16" if x.dtype.kind == "c" else "f8"), axis=axis
                )
                out = placed(np.zeros(wanted.shape, result_dtype(wanted, single)), 64 - offset)
                got = getattr(fft, kind)(cuop.from_dlpack(x), axis=axis, out=cuop.from_dlpack(out))
                scale = np.abs(wanted).max() * (1e-6 if single else 1e-14)
                assert np.abs(out - wanted).max() <= 4 * scale, (shape, axis, kind)
                assert np.shares_memory(np.from_dlpack(got), out)


def result_dtype(wanted, single):
    return {"c": ("c16", "c8"), "f": ("f8", "f4")}[wanted.dtype.kind][single]
