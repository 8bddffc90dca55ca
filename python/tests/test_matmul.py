"""matmul and its relatives against NumPy in higher precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from raised_errors import zeros as z
from random_arrays import INTEGERS, random_array

import cuop

SETTINGS = settings(max_examples=60, deadline=None)
INEXACT = {
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "float32": 3e-6,
    "float64": 1e-14,
    "complex64": 3e-6,
    "complex128": 1e-14,
}
SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 17, 31, 64, 101])


def as_tensor(array, dtype):
    return cuop.tensor(array).to("bfloat16") if dtype == "bfloat16" else cuop.tensor(array)


def to_numpy(t):
    return t.to("float32").to_numpy() if str(t.dtype).endswith("bfloat16") else t.to_numpy()


def check(result, a, b, dtype, reference):
    """Within the dtype's error of sum |a||b|, the natural scale of a product's rounding."""
    got = to_numpy(result)
    assert got.shape == reference(a, b).shape
    if dtype not in INEXACT:
        np.testing.assert_array_equal(got, reference(a, b))
        return
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    exact = reference(a.astype(wide), b.astype(wide))
    scale = reference(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    assert np.all(np.abs(got - exact) <= INEXACT[dtype] * (scale + 1e-3))


def strided(array):
    """A tensor over every second element of a larger one."""
    base = cuop.zeros(tuple(2 * n for n in array.shape), str(array.dtype))
    view = base[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def variant(array, dtype, kind):
    """The same values under other strides."""
    if kind == "transposed":
        return cuop.transpose(as_tensor(np.ascontiguousarray(array.T), dtype))
    if kind == "strided" and dtype != "bfloat16":
        return strided(array)
    return as_tensor(array, dtype)


@SETTINGS
@given(
    m=SIZES,
    k=SIZES,
    n=SIZES,
    dtype=st.sampled_from(["bool", *INTEGERS, *INEXACT]),
    kinds=st.tuples(*[st.sampled_from(["plain", "transposed", "strided"])] * 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_two_matrices(m, k, n, dtype, kinds, seed):
    rng = np.random.default_rng(seed)
    a, b = random_array(rng, (m, k), dtype), random_array(rng, (k, n), dtype)
    x, y = variant(a, dtype, kinds[0]), variant(b, dtype, kinds[1])
    check(cuop.matmul(x, y), a, b, dtype, np.matmul)


@SETTINGS
@given(
    shapes=st.sampled_from(
        [
            ((3,), (3,)),
            ((4, 3), (3,)),
            ((3,), (3, 5)),
            ((2, 4, 3), (3,)),
            ((3,), (2, 3, 5)),
            ((6, 4, 3), (3, 5)),
            ((4, 3), (6, 3, 5)),
            ((2, 1, 4, 3), (7, 3, 5)),
            ((0, 4, 3), (3, 5)),
            ((2, 4, 0), (2, 0, 5)),
            ((5, 1, 1), (1, 1, 6)),
            ((40, 9, 9), (40, 9, 9)),
        ]
    ),
    dtype=st.sampled_from(["bool", "int16", "uint64", *INEXACT]),
    seed=st.integers(0, 2**32 - 1),
)
def test_vectors_and_batches(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (random_array(rng, shape, dtype) for shape in shapes)
    check(as_tensor(a, dtype) @ as_tensor(b, dtype), a, b, dtype, np.matmul)


def test_coefficients_beyond_int64():
    a = cuop.tensor(np.arange(1, 7, dtype=np.uint64).reshape(2, 3))
    top, c = 2**64 - 1, np.full((2, 2), 5, np.uint64)
    product = np.asarray(a) @ np.asarray(a).T
    wanted = -product - c  # top is -1 modulo 2^64
    square = cuop.tensor(product)
    for call in [
        lambda out: cuop.matmul(a, a, trans_b=True, alpha=top, beta=top, out=out),
        lambda out: cuop.gemm(a, a, trans_b="trans", alpha=top, beta=top, out=out),
        lambda out: cuop.symm(square, cuop.eye(2, "uint64"), alpha=top, beta=top, out=out),
    ]:
        np.testing.assert_array_equal(call(cuop.tensor(c)).to_numpy(), wanted)
    got = cuop.gemv(a, np.ones(3, np.uint64), alpha=top, beta=top, out=cuop.tensor(c[0]))
    np.testing.assert_array_equal(got.to_numpy(), -np.asarray(a).sum(axis=1) - c[0])


@SETTINGS
@given(
    flags=st.tuples(st.booleans(), st.booleans()),
    dtype=st.sampled_from(["int32", *INEXACT]),
    alpha=st.sampled_from([0, 1, -2, 3]),
    beta=st.sampled_from([0, 1, -3]),
    kind=st.sampled_from(["plain", "transposed", "strided"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_transposes_and_coefficients(flags, dtype, alpha, beta, kind, seed):
    rng = np.random.default_rng(seed)
    a = random_array(rng, (7, 5) if flags[0] else (5, 7), dtype)
    b = random_array(rng, (6, 7) if flags[1] else (7, 6), dtype)
    c = random_array(rng, (5, 6), dtype)
    out = variant(c, dtype, kind)
    left, right = (a.T if flags[0] else a), (b.T if flags[1] else b)
    result = cuop.matmul(
        as_tensor(a, dtype),
        as_tensor(b, dtype),
        trans_a=flags[0],
        trans_b=flags[1],
        alpha=alpha,
        beta=beta,
        out=out,
    )
    assert np.array_equal(to_numpy(result), to_numpy(out))
    if dtype == "int32":
        expected = np.int32(alpha) * (left @ right) + np.int32(beta) * c
        np.testing.assert_array_equal(to_numpy(out), expected)
        return
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    expected = alpha * (left.astype(wide) @ right.astype(wide)) + beta * c.astype(wide)
    scale = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(c) + 1e-3
    assert np.all(np.abs(to_numpy(out) - expected) <= 2 * INEXACT[dtype] * scale)


@pytest.mark.parametrize(
    "pair",
    [
        ("int8", "float32"),
        ("float16", "bfloat16"),
        ("int64", "uint8"),
        ("float32", "complex128"),
        ("bool", "int16"),
    ],
)
def test_dtypes_promote(pair):
    a, b = cuop.ones((2, 3), dtype=pair[0]), cuop.ones((3, 2), dtype=pair[1])
    result = a @ b
    assert np.all(to_numpy(result) == 3)
    assert result.dtype == (b @ a).dtype


@SETTINGS
@given(
    m=SIZES,
    n=SIZES,
    k=SIZES,
    trans_a=st.booleans(),
    trans_b=st.booleans(),
    dtype=st.sampled_from(["float16", "bfloat16"]),
    seed=st.integers(0, 999),
)
def test_short_operands_with_a_float32_result(m, n, k, trans_a, trans_b, dtype, seed):
    rng = np.random.default_rng(seed)
    shapes = (m, k), (k, n)
    a, b = (cuop.tensor(rng.uniform(-1, 1, shape)).to(dtype) for shape in shapes)
    wide = [x.to("float64").to_numpy() for x in (a, b)]
    given = [x.T if turned else x for x, turned in ((a, trans_a), (b, trans_b))]
    kwargs = {"trans_a": trans_a, "trans_b": trans_b, "dtype": "float32"}
    result = cuop.matmul(*given, **kwargs)
    out = cuop.full((m, n), float("nan"))
    assert cuop.matmul(*given, **kwargs, out=out) is out
    for each in (result, out):
        assert each.dtype == cuop.float32
        error = abs(each.to_numpy() - wide[0] @ wide[1])
        # Each of the k additions rounds once; products of two short numbers are exact in float32.
        assert np.all(error <= max(k, 1) * 2.0**-24 * (abs(wide[0]) @ abs(wide[1])))


def test_dtypes_of_results_are_checked():
    half = cuop.ones((2, 2), dtype="float16")
    for call in (cuop.matmul, cuop.batch_matmul):
        x = half if call is cuop.matmul else half.reshape((1, 2, 2))
        assert call(x, x, dtype="float16").dtype == cuop.float16
        with pytest.raises(cuop.errors.DTypeError, match="is float16 or float32"):
            call(x, x, dtype="float64")
    with pytest.raises(cuop.errors.DTypeError, match="that of float32 and float16 is float32"):
        cuop.matmul(cuop.ones((2, 2)), half, dtype="float16")
    with pytest.raises(cuop.errors.DTypeError, match="the output has dtype float16"):
        cuop.matmul(half, half, dtype="float32", out=cuop.ones((2, 2), dtype="float16"))


@pytest.mark.parametrize("dtype", ["float16", "int32", "float32", "float64", "complex64"])
def test_rows_and_columns_that_are_repeated(dtype):
    # What is broadcast along the axes of the matrices themselves, not of a batch.
    def forms(shape, seed):
        whole = np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)
        for axes in ((), (-2,), (-1,), (-2, -1), tuple(range(-len(shape), 0))):
            part = whole
            for axis in axes:
                part = part.take([0], axis)
            once = cuop.tensor(np.ascontiguousarray(part))
            yield np.broadcast_to(part, shape), cuop.broadcast_to(once, shape)

    for batch in ((), (2,)):
        for a, x in forms((*batch, 5, 7), 1):
            for b, y in forms((*batch, 7, 6), 2):
                np.testing.assert_array_equal(cuop.matmul(x, y).to_numpy(), a @ b)
                turned = cuop.matmul(y, x, trans_a=True, trans_b=True).to_numpy()
                np.testing.assert_array_equal(turned, (a @ b).swapaxes(-1, -2))
    for a, x in forms((5, 7), 3):
        for b, y in forms((5, 7), 4):
            dots = cuop.vecdot(x, y).to_numpy()
            np.testing.assert_array_equal(dots, (a.conj() * b).sum(-1).astype(dtype))


def test_nan_and_infinity_spread():
    a = np.ones((4, 4), np.float32)
    a[1, 2], a[2, 0] = np.nan, np.inf
    for dtype in ("float32", "float16", "bfloat16"):
        got = to_numpy(cuop.tensor(a).to(dtype) @ cuop.ones((4, 4), dtype=dtype))
        np.testing.assert_array_equal(got, a @ np.ones((4, 4), np.float32))


@SETTINGS
@given(n=SIZES, m=SIZES, dtype=st.sampled_from(["uint8", *INEXACT]), seed=st.integers(0, 999))
def test_outer(n, m, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = random_array(rng, n, dtype), random_array(rng, m, dtype)
    check(cuop.outer(as_tensor(a, dtype), as_tensor(b, dtype)), a, b, dtype, np.outer)


@SETTINGS
@given(
    shapes=st.sampled_from([((5,), (5,)), ((4, 5), (5,)), ((3, 1, 6), (2, 6)), ((2, 0), (2, 0))]),
    dtype=st.sampled_from(["int16", *INEXACT]),
    seed=st.integers(0, 999),
)
def test_vecdot(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (random_array(rng, shape, dtype) for shape in shapes)
    check(cuop.vecdot(as_tensor(a, dtype), as_tensor(b, dtype)), a, b, dtype, np.vecdot)
    swapped = cuop.vecdot(
        cuop.moveaxis(as_tensor(a, dtype), -1, 0), cuop.moveaxis(as_tensor(b, dtype), -1, 0), axis=0
    )
    if len(shapes[0]) == len(shapes[1]):
        check(swapped, a, b, dtype, np.vecdot)


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 2], [1, 0]), ([-1], [0]), ([], [])])
def test_tensordot(axes):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((3, 4, 5)), rng.standard_normal((5, 3, 2))
    if axes == 2:
        a = rng.standard_normal((2, 5, 3))
    expected = np.tensordot(a, b, axes)
    np.testing.assert_allclose(cuop.tensordot(a, b, axes).to_numpy(), expected, atol=1e-13)
    out = cuop.zeros(expected.T.shape, dtype="float64").T if expected.ndim else None
    if out is not None:
        cuop.tensordot(a, b, axes, out=out)
        np.testing.assert_allclose(out.to_numpy(), expected, atol=1e-13)


def test_array_likes_and_operators():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = cuop.tensor(a)
    np.testing.assert_array_equal((t @ a.T).to_numpy(), a @ a.T)
    np.testing.assert_array_equal(
        cuop.matmul([[1, 2], [3, 4]], [[1, 0], [0, 1]]).to_numpy(), [[1, 2], [3, 4]]
    )


test_errors = each_raises(
    (lambda: z(2, 3) @ z(2, 3), cuop.ShapeError, r"rows of 3.*columns of 2"),
    (lambda: cuop.matmul(1.0, z(2)), cuop.ShapeError, "a is a scalar"),
    (
        lambda: cuop.matmul(z(2), z(2), trans_a="trans"),
        cuop.ShapeError,
        "trans_a was given for a vector",
    ),
    (lambda: z(2, 1, 3) @ z(5, 3, 1), cuop.ShapeError, "do not broadcast"),
    (lambda: cuop.matmul(z(2, 2), z(2, 2), out=z(3, 2)), cuop.ShapeError, "output has shape"),
    (
        lambda: cuop.matmul(z(2, 2), z(2, 2), out=z(2, 2, dtype="float64")),
        cuop.DTypeError,
        "float64",
    ),
    (lambda: cuop.matmul(z(2, 2), z(2, 2), beta=1), cuop.ExecutionError, "pass out"),
    (lambda: cuop.matmul(z(2, 2), z(2, 2), alpha=1j), cuop.ExecutionError, "alpha is complex"),
    (
        lambda: cuop.matmul(*[z(2, 2).to("int8")] * 2, alpha=300),
        cuop.DTypeError,
        "matmul: alpha is 300, which does not fit dtype int8",
    ),
    (lambda: cuop.batch_matmul(z(2, 2), z(2, 2)), cuop.ShapeError, "at least 3"),
    (lambda: cuop.batch_matmul(z(1, 2, 2), z(3, 2, 2)), cuop.ShapeError, "equal leading axes"),
    (lambda: cuop.outer(z(2, 2), z(2)), cuop.ShapeError, "outer: a has shape"),
    (lambda: cuop.outer(z(2), z(2, 2)), cuop.ShapeError, "outer: b has shape"),
    (lambda: cuop.vecdot(z(2), z(3)), cuop.ShapeError, "vecdot: axis -1 has 2"),
    (lambda: cuop.vecdot(z(2), z(2), axis=3), cuop.ShapeError, "out of range"),
    (lambda: cuop.tensordot(z(2, 3), z(2, 3), 1), cuop.ShapeError, "axis 1 of a has 3"),
    (lambda: cuop.tensordot(z(2, 2), z(2, 2), ([0], [0, 1])), cuop.ShapeError, "paired"),
    (lambda: cuop.tensordot(z(2, 2), z(2, 2), ([0, 0], [0, 1])), cuop.ShapeError, "twice"),
    are_patterns=True,
)


def test_output_may_not_share_memory_with_an_input():
    t = z(4, 4)
    with pytest.raises(cuop.ExecutionError, match="shares memory with a"):
        cuop.matmul(t, z(4, 4), out=t)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "complex128"])
@pytest.mark.parametrize("matmul", ["matmul", "batch_matmul"])
def test_transposes_are_bools_names_or_members(matmul, dtype):
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-9, 9, (2, *shape)).astype(dtype) for shape in [(5, 3), (4, 5)])
    if np.iscomplexobj(a):
        a, b = a + 1j * a[:, ::-1], b - 2j * b[:, ::-1]
    ways = {"plain": [True, 1, "trans", "T", cuop.Trans.TRANS]}
    ways["conjugate"] = [2, "conj_trans", "c", cuop.Trans.CONJ_TRANS]
    for kind, values in ways.items():
        op = np.conj if kind == "conjugate" else np.asarray
        expected = op(a.swapaxes(1, 2)) @ op(b.swapaxes(1, 2))
        for value in values:
            result = getattr(cuop, matmul)(a, b, trans_a=value, trans_b=value)
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)
    with pytest.raises(cuop.ExecutionError, match=f"{matmul}: trans_b: 'no' is unknown; known"):
        getattr(cuop, matmul)(a, b, trans_b="no")
