"""Numbers and lists of them become tensors exactly; NumPy is the oracle where it defines a value."""

import array
import itertools

import numpy as np
import pytest

import cuop

pytestmark = pytest.mark.cpu

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
WIDE = [0, 1, -1, 255, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63]
WIDE += [2**63 + 1, 2**64 - 1, 2**64, -(2**63) - 1]


def same(tensor, expected):
    assert tensor.dtype == str(expected.dtype) and tensor.shape == expected.shape
    assert tensor.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_pairs_of_integers_take_the_dtype_exactly(dtype):
    for pair in itertools.product(WIDE, WIDE):
        for given in (list(pair), [[pair[0]], [pair[1]]], pair):
            try:
                expected = np.array(given, dtype=dtype)
            except OverflowError:
                with pytest.raises(cuop.OverflowError, match=r"tensor: .*-?\d+ .* to \d+"):
                    cuop.tensor(given, dtype=dtype)
            else:
                same(cuop.tensor(given, dtype=dtype), expected)


def test_the_issue():
    same(cuop.tensor([0, 2**63 + 1], dtype="uint64"), np.array([0, 2**63 + 1], np.uint64))
    same(cuop.tensor([0, 2**64 - 1]), np.array([0, 2**64 - 1], np.uint64))
    same(cuop.tensor([0.5, 2**53 + 1], dtype="int64"), np.array([0, 2**53 + 1], np.int64))


def test_mixtures_with_an_integer_dtype():
    big = 2**53 + 1
    for given in (
        [True, big],
        [0.5, big, -0.75],
        [[1.5, big], [False, 7]],
        [np.int64(big), 0.5],
        [np.float32(2.5), big],
        [np.int8(-3), big, 1.0],
        [np.array(big), 2.5],
        (np.array([1, big]), [0.5, 1.0]),
    ):
        same(cuop.tensor(given, dtype="int64"), np.array(given, dtype="int64"))
    unsigned = [np.uint64(2**63 + 1), np.int64(2), True, 2**64 - 1]
    same(cuop.tensor(unsigned, dtype="uint64"), np.array(unsigned, dtype="uint64"))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e300, 2.0**64, 300.5e10])
