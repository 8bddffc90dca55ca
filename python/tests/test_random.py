"""Random tensors: distributions on fixed seeds, reproducibility, ranges and errors."""

import numpy as np
import pytest
import scipy.stats
from in_threads import in_threads
from raised_errors import each_raises

import cuop

COUNT = 200_000
# A fixed seed makes these tests deterministic; the bounds are those of a chance below 1e-4.
KS_BOUND = 2.2 / np.sqrt(COUNT)


def values(tensor):
    return np.asarray(tensor.to("float64"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_normal_distribution(dtype):
    cuop.manual_seed(20240601)
    x = values(cuop.random((COUNT,), dtype, mean=1.5, std=2.0))
    z = (x - 1.5) / 2.0
    assert abs(z.mean()) < 4 / np.sqrt(COUNT)
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * COUNT)
    assert abs(scipy.stats.skew(z)) < 4 * np.sqrt(6 / COUNT)
    assert abs(scipy.stats.kurtosis(z)) < 4 * np.sqrt(24 / COUNT)
    rounding = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 0)
    assert scipy.stats.kstest(z, "norm").statistic < KS_BOUND + rounding
    assert 4 < np.abs(z).max() < 7


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normals_are_independent(dtype):
    cuop.manual_seed(7)
    x = values(cuop.random((COUNT,), dtype))
    for lag in (1, 2, 3, 4, 8, 64, 256):
        assert abs(np.mean(x[lag:] * x[:-lag])) < 4.5 / np.sqrt(COUNT)
        assert abs(np.mean(x[lag:] ** 2 * x[:-lag] ** 2) - 1) < 4.5 * np.sqrt(8 / COUNT)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, -1), (-1, 2), (-2, 0)])
def test_uniform_distribution(dtype, low, high):
    cuop.manual_seed(99)
    x = values(cuop.uniform((COUNT,), low, high, dtype))
    assert x.min() >= low
    assert x.max() < high
    steps = {"float16": 2**-9, "bfloat16": 2**-6}.get(dtype, 0)
    statistic = scipy.stats.kstest(x, "uniform", (low, high - low)).statistic
    assert statistic < KS_BOUND + steps


def test_uniform_never_reaches_the_end():
    cuop.manual_seed(1)
    for low, high in [(1.0, 1.0009765625), (2**-14, 1.0), (1000.0, 1001.0)]:
        for dtype in ("float16", "float32", "float64"):
            x = values(cuop.uniform((50_000,), low, high, dtype))
            assert low <= x.min()
            assert x.max() < high


@pytest.mark.parametrize(
    ("dtype", "high"),
    [("float16", 2.0**15), ("bfloat16", 2.0**127), ("float32", 2.0**127), ("float64", 2.0**1023)],
)
def test_uniform_over_more_than_the_dtype_holds(dtype, high):
    cuop.manual_seed(11)
    x = values(cuop.uniform((COUNT,), -high, high, dtype)) / high
    assert -1 <= x.min() < -0.99
    assert 0.99 < x.max() < 1
    statistic = scipy.stats.kstest(x, "uniform", (-1, 2)).statistic
    assert statistic < KS_BOUND + {"float16": 2**-9, "bfloat16": 2**-6}.get(dtype, 0)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_randint(dtype):
    cuop.manual_seed(5)
    info = np.iinfo(dtype)
    low, high = max(-50, info.min), 60
    x = np.asarray(cuop.randint(low, high, COUNT, dtype))
    assert x.dtype == dtype
    counts = np.bincount(x.astype(np.int64) - low, minlength=high - low)
    assert counts.size == high - low
    assert scipy.stats.chisquare(counts).pvalue > 1e-4
    top = min(int(info.max), 2**63 - 2)
    wide = np.asarray(cuop.randint(int(info.min), top + 1, COUNT, dtype)).astype(np.float64)
    span = float(top) - float(info.min) + 1
    fraction = (wide - float(info.min) + 0.5) / span
    assert scipy.stats.kstest(fraction, "uniform").statistic < KS_BOUND + 1 / span


@pytest.mark.parametrize(("dtype", "bits"), [("int64", 63), ("uint64", 64)])
def test_randint_reaches_the_greatest_number(dtype, bits):
    cuop.manual_seed(6)
    top = 2**bits - 1
    x = np.asarray(cuop.randint(top - 2, top + 1, 3000, dtype))
    numbers, counts = np.unique(x, return_counts=True)
    assert numbers.tolist() == [top - 2, top - 1, top]
    assert scipy.stats.chisquare(counts).pvalue > 1e-4
    low = int(np.iinfo(dtype).min)
    whole = np.asarray(cuop.randint(low, top + 1, COUNT, dtype)).astype(np.float64)
    fraction = (whole - low) / 2.0**64
    assert scipy.stats.kstest(fraction, "uniform").statistic < KS_BOUND
    assert np.array_equal(
        cuop.randint(np.uint8(3), np.int16(9), 5, generator=cuop.Generator(1)),
        cuop.randint(3, 9, 5, generator=cuop.Generator(1)),
    )


