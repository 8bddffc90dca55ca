"""searchsorted beside NumPy's, and the named results of unique_all and its kin."""

import numpy as np
import pytest

import cuop

REAL = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
]  # fmt: skip


def numbers(dtype, count, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.startswith("float"):
        values = (rng.integers(-40, 40, count) / 4).astype(dtype)
        values[::11] = np.nan
        values[::13], values[::17] = np.inf, -np.inf
        values[::19] = -0.0
        return values
    limits = np.iinfo(dtype)
    values = rng.integers(max(limits.min, -50), 50, count).astype(dtype)
    values[::7], values[::9] = limits.min, limits.max
    return values


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("count", [0, 1, 2, 3000])
def test_places_are_numpys(dtype, side, count):
    elements = np.sort(numbers(dtype, count, 1), kind="stable")
    for values in [numbers(dtype, 600, 2).reshape(20, 30), numbers(dtype, 1, 3)[0], elements[:0]]:
        wanted = np.searchsorted(elements, values, side)
        got = cuop.searchsorted(cuop.tensor(elements), cuop.tensor(values), side=side)
        assert got.dtype == "int64" and got.shape == wanted.shape
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_strided_mixed_and_unsorted_operands():
    elements = np.arange(40, dtype="float32")
    values = np.array([[3, 41, -1], [7, 8, 9]], "int16")
    got = cuop.searchsorted(cuop.tensor(elements)[::-2][::-1], cuop.tensor(values).T)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(elements[::-2][::-1], values.T))
    # between an integer and a float nothing is cut off
    assert cuop.searchsorted([1, 2, 3], [2.5], side="right").tolist() == [2]
    assert cuop.searchsorted(cuop.tensor([1.5, 2.5]), 2).item() == 1

    shuffled = np.random.default_rng(5).permutation(100)
    order = np.argsort(shuffled)
    got = cuop.searchsorted(shuffled, [10, 99, 100], sorter=order)
    assert got.tolist() == [10, 99, 100]
    assert cuop.searchsorted(shuffled, 10, sorter=order - 100).item() == 10

    out = cuop.zeros((3, 2), "int64").T
    given = cuop.searchsorted(cuop.tensor(elements), cuop.tensor(values), out=out)
    assert given is out
    np.testing.assert_array_equal(out.numpy(), np.searchsorted(elements, values))


@pytest.mark.parametrize("call, error, words", [
    (lambda: cuop.searchsorted([[1.0]], [1.0]), cuop.ShapeError, "searchsorted: x1 has shape"),
    (lambda: cuop.searchsorted(1.0, [1.0]), cuop.ShapeError, "it needs 1 dimension"),
    (lambda: cuop.searchsorted([1.0], [1j]), cuop.DTypeError, "searchsorted: dtype complex64"),
    (lambda: cuop.searchsorted([1.0], [1.0], side="up"), cuop.ExecutionError, "left and right"),
    (lambda: cuop.searchsorted([1.0], [1.0], sorter=[0, 0]), cuop.ShapeError, "sorter has shape"),
    (lambda: cuop.searchsorted([1.0], [1.0], sorter=[1]), cuop.IndexError, "searchsorted: 1 is out of range"),
    (lambda: cuop.searchsorted([1.0], [1.0], sorter=[0.5]), cuop.DTypeError, "sorter must be of integers"),
])  # fmt: skip
def test_errors_of_searchsorted(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_several_results_have_names():
    x = cuop.tensor([[3, 1, 3], [2, 1, 3]])
    found = cuop.unique_all(x)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert [part.tolist() for part in found] == [
        [1, 2, 3], [1, 3, 0], [[2, 0, 2], [1, 0, 2]], [2, 1, 3],
    ]  # fmt: skip
    assert cuop.unique_counts(x).counts.tolist() == [2, 1, 3]
    values, inverse = cuop.unique_inverse(x)
    assert cuop.all(values[inverse] == x)
    assert cuop.unique_values(x).tolist() == [1, 2, 3]
    with pytest.raises(cuop.DTypeError, match="unique_all: x: dtype complex64"):
        cuop.unique_all([1j])


def test_sorting_is_stable_whether_asked_or_not():
    x = cuop.tensor([2, 1, 2, 1])
    for stable in [True, False]:
        assert cuop.argsort(x, stable=stable).tolist() == [1, 3, 0, 2]
        assert cuop.sort(x, stable=stable).tolist() == [1, 1, 2, 2]
    assert x.argsort(descending=True).tolist() == [0, 2, 1, 3]
