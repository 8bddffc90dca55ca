"""AutoExecutor and ResourcePlanner: arrays of the host, larger than what a device may use."""

import math
import re

import numpy as np
import pytest
from default_device import DEVICES, ON_GPU
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop
from cuop import dist, executor
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.auto_executor import AutoExecutor, auto_compute

RANKS = [1, 2, 3, 4, 7]
KIB = 2.0**-20  # GiB


def noise(seed, *shape, dtype=np.float32):
    values = np.random.default_rng(seed).standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * np.random.default_rng(seed + 1000).standard_normal(shape)
    return values.astype(dtype)


def on_ranks(ranks, work, limit=None):
    """work(executor) on every rank; the results."""
    return dist.run_ranks(
        lambda comm: work(AutoExecutor(MPIManager(comm), verbose=False, max_per_gpu_gb=limit)),
        ranks,
    )


def from_root(ranks, limit, method, *arrays, **options):
    """The result on rank 0 of a method of arrays there, and what it did; None on all others."""

    def work(auto):
        mine = arrays if auto.is_master else [None] * len(arrays)
        return getattr(auto, method)(*mine, **options), auto.last_report

    first, *others = on_ranks(ranks, work, limit)
    assert all(result is None for result, _ in others)
    return first


def check(ranks, limit_kib, method, expected, *arrays, rtol=1e-5, **options):
    """The method in `limit_kib` a device, a tenth of the data or less, equals `expected`."""
    result, report = from_root(ranks, limit_kib * KIB, method, *arrays, **options)
    assert type(result) is np.ndarray
    assert result.shape == np.shape(expected)
    scale = np.max(np.abs(expected)) if np.size(expected) else 1.0
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol * scale)
    if report is not None:
        assert report.peak <= report.plan.limit <= limit_kib * 1024
        assert report.plan.tiles * report.plan.steps * report.plan.busy > 1
    return result


@pytest.mark.parametrize("ranks", RANKS)
def test_products(ranks):
    a, b = noise(1, 130, 151), noise(2, 151, 97)
    exact = a.astype("f8") @ b
    check(ranks, 16, "matmul", exact, a, b)
    check(ranks, 16, "matmul_mixed_precision", exact, a, b, rtol=2**-10 if ON_GPU else 1e-5)
    check(ranks, 16, "matmul_sparse_aware", exact, a, b)
    check(ranks, 16, "pipelined_matmul", exact, a, b, num_chunks=3)
    check(ranks, 16, "tensordot", exact, a, b, dims=1)
    x, y = noise(3, 9, 30, 21), noise(4, 9, 21, 31)
    check(ranks, 8, "batch_matmul", x @ y, x, y)
    check(ranks, 8, "batch_matmul", x @ y[0], x, y[0])


def einsum(ranks, limit_kib, equation, *operands, **options):
    def work(auto):
        mine = operands if auto.is_master else [None] * len(operands)
        return auto.einsum_with_path(equation, *mine, **options)

    return on_ranks(ranks, work, limit_kib * KIB)[0]


def test_equations_along_a_path():
    operands = [noise(1, 30, 20), noise(2, 20, 40), noise(3, 40, 10)]
    expected = np.einsum("ij,jk,kl->il", *(each.astype("f8") for each in operands))
    for path in ([(1, 2), (0, 1)], [(0, 1), (0, 1)], None):
        result = einsum(2, 16, "ij,jk,kl->il", *operands, path=path)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(6, 20, 30), (6, 30, 10)]),
        ("ij,jk,kl->il", [(30, 20), (20, 40), (40, 25)]),
        ("ii->i", [(50, 50)]),
        ("ij->", [(60, 70)]),
        ("...i,i->...", [(5, 6, 40), (40,)]),
        ("ij,ij->ij", [(40, 50), (40, 50)]),
        ("i,j->ij", [(60,), (70,)]),
        ("abc,cd->dba", [(11, 12, 13), (13, 14)]),
        ("ij,jk->ik", [(20, 0), (0, 30)]),
    ],
)
def test_equations(ranks, equation, shapes):
    operands = [noise(i, *shape, dtype="f8") for i, shape in enumerate(shapes)]
    result = einsum(ranks, 24, equation, *operands)
    np.testing.assert_allclose(result, np.einsum(equation, *operands), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["f2", "f8", "c8", "c16", "i4", "i8", "u1", "?"])
