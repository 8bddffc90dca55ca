"""Reductions against NumPy in higher precision; exact sums against math.fsum and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import laid_out
from random_arrays import INTEGERS, random_array

import cuop

SETTINGS = settings(max_examples=80, deadline=None)
EPS = {"float16": 2e-3, "float32": 3e-7, "float64": 4e-16, "complex64": 3e-7, "complex128": 4e-16}
DTYPES = ["bool", *INTEGERS, *EPS]
SIZES = st.sampled_from([0, 1, 2, 3, 7, 16, 37, 130])


def view_of(array, how):
    """The array itself or a view with other strides."""
    if how == "transposed":
        return array.T
    if how == "reversed":
        return array[::-1]
    if how == "strided":
        return array[..., ::2]
    return array


@st.composite
def problems(draw, dtypes=tuple(DTYPES)):
    """(array, axis, keepdims)"""
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = random_array(rng, shape, draw(st.sampled_from(dtypes)))
    array = view_of(array, draw(st.sampled_from(["plain", "transposed", "reversed", "strided"])))
    axes = draw(st.sets(st.integers(0, array.ndim - 1)))
    axis = draw(st.sampled_from([None, tuple(axes), max(axes, default=-1)]))
    return array, axis, draw(st.booleans())


def wide(array):
    """The array in a precision beyond its own; integers as Python's."""
    if array.dtype.kind == "c":
        return array.astype(np.clongdouble)
    return array.astype(np.longdouble) if array.dtype.kind == "f" else array


def check(ours, expected, dtype, bound):
    """Same shape and dtype; error at most `bound` (an array of magnitudes) times a few eps."""
    got = ours.to_numpy()
    assert got.dtype == dtype
    assert got.shape == np.shape(expected)
    if got.dtype.kind in "fc":
        error = np.abs(got.astype(np.clongdouble) - expected)
        assert np.all((error <= 4 * EPS[str(dtype)] * (bound + 1)) | (got == expected))
    else:
        np.testing.assert_array_equal(got, expected)


def check_choice(ours, theirs, x, axis, keepdims, dtype):
    """What is picked out is NumPy's to the bit; nothing can be picked out of nothing."""
    try:
        expected = theirs(x, axis=axis, keepdims=keepdims)
    except ValueError:
        with pytest.raises(cuop.ShapeError, match="no element"):
            ours(x, axis, keepdims)
        return
    got = ours(x, axis, keepdims).to_numpy()
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)


def reduced_count(x, axis):
    """How many elements each element of the result is made of."""
    return np.size(x) // max(1, np.size(np.sum(x, axis=axis)))


@SETTINGS
@given(problems(), st.sampled_from(["plain", "compensated", "exact"]))
def test_sum(problem, mode):
    x, axis, keepdims = problem
    dtype = np.sum(np.ones(1, x.dtype)).dtype
    if mode == "exact" and dtype.kind in "iu":
        whole = np.sum(x.astype(object), axis=axis, keepdims=keepdims)
        if not np.all((whole >= np.iinfo(dtype).min) & (whole <= np.iinfo(dtype).max)):
            with pytest.raises(cuop.OverflowError, match=r"^sum: the exact sum -?\d+ does not fit"):
                cuop.sum(x, axis, keepdims, mode=mode)
            return
    ours = cuop.sum(x, axis, keepdims, mode=mode)
    expected = np.sum(wide(x), axis=axis, keepdims=keepdims)
    bound = np.sum(np.abs(wide(x)), axis=axis, keepdims=keepdims) if x.dtype.kind in "fc" else 0
    check(ours, expected, dtype, bound)


@SETTINGS
@given(problems(), st.sampled_from(["plain", "compensated", "exact"]))
def test_mean(problem, mode):
    x, axis, keepdims = problem
    count = reduced_count(x, axis)
    ours = cuop.mean(x, axis, keepdims, mode=mode)
    if count == 0:
        assert np.all(np.isnan(ours.to_numpy()))
        return
    real = wide(x) if x.dtype.kind in "fc" else x.astype(np.longdouble)
    expected = np.mean(real, axis=axis, keepdims=keepdims)
    bound = np.mean(np.abs(real), axis=axis, keepdims=keepdims)
    check(ours, expected, np.mean(np.ones(1, x.dtype)).dtype, bound)


