"""NumPy's functions, operators and protocols on tensors, with NumPy's arrays as the oracle."""

import operator

import numpy as np
import pytest

import cuop
from cuop import dist

ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.array([[3, -1, 2], [7, 0, 1]], np.int16),
    np.array([[1 + 2j, 0, -1j], [2, 3, 4]], np.complex64),
    np.array([[True, False, True], [True, True, True]]),
]
REDUCTIONS = ["sum", "mean", "prod", "var", "std", "max", "min", "any", "all", "argmax", "argmin"]
WITH_DTYPE = ["sum", "mean", "prod", "var", "std"]


def same(ours, expected):
    assert type(ours) is cuop.Tensor and ours.dtype == str(expected.dtype)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_numpy_are_the_tensors_own(name, array):
    if array.dtype.kind == "c" and name in ("max", "min", "argmax", "argmin"):
        pytest.skip("complex numbers have no order")
    function = getattr(np, name)
    for options in [{}, {"axis": 0}, {"axis": -1, "keepdims": True}]:
        same(function(cuop.tensor(array), **options), function(array, **options))


@pytest.mark.parametrize("name", WITH_DTYPE)
def test_a_dtype_is_that_of_the_sum_and_of_the_result(name):
    function, array = getattr(np, name), np.array([[100, 100, 3], [-5, 7, 2]], np.int8)
    for dtype in ["float32", np.float64, "complex128"]:
        same(
            function(cuop.tensor(array), dtype=dtype, axis=1), function(array, dtype=dtype, axis=1)
        )
    for dtype in ["int8", "int32", "bool"]:
        got = getattr(cuop, name)(array, dtype=dtype)
        assert got.dtype == dtype
        if name in ("sum", "prod"):
            np.testing.assert_array_equal(got.numpy(), function(array, dtype=dtype))
    out = cuop.zeros(2, "float32")
    assert function(cuop.tensor(array), dtype="float32", axis=1, out=out) is out
    np.testing.assert_allclose(out.numpy(), function(array, dtype="float32", axis=1), rtol=1e-6)
    with pytest.raises(cuop.DTypeError, match=f"{name}: the output has dtype float32, needed is"):
        getattr(cuop, name)(array, dtype="float16", axis=1, out=out)
    with pytest.raises(cuop.ShapeError, match=f"{name}: the output has shape"):
        getattr(cuop, name)(array, dtype="int8", out=out)
    with pytest.raises(cuop.DTypeError, match="complex"):
        getattr(cuop, name)([1j], dtype="float32")


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_an_initial_value_is_one_element_more(name):
    function = getattr(np, name)
    for array in [*ARRAYS[:2], np.zeros((0, 3)), np.zeros((3, 0), np.int8), np.array([np.nan, 1])]:
        for initial in [2, -3, 100]:
            for options in [{}, {"axis": 0}, {"axis": 0, "keepdims": True}]:
                same(
                    function(cuop.tensor(array), initial=initial, **options),
                    function(array, initial=initial, **options),
                )
    out = cuop.zeros((), "float64")
    assert getattr(cuop, name)(ARRAYS[0], initial=2.5, out=out) is out
    assert float(out) == function(ARRAYS[0], initial=2.5)
    with pytest.raises(cuop.OverflowError, match=f"{name}: initial: .*does not fit"):
        getattr(cuop, name)(
            np.array([], np.uint8), initial=-1 if name in ("max", "min") else 2.0**70
        )
    with pytest.raises(
        TypeError, match=f"{name}: got an unexpected .*'where'; the arguments are .*initial"
    ):
        function(cuop.tensor(ARRAYS[0]), initial=1, where=ARRAYS[0] > 1)


def test_reductions_of_numpy_of_distributed_tensors():
    array = ARRAYS[0]

    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None))
        x = dist.DistTensor.from_root(comm, array if comm.rank == 0 else None).redistribute(rows)
        for name in REDUCTIONS[:9]:
            part = getattr(np, name)(x, axis=0)
            assert type(part) is dist.DistTensor
            np.testing.assert_allclose(part.numpy(), getattr(np, name)(array, axis=0))
        for name in WITH_DTYPE:
            part = getattr(np, name)(x, axis=0, dtype="float32")
            assert part.dtype == "float32"
            np.testing.assert_allclose(part.numpy(), getattr(np, name)(array, axis=0), rtol=1e-6)
        with pytest.raises(cuop.DTypeError, match="sum: out: needed is None, given Tensor"):
            x.sum(out=cuop.zeros(()))
        with pytest.raises(
            TypeError, match="max: got an unexpected .*'initial'; the arguments are"
        ):
            np.max(x, initial=1)

    dist.run_ranks(work, 2)


BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]


def pair(name):
    """Two matrices that the operator takes."""
    dtype = "int64" if name in BITWISE else "float32"
    return np.array([[5, 2], [3, 1]], dtype), np.array([[1, 2], [3, 4]], dtype)


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITWISE, "lt", "le", "gt", "ge", "eq", "ne"])
def test_an_operator_of_an_array_and_a_tensor_is_the_tensors(name):
    apply, (left, right) = getattr(operator, name), pair(name)
    same(apply(left, cuop.tensor(right)), apply(left, right))
    same(apply(cuop.tensor(left), right), apply(left, right))
    if name != "matmul":
        same(apply(left[0, 0], cuop.tensor(right)), apply(left[0, 0], right))


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITWISE])
def test_an_array_is_changed_in_place(name):
    array, other = pair(name)
    expected = getattr(operator, name)(array, other)
    in_place = getattr(operator, "i" + name.rstrip("_"))
    assert in_place(array, cuop.tensor(other)) is array
    np.testing.assert_array_equal(array, expected)


def test_ufuncs_of_tensors_are_numpys():
    array = np.array([1.0, 4.0])
    tensor = cuop.tensor(array)
    for got in [
        np.sqrt(tensor),
        np.add(tensor, 1),
        np.add.reduce(tensor),
        np.sqrt(tensor, out=np.zeros(2)),
    ]:
        assert not isinstance(got, cuop.Tensor)
    np.testing.assert_array_equal(np.sqrt(tensor), np.sqrt(array))
    np.testing.assert_array_equal(np.sqrt(cuop.tensor([4.0], dtype="bfloat16")), [2])
    with pytest.raises(TypeError, match="__array_ufunc__"):
        np.add(array, array, out=tensor)
    with pytest.raises(TypeError, match=r"cast|Cannot"):  # by NumPy's rules, not lost
        array_of_integers = np.array([1, 2])
        array_of_integers += tensor


class Interface:
    """An array by its interface alone."""

    def __init__(self, array):
        self.kept, self.__array_interface__ = array, array.__array_interface__


class Struct:
    """An array by the C structure of its interface alone."""

    def __init__(self, array):
        self.kept, self.__array_struct__ = array, array.__array_struct__


@pytest.mark.parametrize("kind", [Interface, Struct])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex128"])
def test_an_interface_keeps_its_dtype(kind, dtype):
    array = np.array([1, 2, 3], dtype)
    assert cuop.tensor(kind(array)).dtype == dtype
    assert cuop.tensor([kind(array), kind(array)]).dtype == dtype
    np.testing.assert_array_equal(cuop.zeros(3, dtype) + kind(array), array)


class Right:
    """What knows how to multiply a tensor from the right."""

    def __rmatmul__(self, other):
        return "asked"


def test_a_product_that_is_none_of_the_tensors_is_the_others():
    x = cuop.ones((2, 2))
    assert x @ Right() == "asked"
    for wrong in [object(), None, "a"]:
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ wrong
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong @ x
    np.testing.assert_array_equal([[1, 2], [3, 4]] @ x, [[3, 3], [7, 7]])
    np.testing.assert_array_equal(x @ ((1, 2), (3, 4)), [[4, 6], [4, 6]])


def test_interfaces_and_ufuncs_that_are_none_are_refused():
    class Odd:
        __array_interface__ = 1

    with pytest.raises(cuop.DTypeError, match="array interface of Odd cannot be read"):
        cuop.exp(Odd())
    with pytest.raises(cuop.DTypeError, match="__array_ufunc__: ufunc: needed is a ufunc of NumPy"):
        cuop.ones(3).__array_ufunc__("int8", "lower", [1])
