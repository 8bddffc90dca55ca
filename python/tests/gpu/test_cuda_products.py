"""Products of integers, vectors and matrices on a GPU, beside NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIZES = st.sampled_from([1, 2, 7, 31, 64, 129])


def whole(rng, shape, dtype):
    """Numbers over the whole range, so that sums wrap."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@settings(max_examples=30, deadline=None)
@given(SIZES, SIZES, SIZES, st.integers(0, 3), st.sampled_from(WHOLE), st.booleans())
def test_integer_products_wrap_as_numpys(m, k, n, batch, dtype, is_turned):
    rng = np.random.default_rng(m * 10007 + k * 101 + n)
    a = whole(rng, (*((batch,) if batch else ()), m, k), dtype)
    b = whole(rng, (n, k) if is_turned else (k, n), dtype)
    result = cuop.matmul(
        cuop.tensor(a, device="cuda"), cuop.tensor(b, device="cuda"), trans_b=is_turned
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result.to_numpy(), a @ (b.T if is_turned else b))


@settings(max_examples=30, deadline=None)
@given(SIZES, st.sampled_from([1, 5, 64, 1000, 5001]), st.sampled_from(["float32", "complex128"]))
def test_gemv_is_numpys(m, n, dtype):
    rng = np.random.default_rng(m * 10007 + n)
    a, x = (rng.standard_normal(shape).astype(dtype) for shape in ((m, n), (n,)))
    there, vector = cuop.tensor(a, device="cuda"), cuop.tensor(x, device="cuda")
    wide = a.astype("complex128") @ x.astype("complex128")
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    bound = tolerance * (np.abs(a) @ np.abs(x)).max()
    np.testing.assert_allclose(cuop.gemv(there, vector).to_numpy(), wide, rtol=0, atol=bound)
    turned = cuop.gemv(cuop.tensor(np.ascontiguousarray(a.T), device="cuda"), vector, trans="trans")
    np.testing.assert_allclose(turned.to_numpy(), wide, rtol=0, atol=bound)


CHOICES = {
    "side": st.sampled_from(["left", "right"]),
    "uplo": st.sampled_from(["lower", "upper"]),
    "dtype": st.sampled_from(["float16", "float32", "float64", "complex64", "complex128"]),
    "is_turned": st.booleans(),
}
TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}


def matrices(rng, order, m, n, dtype):
    """A matrix with a strong diagonal, and another; complex ones where the dtype is."""
    parts = 2 if np.dtype(dtype).kind == "c" else 1
    draw = [rng.standard_normal((parts, *shape)) for shape in ((order, order), (m, n))]
    a, b = (each[0] + 1j * each[1] if parts == 2 else each[0] for each in draw)
    return (a / (4 * order) + 2 * np.eye(order)).astype(dtype), b.astype(dtype)


def triangle_of(a, uplo):
    """Its values, and the matrix with what must not be read spoilt."""
    keep = np.tri(len(a), dtype=bool) if uplo == "lower" else np.tri(len(a), dtype=bool).T
    values = np.where(keep, a, 0).astype("complex128")
    return values, np.where(keep, a, np.nan).astype(a.dtype)


def on_gpu(array, is_turned):
    """Rows behind each other, or columns."""
    if is_turned:
        return cuop.tensor(np.ascontiguousarray(array.T), device="cuda").T
    return cuop.tensor(array, device="cuda")


def expect(result, wanted, dtype):
    bound = TOLERANCES.get(dtype, 1e-13) * np.abs(wanted).max()
    np.testing.assert_allclose(result.to_numpy().astype("complex128"), wanted, rtol=0, atol=bound)


@settings(max_examples=30, deadline=None)
@given(m=SIZES, n=SIZES, beta=st.sampled_from([0, 2]), **CHOICES)
def test_symm_reads_one_triangle(m, n, beta, side, uplo, dtype, is_turned):
    rng = np.random.default_rng(m * 10007 + n)
    a, b = matrices(rng, m if side == "left" else n, m, n, dtype)
    values, spoilt = triangle_of(a, uplo)
    whole = values + values.T - np.diag(np.diag(values))
    c = np.ones((m, n), dtype) if beta else np.full((m, n), np.nan, dtype)
    out = cuop.tensor(c, device="cuda")
    there, other = on_gpu(spoilt, is_turned), on_gpu(b, not is_turned)
    cuop.symm(there, other, side=side, uplo=uplo, alpha=0.5, beta=beta, out=out)
    expect(out, 0.5 * (whole @ b if side == "left" else b @ whole) + beta, dtype)


@settings(max_examples=30, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    trans=st.sampled_from(["none", "trans", "conj_trans"]),
    diag=st.sampled_from(["unit", "non_unit"]),
    **CHOICES,
)
def test_trsm_solves(m, n, trans, diag, side, uplo, dtype, is_turned):
    rng = np.random.default_rng(m * 10007 + n)
    a, b = matrices(rng, m if side == "left" else n, m, n, dtype)
    values, spoilt = triangle_of(a, uplo)
    if diag == "unit":
        np.fill_diagonal(values, 1)
        np.fill_diagonal(spoilt, np.nan)
    x = cuop.trsm(
        on_gpu(spoilt, is_turned),
        on_gpu(b, not is_turned),
        side=side,
        uplo=uplo,
        trans=trans,
        diag=diag,
        alpha=2,
    )
    matrix = {"none": values, "trans": values.T, "conj_trans": values.conj().T}[trans]
    wide = x.to_numpy().astype("complex128")
    product = matrix @ wide if side == "left" else wide @ matrix
    bound = TOLERANCES.get(dtype, 1e-13) * np.abs(product).max()
    np.testing.assert_allclose(product, 2 * b.astype("complex128"), rtol=0, atol=4 * bound)


@pytest.mark.parametrize("dtype", ["int16", "uint64", "float16", "float32", "complex64"])
def test_vectors_are_scaled_and_added_as_on_the_cpu(dtype):
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 50, 1001).astype(dtype) for _ in range(2))
    here = [cuop.tensor(each) for each in (x, y)]
    there = [cuop.tensor(each, device="cuda") for each in (x, y)]
    for call in (lambda a, b: cuop.axpy(3, a, b), lambda a, b: cuop.scal(3, a)):
        np.testing.assert_array_equal(call(*there).to_numpy(), call(*here).to_numpy())
    assert cuop.dot(*there) == cuop.dot(*here)
    results = [cuop.zeros((), dtype=dtype, device=device) for device in ("cpu", "cuda")]
    for arguments, result in zip((here, there), results, strict=True):
        cuop.dot(*arguments, out=result)
    assert results[0].item() == results[1].item()


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "complex128"])
def test_sequences_are_made_there_with_the_cpus_bits(dtype):
    for make in (
        lambda device: cuop.arange(3, 90, 7, dtype=dtype, device=device),
        lambda device: cuop.linspace(0, 99.5, 37, dtype=dtype, device=device),
        lambda device: cuop.eye(5, m=7, k=1, dtype=dtype, device=device),
    ):
        assert make("cuda").device == "cuda:0"
        np.testing.assert_array_equal(make("cuda").to_numpy(), make("cpu").to_numpy())