@SETTINGS
@given(problems([t for t in DTYPES if not t.startswith("complex")]))
def test_extremes(problem):
    x, axis, keepdims = problem
    for ours, theirs in [(cuop.max, np.max), (cuop.min, np.min)]:
        check_choice(ours, theirs, x, axis, keepdims, x.dtype)


@SETTINGS
@given(problems())
def test_any_all(problem):
    x, axis, keepdims = problem
    x = np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, x, np.zeros_like(x))
    for ours, theirs in [(cuop.any, np.any), (cuop.all, np.all)]:
        np.testing.assert_array_equal(
            ours(x, axis, keepdims).to_numpy(), theirs(x, axis=axis, keepdims=keepdims)
        )


@SETTINGS
@given(problems(["bool", "int8", "uint32", "int64", "float32", "float64", "complex128"]))
def test_prod(problem):
    x, axis, keepdims = problem
    if x.dtype.kind in "fc":
        x = np.where(np.abs(x) > 0.5, x / np.maximum(np.abs(x), 1e-3), x + 1).astype(x.dtype)
    expected = np.prod(wide(x), axis=axis, keepdims=keepdims)
    with np.errstate(all="ignore"):
        bound = np.prod(np.abs(wide(x)), axis=axis, keepdims=keepdims) * (1 + x.size)
    check(cuop.prod(x, axis, keepdims), expected, np.prod(np.ones(1, x.dtype)).dtype, bound)


@SETTINGS
@given(problems(["int16", "float16", "float32", "float64", "complex64"]), st.sampled_from([0, 1]))
def test_var_std(problem, correction):
    x, axis, keepdims = problem
    x = x + np.array(100, x.dtype)  # a mean far from zero
    count = reduced_count(x, axis)
    real = wide(x) if x.dtype.kind in "fc" else x.astype(np.longdouble)
    dtype = np.var(np.ones(1, x.dtype)).dtype
    for ours, theirs in [(cuop.var, np.var), (cuop.std, np.std)]:
        got = ours(x, axis, keepdims, correction=correction)
        assert got.to_numpy().dtype == dtype
        np.testing.assert_array_equal(ours(x, axis, keepdims, ddof=correction), got)
        if count <= correction:
            continue
        expected = theirs(real, axis=axis, ddof=correction, keepdims=keepdims)
        np.testing.assert_allclose(got.to_numpy(), expected, rtol=4e3 * EPS[str(dtype)], atol=1e-9)
        if dtype == np.float64 or dtype == np.float32:
            np.testing.assert_allclose(
                got.to_numpy(), expected, rtol=16 * EPS[str(dtype)], atol=1e-9
            )


