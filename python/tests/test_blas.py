"""The BLAS operations against NumPy and SciPy in higher precision."""

import pathlib

import numpy as np
import pytest
import scipy.linalg
from fresh_process import output_of
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from raised_errors import zeros as z
from random_arrays import INTEGERS, random_array, rounded

import cuop

SETTINGS = settings(max_examples=60, deadline=None)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
HALVES = {"float16": 2e-3, "bfloat16": 1.6e-2}
INEXACT_DTYPES = st.sampled_from([*TOLERANCE, *HALVES])
INTEGER_DTYPES = st.sampled_from(INTEGERS)  # of the whole range, so that products wrap
LENGTHS = st.sampled_from([0, 1, 2, 7, 31, 64, 1000, 4099, 70001])
ORDERS = st.sampled_from([0, 1, 2, 5, 17, 40])
KINDS = st.sampled_from(["plain", "transposed", "strided", "reversed"])
SEEDS = st.integers(0, 2**32 - 1)


def wide(array):
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def layout(array, kind, dtype=None):
    """A tensor with the array's values under other strides; its memory is writable."""
    dtype = dtype or str(array.dtype)
    wanted = cuop.tensor(array, dtype)
    if kind == "transposed":
        return cuop.tensor(array.T, dtype).T
    if kind == "strided":
        base = cuop.zeros(tuple(2 * n for n in array.shape), dtype=dtype)
        view = base[tuple(slice(None, None, 2) for _ in array.shape)]
        view[...] = wanted
        return view
    return wanted[::-1].clone()[::-1] if kind == "reversed" else wanted


def close(got, expected, dtype, scale=1.0):
    tolerance = {**TOLERANCE, **HALVES}[dtype]
    got = got.to("float32").to_numpy() if dtype == "bfloat16" else got.to_numpy()
    assert got.shape == expected.shape
    assert np.all(np.abs(got - expected) <= tolerance * (scale + np.abs(expected)))


@SETTINGS
@given(n=LENGTHS, dtype=INEXACT_DTYPES, kinds=st.tuples(KINDS, KINDS, KINDS), seed=SEEDS)
def test_axpy_and_scal(n, dtype, kinds, seed):
    rng = np.random.default_rng(seed)
    alpha = 0.75 - (0.5j if dtype.startswith("complex") else 0)
    x, y = random_array(rng, n, dtype), random_array(rng, n, dtype)
    tx, ty = layout(x, kinds[0], dtype), layout(y, kinds[1], dtype)
    out = layout(np.zeros_like(x), kinds[2], dtype)
    expected = alpha * wide(x) + wide(y)
    assert cuop.axpy(alpha, tx, ty, out=out).shape == (n,)
    close(out, expected, dtype)
    cuop.axpy(alpha, tx, ty, out=ty)
    close(ty, expected, dtype)
    close(cuop.scal(alpha, tx), alpha * wide(x), dtype)
    cuop.scal(alpha, tx, out=tx)
    close(tx, alpha * wide(x), dtype)


@SETTINGS
@given(n=LENGTHS, dtype=INEXACT_DTYPES, kinds=st.tuples(KINDS, KINDS), seed=SEEDS)
def test_dot(n, dtype, kinds, seed):
    rng = np.random.default_rng(seed)
    x, y = random_array(rng, n, dtype), random_array(rng, n, dtype)
    tx, ty = layout(x, kinds[0], dtype), layout(y, kinds[1], dtype)
    for conjugate in (False, True):
        got = cuop.dot(tx, ty, conjugate=conjugate)
        assert isinstance(got, complex if dtype.startswith("complex") else float)
        expected = np.vdot(wide(x), wide(y)) if conjugate else np.dot(wide(x), wide(y))
        # Every dtype accumulates in double.
        assert abs(got - expected) <= 1e-13 * (1 + np.abs(wide(x)) @ np.abs(wide(y)))


def python_integers(array):
    """Python's integers do not wrap: what is beyond the dtype is cut by `wrapped`, once."""
    return array.astype(object)


