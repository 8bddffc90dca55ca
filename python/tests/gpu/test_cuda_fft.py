"""Transforms on a GPU beside NumPy's in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop
from cuop import fft

LENGTHS = st.sampled_from([1, 2, 3, 5, 8, 13, 16, 31, 64, 97])
DTYPES = st.sampled_from(["float16", "float32", "float64", "complex64", "complex128", "int32"])
NORMS = st.sampled_from([None, "forward", "ortho"])
SETTINGS = settings(max_examples=40, deadline=None)


def noise(rng, shape, dtype):
    values = rng.standard_normal(shape) * 10
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def there(rng, array):
    """The same values on the GPU, side by side or spread out."""
    if rng.integers(2) and array.ndim:
        spread = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        spread[..., ::2] = array
        return cuop.tensor(spread, device="cuda")[..., ::2]
    return cuop.tensor(array, device="cuda")


def check(result, wanted, dtype, is_real):
    is_single = np.dtype(dtype) in (np.float16, np.float32, np.complex64)
    assert result.device == "cuda:0" and result.shape == wanted.shape
    assert result.dtype == ("float" if is_real else "complex") + str(
        (32 if is_single else 64) * (1 if is_real else 2)
    )
    scale = np.max(np.abs(wanted), initial=1e-300)
    bound = (3e-6 if is_single else 1e-13) * scale
    np.testing.assert_allclose(result.to_numpy(), wanted, rtol=0, atol=bound)


def wide(array):
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def fitting(name, dtype):
    """Transforms of real numbers take no complex ones."""
    return "float32" if name.startswith("rfft") and np.dtype(dtype).kind == "c" else dtype


@SETTINGS
@given(
    st.sampled_from(["fft", "ifft", "rfft", "irfft"]),
    st.tuples(st.integers(0, 4), LENGTHS, st.integers(1, 4)),
    st.none() | LENGTHS,
    st.integers(0, 2),
    DTYPES,
    NORMS,
    st.integers(0, 2**32),
)
def test_one_axis(name, shape, length, axis, dtype, norm, seed):
    rng = np.random.default_rng(seed)
    if shape[axis] == 0:
        return
    if length is None and name == "irfft" and shape[axis] == 1:
        length = 2
    dtype = fitting(name, dtype)
    x = noise(rng, shape, dtype)
    given_tensor = there(rng, x)
    result = getattr(fft, name)(given_tensor, length, axis, norm)
    check(result, getattr(np.fft, name)(wide(x), length, axis, norm), dtype, name == "irfft")
    np.testing.assert_array_equal(given_tensor.to_numpy(), x)


@SETTINGS
@given(
    st.sampled_from(["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]),
    st.lists(st.sampled_from([2, 3, 5, 8, 17]), min_size=2, max_size=4),
    DTYPES,
    NORMS,
    st.integers(0, 2**32),
)
def test_several_axes(name, shape, dtype, norm, seed):
    rng = np.random.default_rng(seed)
    dtype = fitting(name, dtype)
    x = noise(rng, shape, dtype)
    wanted = getattr(np.fft, name)(wide(x), norm=norm)
    given_tensor = there(rng, x)
    check(getattr(fft, name)(given_tensor, norm=norm), wanted, dtype, name.startswith("irfft"))
    np.testing.assert_array_equal(given_tensor.to_numpy(), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_sine_and_cosine_are_the_cpus(axis):
    x = noise(np.random.default_rng(1), (9, 24), "float64")
    for transform in (fft.dst1, fft.dct1):
        wanted = transform(cuop.tensor(x, device="cpu"), axis).to_numpy()
        check(transform(cuop.tensor(x, device="cuda"), axis), wanted, "float64", True)


def test_results_are_written_where_they_are_wanted():
    x = noise(np.random.default_rng(2), (6, 20), "complex128")
    wanted = np.fft.fft(x)
    spread = cuop.zeros((6, 40), dtype="complex128", device="cuda")
    fft.fft(cuop.tensor(x, device="cuda"), out=spread[:, 1::2])
    np.testing.assert_allclose(spread.to_numpy()[:, 1::2], wanted, rtol=0, atol=1e-11)
    assert not spread.to_numpy()[:, ::2].any()
