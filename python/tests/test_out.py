"""`out=`: every function that has it fills that tensor and returns the very object."""

import re

import numpy as np
import pytest

import cuop
from cuop import fft

RNG = np.random.default_rng(7)
V, M = RNG.random(3), RNG.random((3, 3))
B = RNG.random((2, 3, 3))
MASK = np.array([True, False, True])
REAL_GRID = RNG.random((5, 5))


def images(spatial):
    return RNG.random((2, 2) + (4,) * spatial)


CALLS = {
    "argsort": (V,), "sort": (V,), "axpy": (2, V, V), "scal": (2, V), "copy": (M,), "cumsum": (V,),
    "dot": (V, V), "gemv": (M, V), "gemm": (M, M), "symm": (M, M), "trsm": (M, M),
    "matmul": (M, V), "batch_matmul": (B, B), "outer": (V, V), "vecdot": (V, V), "tensordot": (M, M),
    "einsum": ("ij,jk->ki", M, M), "sparse_matmul": (cuop.to_sparse(M), M),
    "batch_norm": (M, None, None, np.zeros(3), np.ones(3)), "layer_norm": (M, V), "rms_norm": (M, V),
    "softmax": (M,), "log_softmax": (M,),
    "concatenate": ([V, V],), "concat": ([V, V],), "stack": ([V, V],), "pad": (V, 2),
    "flatten": (M,), "transpose": (M,), "view": (M, (9,)),
    "gather": (M, 0, [[0, 1, 2]]), "take": (M, [0, 2], 1), "take_along_axis": (M, [[0, 1, 2]], 0),
    "masked_fill": (V, MASK, 0.0), "tril": (M,), "triu": (M,), "searchsorted": (V, M),
    "randint": (0, 9, (3,)), "random": ((3,),), "uniform": ((3,),),
    "stencil2d": (REAL_GRID,), "stencil2d_rows": (REAL_GRID,),
    "jacobi2d": (REAL_GRID, REAL_GRID), "jacobi2d_rows": (REAL_GRID, REAL_GRID[1:-1]),
    **{f"conv{n}d": (images(n), RNG.random((3, 2) + (2,) * n)) for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": (images(n), 2) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"global_{kind}_pool{n}": (images(2),) for kind in ("max", "avg") for n in ("", "2d")},
    **dict.fromkeys("all any argmax argmin max mean min norm prod std sum var".split(), (M,)),
    "clamp": (V, 0.1, 0.9),
    "absolute": (V,), "bitwise_not": ([1, 2],), "conjugate": (V,), "mod": (V, V), "power": (V, V),
    "true_divide": (V, V),
}  # fmt: skip
ROWS = {row["name"]: row for row in cuop.elementwise_table()}
TRANSFORMS = [name for name in dir(fft) if re.search(r"^i?[rh]?fft(n|2|)$|^d[cs]t\d$", name)]


def has_out(function):
    return any("out: " in text for text, *_ in getattr(function, "__nb_signature__", ()))


def elementwise_arguments(row):
    for dtype in ("float64", "int32", "bool"):
        if dtype in row["dtypes"]:
            return [cuop.ones(3, dtype)] * len(row["parameters"])
    raise AssertionError(row)


def fills_and_returns_it(function, *arguments):
    cuop.manual_seed(1)
    expected = function(*arguments)
    first = expected[0] if isinstance(expected, tuple) else cuop.tensor(expected, "float64") \
        if isinstance(expected, float) else expected  # fmt: skip
    out = cuop.empty(first.shape, first.dtype)
    cuop.manual_seed(1)
    result = function(*arguments, out=out)
    assert (result[0] if isinstance(expected, tuple) else result) is out
    np.testing.assert_array_equal(np.asarray(out), np.asarray(first))


def test_the_table_of_this_test_is_complete():
    names = {name for name in dir(cuop) if has_out(getattr(cuop, name))}
    assert names == CALLS.keys() | ROWS.keys()
    assert set(TRANSFORMS) == {name for name in dir(fft) if has_out(getattr(fft, name))}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    fills_and_returns_it(getattr(cuop, name), *CALLS[name])


@pytest.mark.parametrize("name", ROWS)
def test_elementwise_functions(name):
    fills_and_returns_it(getattr(cuop, name), *elementwise_arguments(ROWS[name]))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    fills_and_returns_it(getattr(fft, name), M)


def test_methods_return_the_tensor_itself():
    x = cuop.ones((2, 3))
    assert x.fill(2) is x and x.zero() is x and x.copy_from(np.ones((2, 3))) is x
    for name in ("sum", "mean", "max", "argmin", "norm", "cumsum", "var"):
        method = getattr(x, name)
        out = cuop.empty(method().shape, method().dtype)
        assert method(out=out) is out


def test_several_results_begin_with_out():
    out = cuop.zeros((5, 5), "float64")
    u, info = cuop.jacobi2d(REAL_GRID, REAL_GRID, out=out, return_info=True)
    assert u is out and info["sweeps"] > 0


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "complex64"])
def test_dot_writes_the_dtype_of_its_arguments(dtype):
    x = cuop.tensor([1, 2, 3], dtype)
    out = cuop.zeros((), dtype)
    assert cuop.dot(x, x, out=out) is out and out.item() == 14 == cuop.dot(x, x)


def test_an_output_that_cannot_be_one_is_refused():
    array = np.zeros(3)
    with pytest.raises(cuop.DTypeError, match="add: out: .* which cuop.asarray.* given ndarray"):
        cuop.add(V, V, out=array)
    assert cuop.add(V, V, out=cuop.asarray(array)).tolist() == array.tolist() == (V + V).tolist()
    with pytest.raises(cuop.ShapeError, match="dot: the output has shape"):
        cuop.dot(V, V, out=cuop.zeros(2, "float64"))
    with pytest.raises(cuop.DTypeError, match="dot: the output has dtype float32"):
        cuop.dot(V, V, out=cuop.zeros(()))
    with pytest.raises(cuop.ShapeError, match="transpose: the output has shape"):
        cuop.transpose(M, out=cuop.zeros(3, "float64"))
    with pytest.raises(cuop.ShapeError, match="view: "):
        cuop.view(M, (2, 2))