def wrapped(values, dtype):
    bits = np.iinfo(dtype).bits
    low = np.array([int(v) % 2**bits for v in np.ravel(values)], f"uint{bits}")
    return low.view(dtype).reshape(np.shape(values))


@SETTINGS
@given(n=LENGTHS, dtype=INTEGER_DTYPES, kinds=st.tuples(KINDS, KINDS, KINDS), seed=SEEDS)
def test_integer_vectors_wrap(n, dtype, kinds, seed):
    n = min(n, 4099)
    rng = np.random.default_rng(seed)
    x, y = random_array(rng, n, dtype), random_array(rng, n, dtype)
    alpha = int(random_array(rng, (), dtype))
    tx, ty = layout(x, kinds[0]), layout(y, kinds[1])
    out = layout(np.zeros_like(x), kinds[2])
    product = alpha * python_integers(x)
    cuop.axpy(alpha, tx, ty, out=out)
    np.testing.assert_array_equal(out.to_numpy(), wrapped(product + python_integers(y), dtype))
    got = cuop.scal(alpha, tx)
    assert str(got.dtype).endswith(dtype)
    np.testing.assert_array_equal(got.to_numpy(), wrapped(product, dtype))
    for conjugate in (False, True):
        total = cuop.dot(tx, ty, conjugate=conjugate)
        assert type(total) is int
        assert total == wrapped(np.sum(python_integers(x) * python_integers(y)), dtype)


def test_dot_of_mixed_integers_is_computed_in_the_wider_dtype():
    x, y = np.full(9, 127, np.int8), np.full(9, 255, np.uint8)
    assert cuop.dot(cuop.tensor(x), cuop.tensor(y)) == 9 * 127 * 255 - 2**16 * 4
    assert cuop.dot(cuop.tensor(x), cuop.tensor(x)) == (9 * 127 * 127 + 128) % 256 - 128
    assert cuop.dot(cuop.tensor(x).to("int64"), cuop.tensor(y)) == 9 * 127 * 255
    large = cuop.tensor(np.array([2**63], np.uint64))
    assert cuop.dot(large, cuop.ones((1,), dtype="uint64")) == 2**63


@SETTINGS
@given(
    m=ORDERS,
    n=ORDERS,
    dtype=INTEGER_DTYPES,
    trans=st.sampled_from(["none", "trans", "conj_trans"]),
    side=st.sampled_from(["left", "right"]),
    uplo=st.sampled_from(["lower", "upper"]),
    kinds=st.tuples(KINDS, KINDS, KINDS),
    beta=st.sampled_from([0, 1, 5]),
    seed=SEEDS,
)
def test_integer_matrices_wrap(m, n, dtype, trans, side, uplo, kinds, beta, seed):
    rng = np.random.default_rng(seed)
    a = random_array(rng, (m, n), dtype)
    op = a if trans == "none" else a.T
    x, y = random_array(rng, op.shape[1], dtype), random_array(rng, op.shape[0], dtype)
    ta, tx, out = (layout(t, k) for t, k in zip((a, x, y), kinds, strict=True))
    cuop.gemv(ta, tx, trans=trans, alpha=3, beta=beta, out=out)
    wide_op, wide_x, wide_y = (python_integers(t) for t in (op, x, y))
    expected = wrapped(3 * (wide_op * wide_x).sum(axis=1) + beta * wide_y, dtype)
    np.testing.assert_array_equal(out.to_numpy(), expected)

    order = m if side == "left" else n
    s, b, c = (random_array(rng, shape, dtype) for shape in ((order, order), (m, n), (m, n)))
    triangle = np.tril(s) if uplo == "lower" else np.triu(s)
    full = triangle + triangle.T - np.diag(np.diag(s))
    ts, tb, out = (layout(t, k) for t, k in zip((s, b, c), kinds, strict=True))
    cuop.symm(ts, tb, side=side, uplo=uplo, alpha=3, beta=beta, out=out)
    left, right = (python_integers(t) for t in ((full, b) if side == "left" else (b, full)))
    expected = wrapped(3 * left.dot(right) + beta * python_integers(c), dtype)
    np.testing.assert_array_equal(out.to_numpy(), expected)