def test_permutation():
    cuop.manual_seed(3)
    x = np.asarray(cuop.permutation(1000))
    assert np.array_equal(np.sort(x), np.arange(1000))
    assert abs(scipy.stats.spearmanr(x, np.arange(1000)).statistic) < 0.13
    orders = [tuple(np.asarray(cuop.permutation(3)).tolist()) for _ in range(3000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert scipy.stats.chisquare(counts).pvalue > 1e-4
    assert cuop.permutation(0).shape == (0,)


def test_seeds():
    cuop.manual_seed(8)
    first, second = values(cuop.random(9)), values(cuop.random(9))
    assert not np.array_equal(first, second)
    cuop.manual_seed(8)
    assert np.array_equal(values(cuop.random(9)), first)
    assert np.array_equal(values(cuop.random(9)), second)
    generator = cuop.Generator(8)
    assert np.array_equal(values(cuop.random(9, generator=generator)), first)
    assert (generator.seed, generator.counter) == (8, 3)
    assert cuop.default_generator().seed == 8


def test_known_words_give_known_numbers():
    # Seed 0, counter 0: the words 6627e8d5 e169c58d bc57ac4c 9b00dbd8 of Random123.
    words = np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.float64)
    uniforms = values(cuop.uniform(4, generator=cuop.Generator(0)))
    assert np.array_equal(uniforms, np.floor(words / 256) * 2.0**-24)
    u, turn = (words[::2] + 0.5) / 2**32, words[1::2] / 2**32
    radius = np.sqrt(-2 * np.log(u))
    wanted = np.ravel([radius * np.cos(2 * np.pi * turn), radius * np.sin(2 * np.pi * turn)], "F")
    assert np.allclose(values(cuop.random(4, generator=cuop.Generator(0))), wanted, rtol=1e-6)


def test_threads_draw_disjoint_numbers():
    generator = cuop.Generator(4)
    drawn = in_threads(*[lambda: values(cuop.random(1000, "float64", generator=generator))] * 8)
    together = np.sort(np.concatenate(drawn))
    whole = np.sort(values(cuop.random(8000, "float64", generator=cuop.Generator(4))))
    assert np.array_equal(together, whole)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5, 7)])
def test_shapes(shape):
    assert cuop.random(shape).shape == shape
    assert cuop.uniform(shape).shape == shape
    assert cuop.randint(0, 9, shape).shape == shape


def test_out():
    out = cuop.zeros((4, 3))
    assert cuop.random((4, 3), out=out).data_ptr() == out.data_ptr()
    assert (values(out) != 0).all()
    with pytest.raises(cuop.ShapeError):
        cuop.random((3, 4), out=out)
    with pytest.raises(cuop.DTypeError):
        cuop.random((4, 3), "float64", out=out)


test_errors = each_raises(
    (lambda: cuop.random(3, "int32"), cuop.DTypeError, "random: dtype int32 is not supported"),
    (lambda: cuop.random(3, std=-1), cuop.ExecutionError, "random: std is -1, it must be 0 or more"),
    (lambda: cuop.random(3, std=float("nan")), cuop.ExecutionError, "std is nan"),
    (lambda: cuop.random((2, -1)), cuop.ShapeError, "-1"),
    (lambda: cuop.uniform(3, 1, 1), cuop.ExecutionError, "finite range with low < high"),
    (lambda: cuop.uniform(3, 0, float("inf")), cuop.ExecutionError, "finite range"),
    (lambda: cuop.uniform(3, 1, 1.0001, "bfloat16"), cuop.ExecutionError,
     "no finite range in bfloat16"),
    (lambda: cuop.uniform(3, 0, 1e30, "float16"), cuop.ExecutionError, "no finite range"),
    (lambda: cuop.randint(5, 5, 3), cuop.ExecutionError, "randint: the range [5, 5) is empty"),
    (lambda: cuop.randint(0, 300, 3, "uint8"), cuop.ExecutionError,
     "randint: uint8 does not hold the range [0, 300)"),
    (lambda: cuop.randint(-1, 3, 3, "uint64"), cuop.ExecutionError, "does not hold"),
    (lambda: cuop.randint(0, 2**63 + 1, 3), cuop.ExecutionError,
     "randint: int64 does not hold the range [0, 9223372036854775809)"),
    (lambda: cuop.randint(-(2**70), 2**64, 3, "uint64"), cuop.ExecutionError, "does not hold"),
    (lambda: cuop.randint(0, 1.5, 3), cuop.DTypeError,
     "randint: high: needed is an integer, given 1.5"),
    (lambda: cuop.randint(0, 3, 3, "float32"), cuop.DTypeError, "float32 is not supported"),
    (lambda: cuop.permutation(-1), cuop.ShapeError, "permutation: n is -1"),
)  # fmt: skip