def test_products_of_every_kind(dtype):
    a, b = noise(1, 40, 60, dtype="f8") * 3, noise(2, 60, 30, dtype="f8") * 3
    a, b = a.astype(dtype), b.astype(dtype)
    limit = KIB if dtype == "f2" else 6 * KIB
    result, report = from_root(2, limit, "matmul", a, b)
    assert result.dtype == a.dtype
    if dtype == "f2":  # rounded once, although the sum is made in steps
        assert report.plan.steps > 1
        exact = a.astype("f8") @ b.astype("f8")
        assert np.max(np.abs(result - exact)) <= 2**-11 * np.max(np.abs(exact)) + 1e-3
    else:
        np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("ranks", RANKS)
def test_elements(ranks):
    a, b = noise(1, 61, 83), noise(2, 61, 83)
    check(ranks, 4, "add", a + b, a, b)
    check(ranks, 4, "add", a + b[:1], a, b[:1])
    check(ranks, 4, "transpose", a.T, a)
    x = noise(3, 7, 11, 13)
    check(ranks, 1, "transpose", x.swapaxes(0, 2), x, dim0=0, dim1=2)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(ranks, dim, keepdim):
    x = noise(1, 17, 29, 23, dtype="f8")
    options = {"dim": dim, "keepdim": keepdim}
    axes = {"axis": dim, "keepdims": keepdim}
    for name, oracle in [("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min)]:
        check(ranks, 8, name, oracle(x, **axes), x, rtol=1e-12, **options)
    check(ranks, 24, "sum_kahan", np.sum(x, **axes), x, rtol=1e-12, **options)
    check(ranks, 24, "mean_kahan", np.mean(x, **axes), x, rtol=1e-12, **options)


def test_exact_sums_have_the_bits_of_others():
    x = noise(1, 20000) * np.float32(10) ** noise(2, 20000)
    expected = np.float32(math.fsum(x.astype("f8")))
    for ranks in RANKS:
        for limit in (None, 400 * KIB, 60 * KIB):
            result, _ = from_root(ranks, limit, "sum", x, mode="exact")
            assert result == expected, (ranks, limit)


def test_maxima_of_not_a_number():
    x = noise(1, 50, 60)
    x[20, 30] = np.nan
    result, _ = from_root(3, 4 * KIB, "max", x, dim=1)
    np.testing.assert_array_equal(result, x.max(axis=1))


@pytest.mark.parametrize("ranks", RANKS)
def test_transforms(ranks):
    x = noise(1, 33, 40, dtype="c16")
    check(ranks, 6, "fft", np.fft.fft(x), x, rtol=1e-12)
    check(ranks, 6, "ifft", np.fft.ifft(x, axis=0), x, rtol=1e-12, dim=0)
    check(ranks, 12, "fft", np.fft.fft(x, 64, norm="ortho"), x, rtol=1e-12, n=64, norm="ortho")
    check(ranks, 6, "rfft", np.fft.rfft(x.real), np.ascontiguousarray(x.real), rtol=1e-12)
    check(ranks, 6, "irfft", np.fft.irfft(x, axis=0), x, rtol=1e-12, dim=0)
    images = noise(2, 9, 12, 10, dtype="c16")
    check(ranks, 10, "fft2d", np.fft.fft2(images), images, rtol=1e-12)
    for s, dim in (((7, 12), (2, 0)), ((4, 9), (0, -1)), (None, (2, 0))):
        expected = np.fft.fft2(images, s, dim)
        check(ranks, 12, "fft2d", expected, images, rtol=1e-12, s=s, dim=dim)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("shape", [(48, 60), (61, 7), (1, 96)])
def test_grids_larger_than_a_device(ranks, shape):
    x = noise(1, *shape)
    expected = np.fft.fft2(x.astype("f8"))
    for limit in (None, 6 * KIB):
        result, _ = from_root(ranks, limit, "fft2d", x)
        assert result.dtype == np.complex64
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
    result, _ = from_root(ranks, 6 * KIB, "fft2d_pencil", x, norm="ortho")
    np.testing.assert_allclose(result, np.fft.fft2(x, norm="ortho"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_line_larger_than_a_device(ranks):
    x = noise(1, 3600, dtype="c16")
    for options in ({}, {"n": 5000}, {"n": 1024, "norm": "ortho"}):
        for method, oracle in (("fft", np.fft.fft), ("ifft", np.fft.ifft)):
            result, _ = from_root(ranks, 24 * KIB, method, x, **options)
            expected = oracle(x, **options)
            error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
            assert error < 1e-15 * np.log2(len(expected))


@pytest.mark.parametrize("ranks", RANKS)
def test_convolutions(ranks):
    x, w, bias = noise(1, 5, 4, 23, 21), noise(2, 6, 2, 3, 3), noise(3, 6)
    whole = from_root(1, None, "conv2d", x, w, bias, stride=(2, 1), padding=(1, 1), groups=2)[0]
    check(
        ranks, 16, "conv2d", whole, x, w, bias, rtol=1e-4, stride=(2, 1), padding=(1, 1), groups=2
    )
    volume, kernel = noise(4, 2, 3, 9, 8, 7), noise(5, 4, 3, 3, 3, 3)
    whole = from_root(1, None, "conv3d", volume, kernel, padding=1)[0]
    check(ranks, 10, "conv3d", whole, volume, kernel, rtol=1e-4, padding=1)


def test_a_convolution_is_right():
    x, w = noise(1, 1, 1, 20, 20, dtype="f8"), noise(2, 1, 1, 3, 3, dtype="f8")
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0], (3, 3))
    expected = np.einsum("ijab,ab->ij", windows, w[0, 0])
    check(3, 2, "conv2d", expected[None, None], x, w, rtol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_sweeps_have_the_bits_of_whole_grids(ranks, boundary):
    grid, rhs, kernel = noise(1, 41, 30), noise(2, 41, 30), noise(3, 5, 3) / 8
    for iterations in (0, 1, 5, 20):
        options = {"boundary": boundary, "iterations": iterations}
        whole, _ = from_root(1, None, "stencil_2d", grid, kernel, **options)
        cut, _ = from_root(ranks, 12 * KIB, "stencil_2d", grid, kernel, **options)
        np.testing.assert_array_equal(cut, whole)
        whole, _ = from_root(1, None, "jacobi_2d", grid, rhs, dx=0.1, tol=0, **options)
        cut, _ = from_root(ranks, 12 * KIB, "jacobi_2d", grid, rhs, dx=0.1, tol=0, **options)
        np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize("ranks", [1, 3])
def test_sweeps_stop_where_whole_grids_do(ranks):
    grid, rhs = np.zeros((24, 25)), noise(2, 24, 25, dtype="f8")
    options = {"iterations": 500, "tol": 0.5, "return_info": True}
    (whole, expected), _ = from_root(1, None, "jacobi_2d", grid, rhs, **options)

    def work(auto):
        mine = (grid, rhs) if auto.is_master else (None, None)
        return auto.jacobi_2d(*mine, **options)

    for u, info in on_ranks(ranks, work, 8 * KIB):
        assert (info.sweeps, info.update_norm) == (expected.sweeps, expected.update_norm)
        assert info.residual_norm == pytest.approx(expected.residual_norm, rel=1e-12)
        assert u is None or np.array_equal(u, whole)
    assert 1 < expected.sweeps < 500


def test_lists_of_products():
    pairs = [(noise(i, 5 + i, 7), noise(10 + i, 7, 3 * i)) for i in range(4)]

    def work(auto):
        return auto.matmul_batch(pairs if auto.is_master else None)

    first, *others = on_ranks(3, work)
    for result, (a, b) in zip(first, pairs, strict=True):
        np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-5)
    assert others == [None, None]


def test_results_in_parts():
    a, b = noise(1, 30, 20), noise(2, 20, 11)

    def work(auto):
        mine = (a, b) if auto.is_master else (None, None)
        parts = auto.matmul(*mine, return_on_cpu=False)
        assert isinstance(parts, dist.DistTensor)
        assert parts.local.shape[0] == 10
        return np.asarray(parts.gather_all())

    for result in on_ranks(3, work, 2 * KIB):
        np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-5)


def test_sums_of_ranks():
    def work(auto):
        return auto.pipelined_allreduce(np.full(5, auto.mpi.get_rank(), "f4"), num_chunks=2)

    for result in on_ranks(3, work):
        np.testing.assert_array_equal(result, np.full(5, 3, "f4"))


@pytest.mark.parametrize("ranks", [1, 3])
def test_files(tmp_path, ranks):
    a, b = noise(1, 300, 1100), noise(2, 1100, 90)  # a is mapped, b is read
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for given_a in (tmp_path / "a.npy", str(tmp_path / "a.npy"), mapped):
        result, report = from_root(ranks, 64 * KIB, "matmul", given_a, tmp_path / "b.npy")
        assert type(result) in (np.ndarray, np.memmap)
        np.testing.assert_allclose(result, a.astype("f8") @ b, rtol=1e-4, atol=1e-3)
        assert report.peak <= 64 * 1024
    with pytest.raises(MPIError, match="missing.npy"):
        from_root(ranks, None, "sum", tmp_path / "missing.npy")


def test_views_are_read_where_they_lie():
    x = noise(1, 120, 90)
    for view in (x[::2, ::-1], x.T, x[5:50, 7], np.broadcast_to(x[:1], (70, 90)), x[3, 4]):
        check(3, 4, "add", view + view, view, view) if view.size > 2000 else None
        result, _ = from_root(2, None, "add", view, view)
        np.testing.assert_array_equal(result, view + view)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), ()])