def test_axpy_takes_any_shape():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got = cuop.axpy(2, cuop.tensor(x), cuop.ones((2, 3, 4)))
    np.testing.assert_array_equal(got.to_numpy(), 2 * x + 1)


@SETTINGS
@given(
    m=ORDERS,
    n=ORDERS,
    dtype=INEXACT_DTYPES,
    trans=st.sampled_from(["none", "trans", "conj_trans"]),
    kinds=st.tuples(KINDS, KINDS, KINDS),
    beta=st.sampled_from([0, 1, -0.5]),
    seed=SEEDS,
)
def test_gemv(m, n, dtype, trans, kinds, beta, seed):
    rng = np.random.default_rng(seed)
    a = random_array(rng, (m, n), dtype)
    op = {"none": a, "trans": a.T, "conj_trans": a.conj().T}[trans]
    x, y = random_array(rng, op.shape[1], dtype), random_array(rng, op.shape[0], dtype)
    if beta == 0:
        y[:] = np.nan
    ta, tx, out = (layout(t, k, dtype) for t, k in zip((a, x, y), kinds, strict=True))
    cuop.gemv(ta, tx, trans=trans, alpha=1.5, beta=beta, out=out)
    expected = 1.5 * (wide(op) @ wide(x)) + (beta * wide(y) if beta else 0)
    close(out, expected, dtype, scale=n + m)


def given_with_square(**arguments):
    """Beside a matrix [m, n] a square one on one side, of which one triangle is read."""
    return given(
        m=ORDERS,
        n=ORDERS,
        dtype=INEXACT_DTYPES,
        side=st.sampled_from(["left", "right"]),
        uplo=st.sampled_from(["lower", "upper"]),
        seed=SEEDS,
        **arguments,
    )


@SETTINGS
@given_with_square(kinds=st.tuples(KINDS, KINDS, KINDS), beta=st.sampled_from([0, 2]))
def test_symm(m, n, dtype, side, uplo, kinds, beta, seed):
    rng = np.random.default_rng(seed)
    order = m if side == "left" else n
    a, b, c = (random_array(rng, s, dtype) for s in ((order, order), (m, n), (m, n)))
    triangle = np.tril(a) if uplo == "lower" else np.triu(a)
    full = triangle + triangle.T - np.diag(np.diag(a))
    # The other triangle must not be read.
    poisoned = np.where(triangle != 0, a, np.nan).astype(a.dtype)
    if beta == 0:
        c[:] = np.nan
    ta, tb, out = (layout(t, k, dtype) for t, k in zip((poisoned, b, c), kinds, strict=True))
    cuop.symm(ta, tb, side=side, uplo=uplo, beta=beta, out=out)
    left, right = (full, b) if side == "left" else (b, full)
    expected = wide(left) @ wide(right) + (beta * wide(c) if beta else 0)
    close(out, expected, dtype, scale=order)


@SETTINGS
@given_with_square(
    trans=st.sampled_from(["none", "trans", "conj_trans"]),
    diag=st.sampled_from(["unit", "non_unit"]),
    kinds=st.tuples(KINDS, KINDS),
    in_place=st.booleans(),
)
def test_trsm(m, n, dtype, side, uplo, trans, diag, kinds, in_place, seed):
    rng = np.random.default_rng(seed)
    order = m if side == "left" else n
    a = random_array(rng, (order, order), dtype) / max(order, 1)
    a = rounded(a + np.diag(np.full(order, 2)), dtype)
    b = random_array(rng, (m, n), dtype)
    triangle = np.tril(a) if uplo == "lower" else np.triu(a)
    poisoned = np.where(triangle != 0, a, np.nan).astype(a.dtype)
    matrix = wide(triangle)
    if diag == "unit":
        np.fill_diagonal(matrix, 1)
        np.fill_diagonal(poisoned, np.nan)
    op = {"none": matrix, "trans": matrix.T, "conj_trans": matrix.conj().T}[trans]
    tb = layout(b, kinds[1], dtype)
    x = cuop.trsm(
        layout(poisoned, kinds[0], dtype),
        tb,
        side=side,
        uplo=uplo,
        trans=trans,
        diag=diag,
        alpha=2,
        out=tb if in_place else None,
    )
    if 0 in (m, n):
        assert x.shape == (m, n)
        return
    if side == "left":
        expected = scipy.linalg.solve(op, 2 * wide(b))
    else:
        expected = scipy.linalg.solve(op.T, 2 * wide(b).T).T
    close(x, expected, dtype, scale=np.abs(expected).max())
    if in_place:
        np.testing.assert_array_equal(tb.to("complex128").to_numpy(), x.to("complex128").to_numpy())


