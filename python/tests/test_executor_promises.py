"""cuop.executor beside tensors: the least memory that a plan names, reductions over no axis, and errors."""

import re

import numpy as np
import pytest

import cuop
from cuop import dist, executor
from distributed_gpu.auto_executor import AutoExecutor

RANDOM = np.random.default_rng(17)


@pytest.fixture
def comm():
    return dist.world()


def least_memory(comm, operation, arrays):
    """What the refusal of a limit of one byte names."""
    with pytest.raises(cuop.MemoryError, match="smallest tiles need") as refused:
        executor.run(comm, operation, arrays, memory_limit=1)
    return int(re.search(r"need (\d+) bytes", str(refused.value))[1])


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
@pytest.mark.parametrize("sweeps", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("kind", ["stencil", "wide stencil", "halves", "jacobi"])
def test_deep_sweeps_run_within_the_least_memory_that_is_planned(comm, kind, sweeps, boundary):
    dtype = np.float16 if kind == "halves" else np.float64
    grid = RANDOM.normal(size=(90, 33)).astype(dtype)
    size = 5 if kind == "wide stencil" else 3
    if kind == "jacobi":
        operation, arrays = executor.jacobi_pass(0.5, boundary, sweeps, 0.0), [grid, grid]
    else:
        operation = executor.stencil_pass(boundary, sweeps)
        arrays = [grid, np.full((size, size), 1 / 16, dtype)]
    whole, _ = executor.run(comm, operation, arrays)
    least = least_memory(comm, operation, arrays)
    for limit in (least, least + least // 20, 2 * least):
        result, report = executor.run(comm, operation, arrays, memory_limit=limit, safety_margin=0)
        np.testing.assert_array_equal(result.numpy(), whole.numpy())
        assert report.halvings == 0 and report.peak <= report.plan.memory <= limit


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("mode", ["compensated", "exact"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_take_no_more_than_is_planned(comm, name, mode, dtype):
    """On a GPU too, where values of 64 bits become shorter ones."""
    x = np.ones((7, 1000), dtype)
    _, report = executor.run(comm, getattr(executor, name)(0, mode=mode), [x])
    assert report.peak <= report.plan.memory


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "sum_kahan", "mean_kahan"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (7,), (0, 3), (5, 4, 3)])
def test_over_no_axis_each_element_is_alone(name, dtype, shape):
    x = RANDOM.integers(0, 5, shape).astype(dtype)
    of_tensors = getattr(cuop, name.removesuffix("_kahan"))
    mode = {"mode": "compensated"} if name.endswith("kahan") else {}
    kahan = getattr(AutoExecutor(verbose=False, max_per_gpu_gb=2**-20), name)
    for keep in (False, True):
        try:
            expected = of_tensors(cuop.asarray(x), (), keepdims=keep, **mode).numpy()
        except cuop.DTypeError:
            with pytest.raises(RuntimeError) as raised:
                kahan(x, (), keep)
            assert isinstance(raised.value.original, cuop.DTypeError)
            continue
        result = kahan(x, (), keep)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result, expected)


def test_over_no_axis_there_is_a_plan_over_ranks():
    for in_parts in (False, True):
        plan = executor.plan_ranks(
            executor.sum(()), [(40, 30)], ["float32"], ranks=3, in_parts=in_parts
        )
        assert plan.seconds > 0


ones, halves = np.ones, np.full((4, 4), 0.5)
REFUSED = {
    "fft of n = -1": (lambda e: e.fft(ones(5), -1), lambda: cuop.fft.fft(ones(5), -1)),
    "irfft of n = -1": (
        lambda e: e.irfft(np.zeros((0, 5)), -1, 0), lambda: cuop.fft.irfft(np.zeros((0, 5)), -1, 0)
    ),
    "conv2d of bool, empty batch": (
        lambda e: e.conv2d(ones((0, 1, 4, 4), bool), ones((1, 1, 1, 1), bool)),
        lambda: cuop.conv2d(ones((0, 1, 4, 4), bool), ones((1, 1, 1, 1), bool)),
    ),
    "conv2d of bool, too small": (
        lambda e: e.conv2d(ones((1, 1, 1, 1), bool), ones((1, 1, 3, 3), bool)),
        lambda: cuop.conv2d(ones((1, 1, 1, 1), bool), ones((1, 1, 3, 3), bool)),
    ),
    "conv2d of other dtypes, too small": (
        lambda e: e.conv2d(ones((1, 1, 1, 1)), ones((1, 1, 3, 3), np.float32)),
        lambda: cuop.conv2d(ones((1, 1, 1, 1)), ones((1, 1, 3, 3), np.float32)),
    ),
    "conv2d of matrices": (
        lambda e: e.conv2d(ones((3, 4)), ones((3, 4))),
        lambda: cuop.conv2d(ones((3, 4)), ones((3, 4))),
    ),
    "conv2d of volumes": (
        lambda e: e.conv2d(ones((1, 1, 4, 4, 4)), ones((1, 1, 2, 2, 2))),
        lambda: cuop.conv2d(ones((1, 1, 4, 4, 4)), ones((1, 1, 2, 2, 2))),
    ),
    "max of no complex": (
        lambda e: e.max(np.zeros((0, 3), complex)), lambda: cuop.max(np.zeros((0, 3), complex))
    ),
    "min of no complex along an axis that is none": (
        lambda e: e.min(np.zeros((0, 3), complex), 7),
        lambda: cuop.min(np.zeros((0, 3), complex), 7),
    ),
    "max of none": (lambda e: e.max(np.zeros((0, 3))), lambda: cuop.max(np.zeros((0, 3)))),
    "stencil of integers, even kernel": (
        lambda e: e.stencil_2d(ones((4, 4), np.int32), halves),
        lambda: cuop.stencil2d(ones((4, 4), np.int32), halves),
    ),
    "stencil, complex even kernel": (
        lambda e: e.stencil_2d(halves, halves.astype(complex)),
        lambda: cuop.stencil2d(halves, halves.astype(complex)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_tensors_refuse_is_refused_as_they_do(name):
    ours, of_tensors = REFUSED[name]
    with pytest.raises(cuop.errors.Error) as expected:
        of_tensors()
    with pytest.raises(RuntimeError) as raised:
        ours(AutoExecutor(verbose=False))
    assert type(raised.value.original) is type(expected.value), raised.value


def test_a_convolution_says_what_its_input_lacks(comm):
    for dimensions, shape, words in [
        (
            2,
            (30, 20),
            r"^conv2d: input has shape \(30, 20\); needed are 4 dimensions \(N, C, H, W\)",
        ),
        (2, (1, 2, 3), r"^conv2d: input has shape \(1, 2, 3\); needed are 4"),
        (3, (1, 1, 3, 3), r"^conv3d: input has shape \(1, 1, 3, 3\); needed are 5 dim.*D, H, W\)"),
        (1, (3, 3), r"^conv: input of shape \(3, 3\); needed are 3 to 5 dimensions"),
    ]:
        operation = executor.conv((1,) * dimensions, (0,) * dimensions)
        with pytest.raises(cuop.ShapeError, match=words):
            executor.run(comm, operation, [np.ones(shape), np.ones(shape)])


def test_plans_over_ranks_are_for_this_machine():
    here = dist.Machine.of_device()
    for m, k, n in [(8, 8, 8), (64, 16, 90), (300, 200, 100), (1000, 1000, 1000)]:
        call = executor.matmul(), [(m, k), (k, n)], ["float32"] * 2
        made, expected = executor.plan_ranks(*call), executor.plan_ranks(*call, machine=here)
        assert (made.strategy, made.seconds) == (expected.strategy, expected.seconds)