@pytest.mark.parametrize("ranks", [1, 3])
def test_few_elements(ranks, shape):
    x = np.ones(shape)
    np.testing.assert_array_equal(from_root(ranks, None, "sum", x)[0], x.sum())
    np.testing.assert_array_equal(from_root(ranks, None, "add", x, x)[0], x + x)
    if 0 in shape:
        with pytest.raises(MPIError, match="no elements"):
            from_root(ranks, None, "max", x)


def test_tensors_of_other_libraries_come_back():
    x = cuop.ones((20, 30))
    auto = AutoExecutor(verbose=False)
    assert isinstance(auto.sum(x), cuop.Tensor)
    assert isinstance(auto.add(x, x), cuop.Tensor)


@given(
    op=st.sampled_from(["matmul", "add", "sum", "fft", "transpose", "conv"]),
    m=st.integers(1, 60),
    k=st.integers(1, 60),
    n=st.integers(1, 60),
    ranks=st.sampled_from(RANKS),
    limit_kib=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_any_limit_gives_the_result_or_says_what_would_do(op, m, k, n, ranks, limit_kib):
    a, b = noise(1, m, k, dtype="f8"), noise(2, k, n, dtype="f8")
    calls = {
        "matmul": ([a, b], lambda: a @ b),
        "add": ([a, a], lambda: a + a),
        "sum": ([a], lambda: a.sum()),
        "fft": ([a], lambda: np.fft.fft(a)),
        "transpose": ([a], lambda: a.T),
    }
    if op == "conv":
        op, x = "conv2d", noise(3, 2, 2, max(m, 3), max(k, 3))
        w = noise(4, 3, 2, 3, 3)
        arrays, expected = [x, w], from_root(1, None, "conv2d", x, w)[0]
    else:
        arrays, oracle = calls[op]
        expected = oracle()
    try:
        result, report = from_root(ranks, limit_kib * KIB, op, *arrays)
    except MPIError as error:
        assert re.search(r"smallest tiles need|more on cpu|are left", str(error)), error
        return
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert report.peak <= limit_kib * 1024


def test_computing_by_name():
    a, b = noise(1, 20, 30), noise(2, 30, 10)
    np.testing.assert_allclose(auto_compute("matmul", a, b), a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(auto_compute("fft", a), np.fft.fft(a), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(auto_compute("sum", a, dim=0), a.sum(0), rtol=1e-4, atol=1e-4)


def test_a_call_tells_what_it_does(capsys):
    AutoExecutor(max_per_gpu_gb=8 * KIB).sum(noise(1, 100, 100))
    text = capsys.readouterr().out
    assert re.search(rf"\[AutoExecutor\] sum: \d+ batches x {DEVICES} devices, .* peak", text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda e: e.matmul(np.ones((2, 3)), np.ones((2, 3))), "(2, 3) and (2, 3) do not fit"),
        (lambda e: e.matmul(np.ones((2, 3)), None), "matmul: b was not given; the inputs are a, b"),
        (lambda e: e.matmul(np.ones((2, 3)), np.array(["a"])), "cannot become a tensor"),
        (lambda e: e.batch_matmul(np.ones((2, 3)), np.ones((3, 3))), "one of them with a batch"),
        (lambda e: e.fft(np.ones((2, 3)), n=0), "must be 1 or more"),
        (lambda e: e.rfft(np.ones((2, 3), "c8")), "real input is needed"),
        (lambda e: e.sum(np.ones((2, 3)), dim=2), "axis 2"),
        (lambda e: e.max(np.ones((0, 3))), "no elements"),
        (lambda e: e.conv2d(np.ones((1, 2, 5, 5)), np.ones((1, 3, 3, 3))), "conv2d"),
        (lambda e: e.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3))), "einsum"),
        (lambda e: e.stencil_2d(np.ones(3)), "2 dimensions"),
        (lambda e: e.jacobi_2d(np.ones((3, 3)), np.ones((3, 4))), "jacobi_2d"),
        (lambda e: e.pipelined_matmul(np.ones((3, 3)), np.ones((3, 4)), 0), "num_chunks is 0"),
        (lambda e: e.matmul_mixed_precision(np.ones((3, 3)), np.ones((3, 3)), "int8"), "int8"),
        (lambda e: e.plan_info("divide", (3, 3)), "'divide' is no operation"),
        (lambda e: e.plan_info("einsum", (3, 3)), "must be the equation"),
        (lambda e: AutoExecutor(max_per_gpu_gb=0), "max_per_gpu_gb is 0"),
        (lambda e: AutoExecutor(max_per_gpu_gb=1e300), "max_per_gpu_gb is 1e+300; needed are GiB"),
        (
            lambda e: e.planner.plan_operation("matmul", [(1,)]),
            "b was not given; the inputs are a, b",
        ),
        (
            lambda e: e.planner.plan_matmul("x", 1, 1),
            "plan_matmul: M: needed is an integer, given 'x'",
        ),
        (
            lambda e: e.planner.plan_matmul(1, 2**70, 1),
            "K is 1180591620717411303424; it must be from 0",
        ),
        (lambda e: e.plan_info("fft", (8, "x")), "given tuple with 'x'"),
        (lambda e: AutoExecutor(max_per_gpu_gb="x"), "max_per_gpu_gb: needed is a number"),
        (lambda e: AutoExecutor(3), "an MPIManager"),
        (lambda e: auto_compute("nothing"), "'nothing' is no operation"),
        (lambda e: AutoExecutor(max_per_gpu_gb=1e-8, verbose=False).fft(np.ones((9, 99))), "need"),
    ],
)
def test_what_cannot_be(call, text):
    with pytest.raises((MPIError, cuop.errors.Error), match=re.escape(text)):
        call(AutoExecutor(verbose=False))


def test_an_error_of_one_rank_is_raised_on_all():
    def work(auto):
        mine = (np.ones((2, 3)), np.ones((4, 5))) if auto.is_master else (None, None)
        with pytest.raises(MPIError, match="do not fit"):
            auto.matmul(*mine)
        return auto.sum(np.ones(5) if auto.is_master else None)

    results = on_ranks(3, work)
    assert results[0] == 5


def test_a_wrong_out_is_refused():
    comm, x = dist.world(), cuop.ones((3, 4))
    with pytest.raises(cuop.ShapeError, match="the result is"):
        executor.run(comm, executor.add(), [x, x], out=cuop.zeros((4, 3)))
    executor.run(comm, executor.add(), [x, x], out=(out := cuop.zeros((3, 4), device="cpu")))
    assert (np.asarray(out) == 2).all()
