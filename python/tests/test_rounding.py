"""Numbers become float16 and bfloat16 in one rounding, whatever they come from."""

from fractions import Fraction

import numpy as np
import pytest

import cuop

#: significant bits, exponent of the smallest normal number
FORMATS = {"float16": (11, -14), "bfloat16": (8, -126)}


def nearest(number, dtype):
    """The exact number rounded to nearest even in the format, by integer arithmetic."""
    digits, smallest = FORMATS[dtype]
    exact = Fraction(number)
    if exact == 0:
        return 0.0
    exponent = smallest
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - digits + 1)
    return float(round(exact / unit) * unit)  # Python rounds ties to even


def middles(dtype, count=400):
    """Doubles at, and a last bit beside, the middle between neighbours of the format."""
    digits, smallest = FORMATS[dtype]
    rng = np.random.default_rng(17)
    top = 14 if dtype == "float16" else 126
    exponent = rng.integers(smallest - digits // 2, top, count)
    unit = 2.0 ** (np.maximum(exponent, smallest) - digits + 1)
    whole = np.floor(2.0**exponent / unit)
    middle = (whole + rng.integers(0, np.maximum(whole, 1).astype(int)) + 0.5) * unit
    beside = [np.nextafter(middle, np.inf), middle, np.nextafter(middle, 0)]
    values = np.concatenate(beside)
    return np.concatenate([values, -values])


def ways(values, dtype):
    """Every way from doubles to the dtype."""
    wide = cuop.tensor(values)
    yield "astype", wide.astype(dtype)
    yield "strided", cuop.tensor(np.repeat(values, 2))[::2].to(dtype)
    yield "list", cuop.tensor(values.tolist(), dtype)
    yield "array", cuop.tensor(values, dtype)
    yield "copy_from", cuop.zeros(values.shape, dtype).copy_from(values)
    target = cuop.zeros(values.shape, dtype)
    target[:] = wide
    yield "assignment", target
    with cuop.fused():
        fused = (wide * 1.0).to(dtype)
        used_again = fused + 0
    yield "fused", fused
    yield "used again in fused", used_again
    few = values[::29]
    yield "full", cuop.stack([cuop.full((), v, dtype) for v in few.tolist()])
    filled = cuop.zeros(few.shape, dtype)
    for i, v in enumerate(few.tolist()):
        filled[i : i + 1].fill(v)
    yield "fill", filled
    zero = cuop.zeros((1,), dtype)
    yield "scalar operand", cuop.concatenate([zero + v for v in few.tolist()])


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_way_rounds_once(dtype):
    values = middles(dtype)
    expected = np.array([nearest(v, dtype) for v in values.tolist()])
    if dtype == "float16":
        np.testing.assert_array_equal(expected, values.astype("float16").astype("float64"))
    for way, result in ways(values, dtype):
        assert str(result.dtype) == dtype
        wanted = expected if result.size == expected.size else expected[::29]
        np.testing.assert_array_equal(result.astype("float64").numpy(), wanted, err_msg=way)


def test_all_halves_and_their_middles_are_as_numpy_has_them():
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = np.append((halves[1:] + halves[:-1]) / 2, 65520.0)
    for values in (halves, middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0)):
        for signed in (values, -values):
            with np.errstate(over="ignore"):
                expected = signed.astype(np.float16).view(np.uint16)
            got = cuop.tensor(signed).astype("float16").numpy().view(np.uint16)
            np.testing.assert_array_equal(got, expected)
    special = cuop.tensor([np.nan, -np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324])
    np.testing.assert_array_equal(
        special.astype("float16").numpy(), [np.nan, np.nan, np.inf, -np.inf, np.inf, -np.inf, 0]
    )


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_round_once(source):
    info = np.iinfo(source)
    numbers = []
    for exponent in range(9, info.bits):
        for whole in (128, 129, 254, 255):
            middle = (2 * whole + 1) << (exponent - 9)
            numbers += [middle - 1, middle, middle + 1]
    numbers = [n for n in numbers if n <= info.max]
    numbers += [-n for n in numbers if info.min < 0]
    expected = [nearest(n, "bfloat16") for n in numbers]
    wide = cuop.tensor(np.array(numbers, source))
    assert wide.astype("bfloat16").astype("float64").tolist() == expected
    fulls = [float(cuop.full((), n, "bfloat16")) for n in numbers[::7]]
    assert fulls == expected[::7]


def test_sequences_round_once():
    step = 2.0**-8 + 2.0**-40  # above the middle between 1 and the next bfloat16
    assert float(cuop.linspace(1, 1 + step, 2, dtype="bfloat16")[1]) == 1 + 2.0**-7
    first = 2**60 + 2**52 + 1
    assert float(cuop.arange(first, first + 1, dtype="bfloat16")[0]) == 2.0**60 * (1 + 2.0**-7)


@pytest.mark.parametrize("dtype", FORMATS)
def test_fused_means_round_once(dtype):
    # The mean is just above the middle between 1 and its neighbour, by less than float32 holds.
    digits = FORMATS[dtype][0]
    values = np.array([1.0] * 16384)
    values[: 8192 + 1] = 1 + 2.0 ** (1 - digits)
    x = cuop.tensor(values, dtype)
    with cuop.fused():
        mean = cuop.mean(x * 1)
    assert float(mean) == nearest(Fraction(8193, 16384) * Fraction(2) ** (1 - digits) + 1, dtype)