@SETTINGS
@given(problems(["int32", "float16", "float32", "float64", "uint8", "bool"]), st.booleans())
def test_arg_extremes(problem, with_nan):
    x, axis, keepdims = problem
    if isinstance(axis, tuple):
        axis = axis[0] if axis else None
    x = (
        (x // np.array(2, x.dtype))
        if x.dtype.kind in "iu"
        else np.round(x)
        if x.dtype.kind == "f"
        else x
    )
    if with_nan and x.dtype.kind == "f" and x.size:
        x[..., -1] = np.nan
    for ours, theirs in [(cuop.argmax, np.argmax), (cuop.argmin, np.argmin)]:
        check_choice(ours, theirs, x, axis, keepdims, np.int64)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("length", [1, 31, 64, 65, 129, 5000, 200_001])
def test_extremes_of_narrow_integers(dtype, length):
    rng = np.random.default_rng(length)
    info = np.iinfo(dtype)
    line = rng.integers(info.min, info.max, length, dtype, endpoint=True)
    for x in [line, line // 3, line[::-2], np.stack([line, line[::-1]]), np.stack([line] * 5, 1)]:
        for axis in range(x.ndim):
            for name in ["max", "min", "argmax", "argmin"]:
                got = getattr(cuop, name)(cuop.asarray(x), axis=axis).to_numpy()
                wanted = getattr(np, name)(x, axis=axis)
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", [6, 5000, 200_000])
def test_the_first_nan_of_several_is_the_extreme(dtype, length):
    line = np.ones(length, dtype)
    line[[1, length // 2, -1]] = np.nan
    line[-3:-1] = [-9, 9]
    for x, axis in [(line, 0), (np.stack([line] * 3), 1), (np.stack([line] * 3, 1), 0)]:
        for find in (cuop.argmax, cuop.argmin):
            assert np.all(find(cuop.tensor(x), axis=axis).to_numpy() == 1)


@SETTINGS
@given(
    problems(["int32", "float32", "float64", "complex64"]),
    st.sampled_from([2, 1, 0, math.inf, -math.inf, 3, 0.5, -1, 6, 8, 9, 2.5]),
)
def test_norm(problem, order):
    x, axis, keepdims = problem
    if x.size == 0:
        return
    magnitude = np.abs(x.astype(np.clongdouble)).astype(np.longdouble)
    with np.errstate(divide="ignore"):
        if order == 0:
            expected = np.sum(magnitude != 0, axis=axis, keepdims=keepdims)
        elif math.isinf(order):
            pick = np.max if order > 0 else np.min
            expected = pick(magnitude, axis=axis, keepdims=keepdims)
        else:
            powers = np.sum(magnitude**order, axis=axis, keepdims=keepdims)
            expected = powers ** (np.longdouble(1) / np.longdouble(order))
    got = cuop.norm(x, order, axis, keepdims).to_numpy()
    assert got.dtype == (np.float32 if x.dtype in (np.float32, np.complex64) else np.float64)
    np.testing.assert_allclose(got, expected.astype(np.float64), rtol=64 * EPS[str(got.dtype)])


@SETTINGS
@given(problems(["bool", "int8", "uint16", "float32", "float64", "complex64"]))
def test_cumsum(problem):
    x, _, _ = problem
    for axis in range(x.ndim):
        expected = np.cumsum(wide(x), axis=axis)
        bound = np.cumsum(np.abs(wide(x)), axis=axis) * x.shape[axis] if x.dtype.kind in "fc" else 0
        check(cuop.cumsum(x, axis), expected, np.cumsum(np.ones(1, x.dtype)).dtype, bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinity_propagate(dtype):
    x = np.ones((130, 70), dtype)
    x[17, 5] = np.nan
    x[40, 6] = np.inf
    x[:2, 7] = np.inf, -np.inf
    for mode in ["plain", "compensated", "exact"]:
        for name in ["sum", "mean"]:
            with np.errstate(invalid="ignore"):
                expected = getattr(np, name)(x, axis=0)
            np.testing.assert_allclose(getattr(cuop, name)(x, 0, mode=mode).to_numpy(), expected)
        np.testing.assert_array_equal(cuop.sum(x[:, 6], mode=mode).to_numpy(), np.inf)
        assert np.isnan(cuop.sum(x, mode=mode).item())
    for name in ["max", "min"]:
        for axis in [0, 1]:
            np.testing.assert_array_equal(
                getattr(cuop, name)(x, axis), getattr(np, name)(x, axis=axis)
            )


def ill_conditioned(rng):
    """Random doubles over a random range of exponents, partly cancelling."""
    n = int(rng.integers(0, 90))
    reach = int(rng.choice([0, 3, 40, 300, 1000]))
    values = np.ldexp(rng.standard_normal(n), rng.integers(-reach, reach + 1, n))
    values = np.concatenate([values, -values[: n // 2], -values[n // 3 : n // 2]])
    return rng.permutation(values)


def true_sum(x):
    """math.fsum, also where that gives up on a partial sum that overflows."""
    try:
        return math.fsum(x)
    except OverflowError:
        total = sum(map(Fraction, x.tolist()))
        try:
            return float(total)
        except OverflowError:
            return math.copysign(math.inf, total)


def test_exact_sums_equal_fsum_on_ten_thousand_vectors_in_any_parts():
    rng = np.random.default_rng(2024)
    reduction = cuop.PartialReduction("sum", "float64", mode="exact")
    for _ in range(10_000):
        x = ill_conditioned(rng)
        expected = true_sum(x)
        assert cuop.sum(x, mode="exact").item() == expected
        cuts = np.sort(rng.integers(0, len(x) + 1, int(rng.integers(0, 7))))
        parts = [reduction.fold(part) for part in np.split(x, cuts)]
        for part in parts[1:]:
            reduction.merge(parts[0], part)
        assert reduction.finish(parts[0], len(x)).item() == expected


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "max", "min", "any", "all", "var", "std"])
def test_partial_reductions_equal_the_whole(kind):
    rng = np.random.default_rng(9)
    x = rng.integers(-3, 4, (40, 5)).astype(np.float64)
    reduction = cuop.PartialReduction(kind, x.dtype)
    states = reduction.fold(x[:13], 0)
    assert states.shape == (5, reduction.state_bytes)
    reduction.merge(states, reduction.fold(x[13:], 0))
    whole = getattr(cuop, kind)(x, 0).to_numpy()
    np.testing.assert_allclose(reduction.finish(states, 40).to_numpy(), whole, rtol=1e-14)


def test_partial_reductions_refuse_what_does_not_fit():
    with pytest.raises(cuop.ExecutionError, match="known are sum, mean"):
        cuop.PartialReduction("median", "float32")
    with pytest.raises(cuop.DTypeError, match="complex64"):
        cuop.PartialReduction("max", "complex64")
    reduction = cuop.PartialReduction("max", "float32")
    with pytest.raises(cuop.DTypeError, match="announced was float32"):
        reduction.fold(np.ones(3))
    with pytest.raises(cuop.ShapeError, match="no element"):
        reduction.finish(reduction.fold(cuop.empty(0)), 0)
    with pytest.raises(cuop.ShapeError, match="cannot be merged"):
        reduction.merge(reduction.fold(cuop.ones(3)), reduction.fold(cuop.ones((3, 2)), 0))


def test_exact_sum_of_long_vectors_equals_fsum():
    rng = np.random.default_rng(5)
    for spread in [0, 20, 100, 900]:
        x = np.ldexp(rng.standard_normal(100_003), rng.integers(-spread, spread + 1, 100_003))
        x[1::2] = -x[:-1:2][rng.permutation(50_001)]
        expected = math.fsum(x)
        assert cuop.sum(x, mode="exact").item() == expected
        assert cuop.sum(x[::-1].copy(), mode="exact").item() == expected
        assert cuop.sum(np.stack([x, x], 1)[:, 0], mode="exact").item() == expected
        np.testing.assert_array_equal(
            cuop.sum(np.stack([x, x, -x], 1), 0, mode="exact"), [expected, expected, -expected]
        )


@SETTINGS
@given(st.integers(0, 2**32), st.sampled_from(["float16", "float32", "float64"]))
def test_exact_sum_and_mean_round_once(seed, dtype):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    reach = {"float16": 5, "float32": 60, "float64": 600}[dtype]
    x = np.ldexp(rng.standard_normal(n), rng.integers(-reach, reach, n)).astype(dtype)
    total = sum(map(Fraction, x.astype(np.float64).tolist()))
    for ours, truth in [(cuop.sum, total), (cuop.mean, total / n)]:
        got = ours(x, mode="exact").to_numpy()[()]
        # Nearest: no neighbour of the result is closer to the truth.
        error = abs(Fraction(float(got)) - truth)
        for neighbour in (
            np.nextafter(got, np.array(np.inf, dtype)),
            np.nextafter(got, -np.array(np.inf, dtype)),
        ):
            if np.isfinite(neighbour):
                assert error <= abs(Fraction(float(neighbour)) - truth)


def test_exact_mean_of_large_integers():
    x = np.array([2**62 + 1, 2**62 + 2, 2**62 + 6], np.int64)
    assert cuop.mean(x, mode="exact").item() == float(2**62 + 3)
    assert cuop.mean(x.astype(np.uint64) * 2, mode="exact").item() == float(2**63 + 6)


def test_compensated_error_is_independent_of_the_count():
    rng = np.random.default_rng(8)
    for n in [10, 10_000, 1_000_000]:
        x = rng.random(n)
        x[::2] *= -1
        expected = math.fsum(x)
        assert abs(cuop.sum(x, mode="compensated").item() - expected) <= 2**-52 * abs(expected)
        columns = cuop.sum(np.stack([x] * 5, 1), 0, mode="compensated").to_numpy()
        assert np.all(np.abs(columns - expected) <= 2**-52 * abs(expected))


@SETTINGS
@given(problems(["int32", "float16", "float32", "float64", "complex64"]), st.integers(1, 3))
def test_trailing_reductions_inside_a_fused_scope(problem, count):
    x, _, keepdims = problem
    if x.size == 0:
        return
    axis = tuple(range(max(0, x.ndim - count), x.ndim))
    t = laid_out(x)
    names = ["sum", "mean"] if x.dtype.kind == "c" else ["sum", "mean", "max", "min"]
    with cuop.fused():
        fused = [getattr(cuop, name)(t + t, axis, keepdims) for name in names]
    alone = cuop.tensor((t + t).to_numpy())
    for name, got in zip(names, fused, strict=True):
        expected = getattr(cuop, name)(alone, axis, keepdims)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        # The engines add in different orders.
        tolerance = 40 * EPS.get(str(expected.to_numpy().dtype), 0)
        np.testing.assert_allclose(
            got.to_numpy(), expected.to_numpy(), rtol=tolerance, atol=tolerance * np.sqrt(x.size)
        )


def test_methods_out_and_empty_axis():
    x = cuop.tensor(np.arange(12.0).reshape(3, 4))
    assert x.sum().item() == 66
    np.testing.assert_array_equal(x.max(axis=1), [3, 7, 11])
    np.testing.assert_array_equal(x.argmin(axis=0, keepdims=True), [[0, 0, 0, 0]])
    assert x.std(ddof=1).item() == pytest.approx(np.std(np.arange(12.0), ddof=1))
    out = cuop.empty(4, "float64")
    assert x.sum(axis=0, out=out) is not None
    np.testing.assert_array_equal(out, [12, 15, 18, 21])
    np.testing.assert_array_equal(x.sum(axis=()), x)


def test_errors_are_typed_and_worded():
    x = cuop.ones((2, 3))
    with pytest.raises(cuop.ShapeError, match="sum: axis 2 is out of range for a tensor of 2 dim"):
        cuop.sum(x, 2)
    with pytest.raises(cuop.ShapeError, match="given twice"):
        cuop.sum(x, (0, -2))
    with pytest.raises(cuop.ShapeError, match="the output has shape"):
        cuop.sum(x, 0, out=cuop.empty(2))
    with pytest.raises(cuop.DTypeError, match="the output has dtype"):
        cuop.sum(x, 0, out=cuop.empty(3, "float64"))
    with pytest.raises(cuop.ExecutionError, match="plain, compensated, exact"):
        cuop.sum(x, mode="kahan")
    with pytest.raises(cuop.ExecutionError, match="shares memory"):
        cuop.sum(x, 0, out=x[0])
    with pytest.raises(cuop.DTypeError, match="max: dtype complex64"):
        cuop.max(cuop.ones(2, "complex64"))
    with pytest.raises(cuop.ExecutionError, match="NaN"):
        cuop.norm(x, math.nan)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "length", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 37, 64, 100, 257, 5000]
)
def test_sums_of_complex_rows(dtype, length):
    """Of all lengths of what is added side by side, wherever the rows lie; parts do not mix."""
    draw = np.random.default_rng(length)
    x = (draw.normal(size=(13, length)) + 1e3j * draw.normal(size=(13, length))).astype(dtype)
    given = cuop.tensor(x)
    views = {
        "whole": (given, x),
        "behind the first": (given[:, 1:], x[:, 1:]),
        "every second": (given[:, ::2], x[:, ::2]),
        "from the end": (given[:, ::-1], x[:, ::-1]),
        "every second row": (given[::2], x[::2]),
    }
    for name, (ours, theirs) in views.items():
        wide = theirs.astype(np.clongdouble)
        for got, expected in ((ours.sum(axis=1), wide.sum(axis=1)), (ours.sum(), wide.sum())):
            for part in (np.real, np.imag):
                size = np.abs(part(wide)).sum()
                error = np.abs(part(got.numpy()) - part(expected))
                assert np.all(error <= 4 * EPS[dtype] * size), name
        if theirs.shape[1] > 0:
            got, expected = ours.mean(axis=1).numpy(), wide.mean(axis=1)
            assert np.all(np.abs(got - expected) <= 4 * EPS[dtype] * np.abs(wide).sum(axis=1)), name


@pytest.mark.parametrize("n", [3, 17, 31, 100, 1000, 5000])
def test_variance_beside_a_first_number_that_is_far(n):
    """The center is the mean of a few first numbers: where these are far from the mean it is taken anew."""
    x = np.random.default_rng(n).standard_normal((40, n))
    x[:, 0] += 1e4
    expected = np.var(x.astype(np.longdouble), axis=1).astype(np.float64)
    for got in (cuop.var(x, 1), cuop.var(np.ascontiguousarray(x.T), 0), cuop.std(x, 1) ** 2):
        np.testing.assert_allclose(got.to_numpy(), expected, rtol=32 * EPS["float64"])