def test_floats_that_no_integer_holds(dtype, value):
    fits = np.isfinite(value) and np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max
    for given in ([value], [0, value], [[value, 2**53 + 1]], value):
        if fits and "int64" in dtype:
            same(cuop.tensor(given, dtype=dtype), np.array(given, dtype=dtype))
        else:
            with pytest.raises(
                cuop.OverflowError, match=f"does not fit dtype {dtype}, which holds"
            ):
                cuop.tensor(given, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_huge_integers_as_floats(dtype):
    for given in ([2**70, 1], [2**70, 0.5], [-(2**100)], [True, 2**64], [2**63, 0.5]):
        wide = "complex128" if "complex" in dtype else "float64"
        with np.errstate(over="ignore"):
            same(cuop.tensor(given, dtype=dtype), np.array(given, dtype=wide).astype(dtype))
    with pytest.raises(cuop.OverflowError, match="too large"):
        cuop.tensor([10**400, 0.5], dtype=dtype)


def test_integers_beyond_64_bits_are_told():
    with pytest.raises(cuop.OverflowError, match=r"18446744073709551616 is beyond 64 bits"):
        cuop.tensor([2**64])
    with pytest.raises(cuop.OverflowError, match=r"an integer of 1329 bits is beyond 64 bits"):
        cuop.tensor(10**400)
    with pytest.raises(cuop.OverflowError, match="-1 does not fit dtype uint64"):
        cuop.tensor([-1, 2**63])  # no integer dtype holds both; floats must be asked for
    assert cuop.tensor([-1, 2**63], dtype="float64").tolist() == [-1.0, 2.0**63]


def test_what_is_no_number():
    for given in ([None, 2**70], ["1", 2**70], [object()], ["a"], None):
        with pytest.raises(cuop.DTypeError):
            cuop.tensor(given)
    with pytest.raises(cuop.DTypeError, match="complex"):
        cuop.tensor([1j, 2**53 + 1], dtype="int64")
    with pytest.raises(cuop.ShapeError, match="no regular shape"):
        cuop.tensor([[1, 2**64], [1]])


OWN = {np.float16: "float16", np.float32: "float32", np.float64: "float64"}


@pytest.mark.parametrize("kind", OWN)
def test_numpy_scalars_keep_their_dtype_also_in_lists(kind):
    own = OWN[kind]
    assert cuop.tensor(kind(0.5)).dtype == own == cuop.tensor([kind(0.5)]).dtype
    assert cuop.tensor([[kind(0.5)], [0.25]]).dtype == own  # Python's floats follow
    assert cuop.tensor([kind(0.5), 1, True]).dtype == own
    assert cuop.tensor([np.full(2, 0.5, kind), [1, 2]]).dtype == own
    widest = np.result_type(kind, np.float32)
    assert cuop.tensor([kind(0.5), np.float32(1)]).dtype == str(widest)
    assert cuop.tensor([cuop.full((), 0.5, dtype=own), 0.5]).dtype == own


def test_python_numbers_have_the_default_dtypes():
    assert cuop.tensor(np.float64(0.1)).item() == cuop.tensor([np.float64(0.1)])[0].item() == 0.1
    for given, dtype in [
        ([0.1], "float32"),
        ([0.1, 1], "float32"),
        ([1j], "complex64"),
        ([1j, 0.5], "complex64"),
        ([np.complex128(1j)], "complex128"),
        ([np.float64(1), 1j], "complex128"),
        ([np.float32(1), 1j], "complex64"),
        ([np.int64(1), 0.5], "float32"),
        ([1, 2], "int64"),
        ([True], "bool"),
        ([np.int8(1)], "int8"),
        ([], "float32"),
        ([[], []], "float32"),
        ([array.array("d", [1.0])], "float64"),
        (array.array("d", [1.0]), "float64"),
        ([2.0**60, 0.5], "float32"),
        ([2**63], "uint64"),
        ([0, 2**63], "uint64"),
    ]:
        assert cuop.tensor(given).dtype == dtype, given


def test_other_ways_in_are_exact_too():
    big = 2**63 + 1
    x = cuop.zeros((2, 2), dtype="uint64")
    x[0] = [0, big]
    x[1, 1] = big
    x[1, :1] = [[big]]
    same(x, np.array([[0, big], [big, big]], np.uint64))
    x.copy_from([[big, 0], [1, 2**64 - 1]])
    same(x, np.array([[big, 0], [1, 2**64 - 1]], np.uint64))
    assert (x == big).tolist() == [[True, False], [False, False]]
    assert (x == [[big, 0], [1, 2**64 - 1]]).all().item()
    assert (x > big - 1).tolist() == [[True, False], [False, True]]
    assert cuop.full((2,), big).tolist() == [big, big] and cuop.full((), big).dtype == "uint64"
    assert cuop.zeros(2, dtype="uint64").fill(2**64 - 1).tolist() == [2**64 - 1] * 2
    signed = cuop.tensor([2**53, -(2**53)])
    assert (signed + (2**40 + 1)).tolist() == [2**53 + 2**40 + 1, -(2**53) + 2**40 + 1]
    assert (signed == 2**53 + 1).tolist() == [False, False]
    assert (signed == big).tolist() == [False, False]
    assert (signed < big).tolist() == [True, True]
    signed[0] = 2**53 + 1
    assert signed.tolist() == [2**53 + 1, -(2**53)]
    for call in (
        lambda: signed.fill(big),
        lambda: signed.__setitem__(0, big),
        lambda: signed.__setitem__(slice(None), [0, big]),
        lambda: signed.copy_from([big, 0]),
        lambda: cuop.full((2,), 2**64),
        lambda: cuop.full((2,), big, dtype="int64"),
        lambda: x.fill(-1),
        lambda: x.__setitem__(0, [2**64, 0]),
    ):
        with pytest.raises(cuop.OverflowError, match=r"\d+"):
            call()
    operator = cuop.CopyDouble()
    out = cuop.zeros(2, dtype="float64")
    assert operator.forward([2**53, np.float64(0.1)], out).tolist() == [2.0**53, 0.1]


LONG = 2**18 + 5  # entries beyond which a list is taken part by part


@pytest.mark.parametrize(
    ("last", "dtype"),
    [(2, "int64"), (2**63, "uint64"), (-(2**63), "int64"), (1.5, "float32"), (1j, "complex64"),
     (np.float64(0.1), "float64")],
)  # fmt: skip
def test_parts_of_a_long_list_share_a_dtype(last, dtype):
    for first in (1, True):
        x = cuop.tensor([first] * LONG + [last])
        assert x.dtype == dtype
        assert x.shape == (LONG + 1,)
        assert x[:-1].numpy().min() == x[:-1].numpy().max() == 1
        assert x[-1].item() == np.asarray(last, dtype)


def test_long_lists_of_lists():
    rows = np.arange(2 * LONG).reshape(2, LONG)
    for values in (rows, rows.T, rows.reshape(2, 1, LONG), rows.reshape(-1)):
        entries = values.tolist()
        x = cuop.tensor(entries)
        assert x.dtype == "int64"
        np.testing.assert_array_equal(x.numpy(), values)
        assert x.tolist() == entries
        assert cuop.tensor(tuple(entries), dtype="float32").dtype == "float32"
    assert cuop.ones((LONG, 0)).tolist() == [[]] * LONG


def test_long_lists_that_are_not_regular():
    itself = [[0] * LONG]
    itself.append(itself)
    words = [0] * LONG + ["x"]
    for entries in ([[0] * LONG, [0] * (LONG - 1)], [[0] * LONG, 0], [0] * LONG + [[0]], itself):
        with pytest.raises(cuop.ShapeError, match="has no regular shape"):
            cuop.tensor(entries)
    with pytest.raises(cuop.DTypeError):
        cuop.tensor(words)


def test_bfloat16_goes_to_lists_and_comes_from_them():
    halves = cuop.tensor([0.5, -1.5], dtype="bfloat16")
    assert halves.tolist() == [0.5, -1.5]
    for entries, dtype in (
        ([halves[0], halves[1]], "bfloat16"),
        ([halves, halves], "bfloat16"),
        ([halves[0], 2.0], "bfloat16"),
        ((halves[0], 2), "bfloat16"),
        ([[halves[0]], [np.float32(2)]], "float32"),
        ([halves[0], np.float16(2)], "float32"),
        ([halves[0], 1j], "complex64"),
    ):
        x = cuop.tensor(entries)
        assert x.dtype == dtype
        assert x.reshape(-1)[0].item() == 0.5
    assert cuop.tensor([halves[0], 2.0], dtype="int32").tolist() == [0, 2]
    np.testing.assert_array_equal(np.asarray(halves, dtype="float64"), [0.5, -1.5])
    with pytest.raises(cuop.ShapeError, match="no regular shape"):
        cuop.tensor([halves, halves[0]])


@pytest.mark.parametrize(
    "dtype", ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
)
def test_numbers_keep_the_dtype_that_they_have(dtype):
    number = np.dtype(dtype).type(1)
    for given in (number, np.array(number), cuop.tensor(number)):
        x = cuop.full((2,), given)
        assert x.dtype == dtype and x.tolist() == [number.item()] * 2
        assert cuop.full((2,), given, "float64" if dtype[0] != "c" else dtype).tolist() == [1, 1]
        if dtype == "bool" or dtype.startswith("complex"):
            continue
        counted = dtype if dtype.startswith("float") else "int64"
        for count in (cuop.arange(given), cuop.arange(0, given), cuop.arange(0, 1, given)):
            assert count.dtype == counted and count.tolist() == [0]
    assert cuop.full((), cuop.tensor(0.1, dtype="bfloat16")).dtype == "bfloat16"
    assert cuop.full((), 0.1).dtype == "float32" and cuop.full((), 1).dtype == "int64"
    assert cuop.arange(np.uint8(3), 0, -1).tolist() == [3, 2, 1]
    assert cuop.arange(0, np.float32(1), np.float64(0.5)).dtype == "float64"
    assert cuop.arange(np.uint64(2**63), np.uint64(2**63 + 1)).dtype == "uint64"
    with pytest.raises(cuop.DTypeError, match="arange: start: list is not a number"):
        cuop.arange([1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, RuntimeError])
def test_what_a_sequence_raises_is_raised(error):
    class Rows:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise error

    with pytest.raises(error):
        cuop.tensor(Rows())
