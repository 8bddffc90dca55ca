"""What AutoExecutor takes of a device is what it promised: random calls of every method, shape, dtype and limit."""

import re

import numpy as np
import pytest
from auto_methods import OTHERS, public_methods

import cuop
from distributed_gpu import MPIError
from distributed_gpu.auto_executor import AutoExecutor

GIB = 2**30
FLOATS = ["f2", "f4", "f8"]
NUMBERS = [*FLOATS, "c8", "c16", "i4", "u1", "i8", "?"]


class Draw:
    """Random arguments."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, choices):
        return choices[self.rng.integers(len(choices))]

    def size(self, most):
        """Small ones, primes, whole rows of 16 bytes and others, up to `most`."""
        usual = [size for size in (1, 2, 3, 8, 13, 16, 31, 64, 127, 128, 251, 256) if size <= most]
        return int(self.one([*usual, self.rng.integers(1, most + 1)]))

    def sizes(self, count, most):
        return [self.size(most) for _ in range(count)]

    def array(self, dtype, *shape):
        values = self.rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * self.rng.standard_normal(shape)
        scale = 3 if np.dtype(dtype).kind in "iub" else 1
        return (
            np.abs(values * scale).astype(dtype)
            if dtype == "u1"
            else (values * scale).astype(dtype)
        )

    def axes(self, ndim):
        return self.one([None, *range(ndim), (0, ndim - 1) if ndim > 1 else 0])


def product(draw):
    m, k, n = draw.sizes(3, 300)
    dtype = draw.one(NUMBERS)
    other = draw.one([dtype, dtype, draw.one(NUMBERS)])
    return [draw.array(dtype, m, k), draw.array(other, k, n)], {}


def mixed(draw):
    m, k, n = draw.sizes(3, 300)
    dtype = draw.one(FLOATS)
    wire = draw.one(["float16", "bfloat16"])
    return [draw.array(dtype, m, k), draw.array(dtype, k, n)], {"comm_dtype": wire}


def real_product(draw):
    m, k, n = draw.sizes(3, 300)
    dtype = draw.one(FLOATS)
    return [draw.array(dtype, m, k), draw.array(dtype, k, n)], {}


def batch(draw):
    b, m, k, n = draw.size(20), *draw.sizes(3, 60)
    dtype = draw.one(NUMBERS)
    right = draw.one([(b, k, n), (k, n)])
    return [draw.array(dtype, b, m, k), draw.array(dtype, *right)], {}


def tensordot(draw):
    i, j, k, m = draw.sizes(4, 20)
    dtype = draw.one(NUMBERS)
    dims = ([1, 2], [2, 0])
    return [draw.array(dtype, i, j, k), draw.array(dtype, k, m, j)], {"dims": dims}


EQUATIONS = [
    "ij,jk->ik", "ij,jk,kl->il", "ij,jk,kl,lm->im", "abc,cbd->dba", "abc,acd->bad", "ij,ij->", "ij,kj->i",
    "ii,ij->j", "ij->ji", "ijk->k", "ab,bc,cd,ad->ac", "i,j,k->kji", "bij,bjk,k->bi", "ai,bi,ci->abc",
]  # fmt: skip


def einsum(draw):
    equation = draw.one(EQUATIONS)
    dtype = draw.one(NUMBERS)
    sizes = {letter: draw.size(24) for letter in "abcdijklm"}
    terms = equation.split("->")[0].split(",")
    return [equation, *(draw.array(dtype, *(sizes[each] for each in term)) for term in terms)], {}


def einsum_with_path(draw):
    i, j, k, m = draw.sizes(4, 40)
    dtype = draw.one(NUMBERS)
    arrays = [draw.array(dtype, i, j), draw.array(dtype, j, k), draw.array(dtype, k, m)]
    return ["ij,jk,kl->il", *arrays], {"path": draw.one([[(0, 1), (0, 1)], [(1, 2), (0, 1)]])}


def add(draw):
    m, n = draw.sizes(2, 200)
    one, other = draw.one(NUMBERS), draw.one(NUMBERS)
    return [draw.array(one, m, n), draw.array(other, *draw.one([(m, n), (n,), (1, n), (m, 1)]))], {}


def transpose(draw):
    return [draw.array(draw.one(NUMBERS), *draw.sizes(3, 40))], {
        "dim0": 0,
        "dim1": draw.one([1, 2]),
    }


def reduction(draw, dtypes=NUMBERS):
    shape = draw.one(
        [draw.sizes(2, 600), [draw.size(9), draw.size(9), draw.size(900)], [70000], [20000, 2]]
    )
    return [draw.array(draw.one(dtypes), *shape)], {
        "dim": draw.axes(len(shape)), "keepdim": bool(draw.rng.integers(2))
    }  # fmt: skip


def total(draw):
    arrays, options = reduction(draw)
    modes = ["plain", "compensated", *(["exact"] if arrays[0].dtype.kind != "b" else [])]
    return arrays, options | {"mode": draw.one(modes)}


def ordered(draw):
    return reduction(draw, [*FLOATS, "i4", "u1", "i8", "?"])


def line(draw, dtypes=NUMBERS):
    shape = draw.one([draw.sizes(2, 260), draw.sizes(3, 30), [draw.size(2000)]])
    dim = int(draw.rng.integers(len(shape)))
    n = draw.one([None, None, draw.size(300)])
    return [draw.array(draw.one(dtypes), *shape)], {"n": n, "dim": dim}


def real_line(draw):
    return line(draw, [*FLOATS, "i4"])


def grids(draw):
    return [draw.array(draw.one(NUMBERS), *draw.sizes(3, 40))], {}


def pencil(draw):
    return [draw.array(draw.one(NUMBERS), *draw.sizes(2, 100))], {}


def convolution(draw, spatial, most):
    dtype = draw.one(FLOATS)
    groups = draw.one([1, 1, 2])
    inputs, outputs = groups * draw.size(4), groups * draw.size(4)
    kernel = [draw.one([1, 2, 3]) for _ in range(spatial)]
    space = [draw.size(most) + 2 for _ in range(spatial)]
    x = draw.array(dtype, draw.size(4), inputs, *space)
    w = draw.array(dtype, outputs, inputs // groups, *kernel)
    bias = draw.one([[], [draw.array(dtype, outputs)]])
    options = {"padding": draw.one([0, 1]), "stride": draw.one([1, 1, 2]), "groups": groups}
    return [x, w, *bias], options


def stencil(draw):
    m, n = draw.sizes(2, 120)
    dtype, size = draw.one(FLOATS), draw.one([3, 5])
    kernel = (np.ones((size, size)) / 32).astype(dtype)
    options = {"boundary": draw.one(["zero", "periodic"]), "iterations": draw.one([1, 2, 5])}
    return [draw.array(dtype, m + 4, n + 4), kernel], options


def jacobi(draw):
    m, n = draw.sizes(2, 120)
    dtype = draw.one(["f4", "f8"])
    grid, rhs = draw.array(dtype, m + 2, n + 2), draw.array(dtype, m + 2, n + 2)
    options = {"boundary": draw.one(["zero", "periodic"]), "iterations": draw.one([1, 4, 7])}
    return [grid, rhs], options | {"tol": 0.0}


CALLS = {
    "matmul": product,
    "pipelined_matmul": product,
    "matmul_mixed_precision": mixed,
    "matmul_sparse_aware": real_product,
    "batch_matmul": batch,
    "tensordot": tensordot,
    "einsum": einsum,
    "einsum_with_path": einsum_with_path,
    "add": add,
    "transpose": transpose,
    "sum": total,
    "mean": total,
    "max": ordered,
    "min": ordered,
    "sum_kahan": reduction,
    "mean_kahan": reduction,
    "fft": line,
    "ifft": line,
    "irfft": line,
    "rfft": real_line,
    "fft2d": grids,
    "fft2d_pencil": pencil,
    "conv2d": lambda draw: convolution(draw, 2, 24),
    "conv3d": lambda draw: convolution(draw, 3, 9),
    "stencil_2d": stencil,
    "jacobi_2d": jacobi,
}
DRAWS = 6
#: Parts of the data that a device may hold.
LIMITS = [(0.1, 0.3), (0.3, 3)]


def run(method, arrays, options, limit):
    auto = AutoExecutor(
        verbose=False, max_per_gpu_gb=None if limit is None else (limit + 0.5) / GIB
    )
    return np.asarray(getattr(auto, method)(*arrays, **options)), auto.last_report


def smallest_of(method, arrays, options):
    with pytest.raises(MPIError) as caught:
        run(method, arrays, options, 1)
    found = re.search(r"smallest tiles need (\d+) bytes", str(caught.value))
    assert found, caught.value
    return int(found[1])


def difference(result, whole):
    if whole.size == 0:
        return 0
    wide = np.asarray(whole, "c16"), np.asarray(result, "c16")
    return float(np.max(np.abs(wide[0] - wide[1])) / (np.max(np.abs(wide[0])) + 1))


@pytest.mark.parametrize("method", CALLS)
def test_no_call_takes_more_than_it_promised(method):
    for number in range(DRAWS):
        draw = Draw([sorted(CALLS).index(method), number])
        arrays, options = CALLS[method](draw)
        try:
            whole, report = run(method, arrays, options, None)
        except MPIError as error:  # what no tensor takes either
            assert isinstance(error.original, (cuop.DTypeError, cuop.errors.OverflowError)), error
            continue
        shapes = [x if isinstance(x, str) else (x.dtype, x.shape) for x in arrays]
        what = f"{method}, draw {number}: {shapes}, {options}"
        if report is not None:  # a grid that fits is swept whole, without tiles
            assert report.halvings == 0 and report.peak <= report.plan.memory, what
        if whole.size == 0:
            continue
        data = whole.nbytes + sum(x.nbytes for x in arrays if not isinstance(x, str))
        smallest = smallest_of(method, arrays, options)
        for least, most in LIMITS:  # the smallest of all would be millions of tiles
            limit = max(smallest, int(data * draw.rng.uniform(least, most)))
            result, report = run(method, arrays, options, limit)
            if report is None:
                continue
            said = f"{what}: {report.peak} bytes in {report.plan} of {limit}"
            assert report.halvings == 0, said
            assert report.peak <= report.plan.memory <= limit, said
            assert result.dtype == whole.dtype and difference(result, whole) < 2e-2, said


def test_every_method_is_drawn():
    assert public_methods() - OTHERS == set(CALLS)
