"""What sums and variances promise beyond closeness: exact integers, zeros, digits beside an offset."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cuop

MODES = ["plain", "compensated", "exact"]


def exact_variance(array, ddof=0):
    numbers = [Fraction(float(x)) for x in array.ravel()]
    mean = sum(numbers) / len(numbers)
    return float(sum((x - mean) ** 2 for x in numbers) / (len(numbers) - ddof))


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8, 1e15])
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (33,), (2049,), (5000,)])
def test_variances_keep_their_digits_beside_an_offset(offset, shape):
    rng = np.random.default_rng(18)
    x = rng.standard_normal(shape) + offset
    expected = exact_variance(x)
    rows = np.stack([x] * 3)
    columns = np.stack([x] * 70, axis=1)
    strided = np.repeat(x, 2)[::2]
    for got in (
        cuop.var(x),
        cuop.var(strided),
        cuop.var(rows, 1)[2],
        cuop.var(rows.T, 0)[1],
        cuop.var(columns, 0)[69],
        cuop.var(columns, (0, 1)),
    ):
        assert abs(got.item() - expected) <= 4e-15 * expected
    assert abs(cuop.std(x).item() - math.sqrt(expected)) <= 4e-15 * math.sqrt(expected)
    if len(x) > 1:
        unbiased = exact_variance(x, 1)
        assert abs(cuop.var(x, correction=1).item() - unbiased) <= 4e-15 * unbiased
    z = x + 1j * x[::-1]
    assert abs(cuop.var(z).item() - 2 * expected) <= 8e-15 * expected


def test_parts_of_a_variance_keep_its_digits():
    x = np.random.default_rng(5).standard_normal(5000) + 1e8
    reduction = cuop.PartialReduction("var", "float64")
    whole, *others = [reduction.fold(part) for part in np.array_split(x, 9)]
    for other in others:
        reduction.merge(whole, other)
    expected = exact_variance(x)
    assert abs(reduction.finish(whole, x.size).item() - expected) <= 4e-15 * expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex128"])
def test_the_variance_of_what_is_the_same_is_zero(dtype):
    for shape, axis in (((100003,), None), ((77, 1003), 0), ((77, 1003), 1), ((9, 31, 40), (0, 2))):
        x = cuop.full(shape, 0.1, dtype)
        assert not cuop.var(x, axis).to("float64").numpy().any()
        assert not cuop.std(x, axis).to("float64").numpy().any()


def test_variances_of_infinities_and_of_large_numbers():
    for odd in (np.inf, -np.inf, np.nan):
        x = np.ones((40, 50))
        x[3, 7] = odd
        assert math.isnan(cuop.var(x).item())
        assert np.isnan(cuop.var(x, 0).numpy()).tolist() == [j == 7 for j in range(50)]
    assert cuop.var(np.array([1e200, -1e200] * 30)).item() == math.inf
    assert math.isnan(cuop.var(np.ones(1), correction=1).item())


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_exact_sums_of_integers_fit_or_are_refused(dtype):
    info, wide = np.iinfo(dtype), np.iinfo("uint64" if dtype[0] == "u" else "int64")
    rng = np.random.default_rng(16)
    x = rng.integers(info.min, info.max, (37, 70), dtype, endpoint=True)
    for axis in (None, 0, 1, (0, 1)):
        true = np.sum(x.astype(object), axis=axis)
        if np.all((true >= wide.min) & (true <= wide.max)):
            assert cuop.sum(x, axis, mode="exact").tolist() == np.asarray(true).tolist()
            continue
        with pytest.raises(cuop.OverflowError) as caught:
            cuop.sum(x, axis, mode="exact")
        first = next(t for t in np.ravel(true) if not wide.min <= t <= wide.max)
        assert f"sum: the exact sum {first} does not fit dtype {wide.dtype}" in str(caught.value)
        assert f"holds {wide.min} to {wide.max}" in str(caught.value)
        wrapped = cuop.sum(x, axis).numpy()
        np.testing.assert_array_equal(wrapped, np.sum(x, axis=axis))


def test_exact_sums_reach_the_ends_of_their_dtype():
    top, bottom = 2**63 - 1, -(2**63)
    assert cuop.sum(np.array([top, 5, -5]), mode="exact").item() == top
    assert cuop.sum(np.array([bottom, -9, 9]), mode="exact").item() == bottom
    assert cuop.sum(np.array([[top, 1], [-1, 0]]), 0, mode="exact").tolist() == [top - 1, 1]
    for numbers in ([top, 1], [bottom, -1]):
        with pytest.raises(cuop.OverflowError, match=str(sum(numbers))):
            cuop.sum(np.array(numbers), mode="exact")
    assert cuop.sum(np.array([2**64 - 2, 1], "uint64"), mode="exact").item() == 2**64 - 1
    with pytest.raises(cuop.OverflowError, match=str(2**64)):
        cuop.sum(np.array([2**64 - 1, 1], "uint64"), mode="exact")
    repeated = cuop.broadcast_to(cuop.tensor([2**31 - 1], "int32"), (2**33,))
    with pytest.raises(cuop.OverflowError, match="does not fit"):
        cuop.sum(cuop.broadcast_to(cuop.tensor([2**62], "int64"), (5,)), mode="exact")
    assert cuop.sum(repeated[:1000], mode="exact").item() == 1000 * (2**31 - 1)
    assert cuop.sum(cuop.full((300,), 127, "int8"), mode="exact").item() == 300 * 127


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_exact_sums_of_integers_in_parts(dtype):
    reduction = cuop.PartialReduction("sum", dtype, mode="exact")
    x = np.arange(1000, dtype=dtype)
    parts = [reduction.fold(part) for part in (x[:7], x[7:7], x[7:])]
    for part in parts[1:]:
        reduction.merge(parts[0], part)
    assert reduction.finish(parts[0], x.size).item() == 999 * 500
    if dtype != "int32":
        large = np.full(9, np.iinfo(dtype).max, dtype)
        with pytest.raises(cuop.OverflowError, match=str(9 * np.iinfo(dtype).max)):
            reduction.finish(reduction.fold(large), 9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_sums_of_negative_zeros_are_zeros(dtype):
    def is_positive(result):
        got = np.atleast_1d(result.numpy())
        assert not got.any()
        return not np.signbit(got.real).any() and not np.signbit(got.imag).any()

    for shape, axis in (((1,), None), ((2,), None), ((5000,), None), ((3, 70), 0), ((3, 70), 1)):
        zeros = (
            np.full(shape, -0.0, dtype) if dtype[0] == "f" else np.full(shape, complex(-0.0, -0.0))
        )
        x = cuop.tensor(zeros, dtype)
        for mode in MODES:
            assert is_positive(cuop.sum(x, axis, mode=mode)), (shape, axis, mode)
            assert is_positive(cuop.mean(x, axis, mode=mode)), (shape, axis, mode)
        with cuop.fused():
            total, mean = cuop.sum(x * 1.0, axis), cuop.mean(x * 1.0, axis)
        assert is_positive(total) and is_positive(mean)
        reduction = cuop.PartialReduction("sum", dtype)
        assert is_positive(reduction.finish(reduction.fold(x), zeros.size))


@pytest.mark.parametrize("shape", [(3, 50), (7, 20001), (300007,)])
def test_fused_reductions_are_the_same_bits_but_for_float_sums(shape):
    rng = np.random.default_rng(20)
    array = rng.standard_normal(shape)
    for dtype in ("float32", "float64", "int32"):
        x = cuop.tensor((array * 1000).astype(dtype))
        with cuop.fused():
            y = x * 3 + x
            extremes, total = [cuop.max(y, -1), cuop.min(y, -1)], cuop.sum(y, -1)
        with cuop.fused():
            again = cuop.sum(x * 3 + x, -1)
        alone = x * 3 + x
        assert (y == alone).all().item()
        assert (extremes[0] == cuop.max(alone, -1)).all().item()
        assert (extremes[1] == cuop.min(alone, -1)).all().item()
        expected = cuop.sum(alone, -1).numpy()
        if dtype == "int32":
            assert total.tolist() == expected.tolist()
            continue
        eps = np.finfo(dtype).eps
        size = np.abs(alone.numpy()).astype(np.longdouble).sum(-1)
        true = alone.numpy().astype(np.longdouble).sum(-1)
        for got in (total.numpy(), again.numpy(), expected):
            assert np.all(np.abs(got - true) <= 16 * eps * size)
        np.testing.assert_array_equal(
            cuop.sum(y, -1, mode="exact").numpy(), cuop.sum(alone, -1, mode="exact").numpy()
        )