def test_documented_integers_and_enums():
    a, b = cuop.eye(2), cuop.ones((2, 3))
    for side in (0, "left", cuop.Side.LEFT):
        assert cuop.trsm(a, b, side=side, uplo=cuop.Uplo.LOWER, trans=0, diag=0).shape == (2, 3)


def test_blas_info_names_the_library():
    info = cuop.blas_info()
    assert info["available"] == bool(info["path"])
    assert info["integer_bits"] in ((32, 64) if info["available"] else (0,))


test_errors = each_raises(
    (lambda: cuop.scal(1, z(2, dtype="bool")), cuop.DTypeError, "scal: dtype bool"),
    (lambda: cuop.scal(1.5, z(2, dtype="int8")), cuop.ExecutionError, "needs a whole number"),
    (lambda: cuop.scal(128, z(2, dtype="int8")), cuop.DTypeError, "alpha is 128.* dtype int8"),
    (lambda: cuop.axpy(-1, *[z(2, dtype="uint8")] * 2), cuop.DTypeError, "does not fit"),
    (lambda: cuop.scal(1j, z(2)), cuop.ExecutionError, "alpha is complex"),
    (lambda: cuop.axpy(1, z(2), z(3)), cuop.ShapeError, "axpy: x has shape"),
    (lambda: cuop.dot(z(2), z(3)), cuop.ShapeError, "dot: x has 2 elements, y has 3"),
    (lambda: cuop.dot(z(2, 2), z(2)), cuop.ShapeError, "it needs 1 dimension"),
    (lambda: cuop.gemv(z(2, 3), z(2)), cuop.ShapeError, "gemv: x has 2 elements.*needs 3"),
    (lambda: cuop.gemv(z(2), z(2)), cuop.ShapeError, "a has shape.*2 dimensions"),
    (lambda: cuop.gemv(*[z(2, 2, dtype="bool")] * 2), cuop.DTypeError, "gemv: dtype bool"),
    (
        lambda: cuop.trsm(*[z(2, 2, dtype="int32")] * 2),
        cuop.DTypeError,
        "trsm: dtype int32 .*supported are float16, bfloat16, float32",
    ),
    (lambda: cuop.gemv(z(2, 2), z(2), beta=1), cuop.ExecutionError, "pass out"),
    (lambda: cuop.symm(z(2, 3), z(3, 2)), cuop.ShapeError, "must be square"),
    (lambda: cuop.symm(z(2, 2), z(3, 2)), cuop.ShapeError, r"must be \[3, 3\]"),
    (lambda: cuop.symm(z(2, 2), z(3, 2), side="middle"), cuop.ExecutionError, "middle"),
    (lambda: cuop.trsm(z(2, 2), z(3, 3), side="right"), cuop.ShapeError, "on the right"),
    (lambda: cuop.trsm(z(2, 2), z(2, 3), out=z(3, 2)), cuop.ShapeError, "output has shape"),
    are_patterns=True,
)


def test_outputs_may_not_overlap_partly():
    t, base = z(10), z(11)
    x, y = base[:10], base[1:]
    with pytest.raises(cuop.ExecutionError, match="shares memory with x"):
        cuop.axpy(1, x, t, out=y)
    a = z(3, 3)
    with pytest.raises(cuop.ExecutionError, match="shares memory with a"):
        cuop.trsm(a, z(3, 3), out=a)


def run_with_library(path, code):
    """A fresh interpreter with another BLAS library; answers what it printed."""
    return output_of(code, CUOP_BLAS_LIBRARY=str(path), CUOP_DEVICE="cpu")


def test_without_a_library_products_say_what_to_install():
    code = """
import cuop
a = cuop.ones((2, 2))
print((a.to("int32") @ a.to("int32")).to_numpy().sum(), cuop.blas_info()["available"])
try:
    a @ a
except cuop.DeviceError as error:
    print(error)
"""
    lines = run_with_library("/nowhere/libblas.so", code).splitlines()
    assert lines[0] == "8 False"
    assert "install OpenBLAS" in lines[1]
    assert "/nowhere/libblas.so" in lines[1]


NUMPY_BLAS = sorted(pathlib.Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*"))


@pytest.mark.skipif(not NUMPY_BLAS, reason="this NumPy brings no OpenBLAS")
def test_the_library_inside_numpy_serves_too():
    code = """
import numpy as np, cuop
for dtype in ("float32", "complex128"):
    a, b = np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(3, 4).astype(dtype)
    assert np.array_equal((cuop.tensor(a) @ cuop.tensor(b)).to_numpy(), a @ b)
    x = np.ones(3, dtype)
    assert np.array_equal(cuop.gemv(a, x).to_numpy(), a @ x)
print(cuop.blas_info()["path"], cuop.blas_info()["integer_bits"])
"""
    path, bits = run_with_library(NUMPY_BLAS[0], code).split()
    assert pathlib.Path(path).name == NUMPY_BLAS[0].name
    assert bits == ("64" if "64_" in path else "32")


def test_gemm_is_the_product_of_two_matrices():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) * (1 + 2j)
    np.testing.assert_allclose(np.asarray(cuop.gemm(a, b)), a @ b)
    out = cuop.ones((4, 2), "complex128")
    result = cuop.gemm(b, a, trans_a="conj_trans", trans_b=True, alpha=2, beta=1j, out=out)
    assert result is out
    np.testing.assert_allclose(np.asarray(out), 2 * b.conj().T @ a.T + 1j)
    with pytest.raises(cuop.ShapeError, match="gemm: b has shape .*; it needs 2 dimensions"):
        cuop.gemm(a, [1.0])
    with pytest.raises(cuop.ShapeError, match="gemm: a of shape"):
        cuop.gemm(a, a)


@pytest.mark.parametrize("dtype", [*TOLERANCE, *HALVES])
def test_what_is_taken_times_nothing_is_not_read(dtype):
    """On every device, in every dtype: an alpha of 0 and no inner size leave beta times what was there."""
    nan = cuop.full((3, 3), float("nan")).to(dtype)
    products = {
        "matmul": lambda x, **options: cuop.matmul(x, nan, **options),
        "gemm": lambda x, **options: cuop.gemm(x, nan, **options),
        "symm": lambda x, **options: cuop.symm(x, nan, **options),
        "gemv": lambda x, **options: cuop.gemv(x, nan[0], **options),
        "vector": lambda x, **options: cuop.matmul(x, nan[0], **options),
    }
    for name, product in products.items():
        shape = (3,) if name in ("gemv", "vector") else (3, 3)
        assert cuop.all(product(nan, alpha=0) == 0), name
        out = cuop.ones(shape, dtype=dtype)
        assert cuop.all(product(nan, alpha=0, beta=2, out=out) == 2), name
    assert cuop.all(cuop.trsm(nan, nan, alpha=0) == 0)
    empty, out = cuop.ones((3, 0), dtype=dtype), cuop.ones((3,), dtype=dtype)
    assert cuop.all(cuop.gemv(empty, cuop.ones((0,), dtype=dtype), beta=2, out=out) == 2)
