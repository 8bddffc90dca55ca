"""distributed_gpu on ranks that are threads, against NumPy in double precision."""

import math
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor, _arrays
from distributed_gpu.algorithms import convolution, fft, matrix_ops, reduction
from distributed_gpu.algorithms.einsum import distributed_einsum
from distributed_gpu.cost_model import SplitStrategy, compute_2d_grid

RANKS = [1, 2, 3, 4, 7]
SETTINGS = settings(max_examples=15, deadline=None)
SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 13])


def rooted(ranks, function, *arrays, **options):
    """function(*arrays, mpi, distributor, **options) on every rank; checks that the result is on
    rank 0 only and answers it."""

    def work(comm):
        mpi = MPIManager()
        assert (mpi.get_rank(), mpi.get_size()) == (comm.rank, ranks)
        mine = [array if comm.rank == 0 else None for array in arrays]
        return function(*mine, mpi, TensorDistributor(mpi), **options)

    results = dist.run_ranks(work, ranks)
    assert all(result is None for result in results[1:])
    return results[0]


def failures(ranks, work):
    """What work(mpi) raises on each rank."""

    def collect(comm):
        with pytest.raises(MPIError) as caught:
            work(MPIManager())
        return caught.value

    return dist.run_ranks(collect, ranks)


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "strategy", [None, "root", "row", "column", "block_2d", "k_split", *SplitStrategy]
)
def test_matmul_strategies(ranks, strategy):
    a, b = noise(1, 11, 6), noise(2, 6, 9)
    result = rooted(ranks, matrix_ops.distributed_matmul, a, b, strategy=strategy)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, a @ b, atol=1e-13)


@SETTINGS
@given(st.sampled_from(RANKS), SIZES, SIZES, SIZES, st.sampled_from(["row", "column", "block_2d"]))
def test_matmul_of_any_size(ranks, m, k, n, strategy):
    a, b = noise(1, m, k), noise(2, k, n)
    result = rooted(ranks, matrix_ops.distributed_matmul, a, b, strategy=strategy)
    np.testing.assert_allclose(result, a @ b, atol=1e-12)


@SETTINGS
@given(
    st.sampled_from(RANKS), SIZES, SIZES, SIZES, SIZES, st.booleans(), st.sampled_from(["f4", "f8"])
)
def test_batch_matmul_of_any_size(ranks, batch, m, k, n, has_one_b, dtype):
    a = noise(1, batch, m, k).astype(dtype)
    b = noise(2, *(() if has_one_b else (batch,)), k, n)
    result = rooted(ranks, matrix_ops.distributed_batch_matmul, a, b)
    np.testing.assert_allclose(result, a @ b, atol=1e-12)


def test_batch_matmul_names_shapes_that_do_not_fit():
    a = noise(1, 2, 3, 4)
    errors = failures(2, lambda mpi: matrix_ops.distributed_batch_matmul(a, a, mpi, None))
    assert all("(2, 3, 4) and (2, 3, 4) do not fit" in str(error) for error in errors)


def test_matmul_asks_a_cost_model_unless_a_strategy_is_given():
    class Model:
        def find_optimal_strategy(self, M, K, N):
            assert (M, K, N) == (4, 5, 6)
            self.strategy = SplitStrategy.COLUMN_SPLIT
            return self

    a, b = noise(1, 4, 5), noise(2, 5, 6)

    def work(comm, **options):
        mpi = MPIManager()
        mine = (a, b) if comm.rank == 0 else (None, None)
        matrix_ops.distributed_matmul(*mine, mpi, TensorDistributor(mpi), **options)
        return dist.last_report().plan.strategy

    assert dist.run_ranks(lambda c: work(c, cost_model=Model()), 3) == ["column"] * 3
    assert dist.run_ranks(lambda c: work(c, cost_model=Model(), strategy="row"), 3) == ["row"] * 3
    errors = failures(2, lambda mpi: matrix_ops.distributed_matmul(a, b, mpi, None, cost_model=3))
    assert all("the cost model failed" in str(error) for error in errors)


@SETTINGS
@given(st.sampled_from(RANKS), st.lists(SIZES, min_size=2, max_size=4), st.data())
def test_transpose(ranks, shape, data):
    x = noise(3, *shape)
    dims = st.integers(-len(shape), len(shape) - 1)
    dim0, dim1 = data.draw(dims), data.draw(dims)
    result = rooted(ranks, matrix_ops.distributed_transpose, x, dim0=dim0, dim1=dim1)
    np.testing.assert_array_equal(result, np.swapaxes(x, dim0, dim1))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("n", [4, 600])
def test_results_share_no_memory_with_an_input(ranks, n):
    """Whatever the plan: small ones leave all to rank 0."""
    x = noise(1, n, n + 1)

    def flipped(x, mpi, distributor):
        return distributed_einsum("ij->ji", x, mpi=mpi, distributor=distributor)

    for function in (matrix_ops.distributed_transpose, flipped):
        for array in (x, cuop.asarray(x)):
            result = rooted(ranks, function, array)
            assert not np.shares_memory(np.asarray(result), x)
            np.testing.assert_array_equal(result, x.T)


@SETTINGS
@given(st.sampled_from(RANKS), SIZES, SIZES, st.sampled_from([(0, 1), (1, 0), (0, 0), (1, 1)]))
def test_add_broadcasts(ranks, rows, columns, kept):
    a = noise(4, rows, columns)
    b = noise(5, rows if kept[0] else 1, columns if kept[1] else 1)
    np.testing.assert_array_equal(rooted(ranks, matrix_ops.distributed_add, a, b), a + b)


@SETTINGS
@given(
    st.sampled_from(RANKS),
    st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=3),
    st.data(),
    st.booleans(),
)
def test_reductions(ranks, shape, data, keepdim):
    x = noise(6, *shape)
    axes = st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True).map(tuple)
    dim = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1), axes))
    for name in ["sum", "mean", "max", "min"]:
        function = getattr(reduction, f"distributed_{name}")
        result = rooted(ranks, function, x, dim=dim, keepdim=keepdim)
        expected = getattr(np, name)(x, axis=dim, keepdims=keepdim)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, atol=1e-13)
    for name in ["sum", "mean"]:
        function = getattr(reduction, f"distributed_{name}_kahan")
        result = rooted(ranks, function, x, dim=dim, keepdim=keepdim)
        np.testing.assert_allclose(
            result, getattr(np, name)(x, axis=dim, keepdims=keepdim), atol=1e-13
        )


@pytest.mark.parametrize("ranks", range(1, 8))
def test_exact_sums_equal_fsum_on_any_number_of_ranks(ranks):
    rng = np.random.default_rng(ranks)
    for _ in range(20):
        half = rng.standard_normal(251) * 10.0 ** rng.integers(-18, 18, 251)
        x = np.concatenate([half, -half, rng.standard_normal(3) * 1e-12])
        rng.shuffle(x)
        result = rooted(ranks, reduction.distributed_sum, x, mode="exact")
        assert float(result) == math.fsum(x)


def test_nan_propagates_through_maxima():
    x = np.array([1.0, np.nan, 3.0, 2.0, -1.0])
    assert np.isnan(rooted(3, reduction.distributed_max, x))
    assert np.isnan(rooted(3, reduction.distributed_min, x))
    errors = failures(2, lambda mpi: reduction.distributed_max(x[:0], mpi, None))
    assert all("no elements" in str(error) for error in errors)


@SETTINGS
@given(
    st.sampled_from(RANKS),
    st.lists(st.sampled_from([1, 2, 3, 5, 8, 13]), min_size=2, max_size=3),
    st.sampled_from(["backward", "ortho", "forward"]),
    st.sampled_from([None, 4, 9]),
    st.sampled_from([0, -1]),
)
def test_ffts(ranks, shape, norm, n, dim):
    x = noise(7, *shape)
    options = {"n": n, "dim": dim, "norm": norm}
    for name in ["fft", "ifft", "rfft"]:
        result = rooted(ranks, getattr(fft, f"distributed_{name}"), x, **options)
        expected = getattr(np.fft, name)(x, n, dim, norm)
        np.testing.assert_allclose(result, expected, atol=1e-12)
    if len(shape) == 3:
        result = rooted(ranks, fft.distributed_fft2d, x, norm=norm)
        np.testing.assert_allclose(result, np.fft.fft2(x, norm=norm), atol=1e-12)
        result = rooted(ranks, fft.distributed_fft2d, x, s=(3, 4), dim=(0, 2), norm=norm)
        np.testing.assert_allclose(result, np.fft.fft2(x, (3, 4), (0, 2), norm), atol=1e-12)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (5, 13), (3, 8), (1, 7)])
def test_fft2d_pencil(ranks, shape):
    x = noise(8, *shape).astype(np.float32)
    result = rooted(ranks, fft.distributed_fft2d_pencil, x)
    assert result.dtype == np.complex64
    np.testing.assert_allclose(result, np.fft.fft2(x.astype(float)), atol=1e-4)


def reference_conv2d(x, w, stride, padding, dilation, groups):
    """Straight from the definition, in double precision."""
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:])]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    per_group = w.shape[0] // groups
    for o in range(w.shape[0]):
        channels = x[:, (o // per_group) * w.shape[1] :][:, : w.shape[1]]
        for i, j in np.ndindex(*sizes):
            top, left = i * stride[0], j * stride[1]
            patch = channels[:, :, top : top + reach[0] : dilation[0]]
            patch = patch[:, :, :, left : left + reach[1] : dilation[1]]
            result[:, o, i, j] = (patch * w[o]).sum(axis=(1, 2, 3))
    return result


@pytest.mark.parametrize("ranks", RANKS)
def test_conv2d(ranks):
    for batch, channels, out, groups in [(3, 2, 4, 1), (1, 4, 6, 2), (8, 1, 1, 1)]:
        x, bias = noise(9, batch, channels, 9, 7), noise(11, out)
        w = noise(10, out, channels // groups, 3, 2)
        options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": groups}
        expected = reference_conv2d(x, w, **options)
        result = rooted(ranks, convolution.distributed_conv2d, x, w, **options)
        np.testing.assert_allclose(result, expected, atol=1e-12)

        def biased(x, w, b, mpi, distributor, options=options):
            return convolution.distributed_conv2d(x, w, mpi, distributor, bias=b, **options)

        result = rooted(ranks, biased, x, w, bias)
        np.testing.assert_allclose(result, expected + bias[:, None, None], atol=1e-12)


def test_results_come_back_as_the_first_input_s_kind():
    a, b = noise(1, 3, 4), noise(2, 4, 2)
    assert isinstance(rooted(2, matrix_ops.distributed_matmul, cuop.asarray(a), b), cuop.Tensor)
    assert type(rooted(2, matrix_ops.distributed_matmul, a, cuop.asarray(b))) is np.ndarray
    assert type(rooted(2, matrix_ops.distributed_matmul, a.tolist(), b)) is np.ndarray
    torch = pytest.importorskip("torch")
    result = rooted(2, matrix_ops.distributed_matmul, torch.asarray(a), b)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.numpy(), a @ b, atol=1e-13)


class Counted:
    """An object with __array__ that counts how often it is asked for the array."""

    def __init__(self, values):
        self.values = values
        self.count = 0

    def __array__(self, dtype=None, copy=None):
        self.count += 1
        return np.asarray(self.values, dtype)


@pytest.mark.parametrize("ranks", [1, 2])
def test_inputs_are_converted_once(ranks):
    a = noise(1, 4, 3)
    first, second, split = Counted(a), Counted(a), Counted(a)
    rooted(ranks, matrix_ops.distributed_add, first, second)
    dist.run_ranks(
        lambda comm: MPIManager().scatter_tensor(split if comm.rank == 0 else None), ranks
    )
    assert (first.count, second.count, split.count) == (1, 1, 1)
    parts = [Counted(a) for _ in range(ranks)]
    dist.run_ranks(lambda comm: MPIManager().allgather_tensor(parts[comm.rank]), ranks)
    assert [part.count for part in parts] == [1] * ranks


def test_a_library_that_one_rank_lacks_gives_numpy_there(monkeypatch):
    """The kind travels from the rank that has the input; another may not have imported its library."""
    tensor = cuop.tensor([1.0, 2.0], device="cpu")
    monkeypatch.delitem(sys.modules, "library_of_others", raising=False)
    array = _arrays.to_kind(tensor, "library_of_others")
    assert type(array) is np.ndarray and array.tolist() == [1.0, 2.0]
    assert type(_arrays.to_place(tensor, ("library_of_others", "cpu"))) is np.ndarray
    there = types.SimpleNamespace(from_dlpack=lambda x: ("imported", np.from_dlpack(x)))
    monkeypatch.setitem(sys.modules, "library_of_others", there)
    kind, array = _arrays.to_kind(tensor, "library_of_others")
    assert kind == "imported" and array.tolist() == [1.0, 2.0]
    assert _arrays.to_kind(None, "library_of_others") is None


def test_an_exception_on_one_rank_raises_on_all_and_names_it():
    a = noise(1, 3, 4)

    def bad_shape(mpi):
        return matrix_ops.distributed_matmul(a, a, mpi, None)

    errors = failures(3, bad_shape)
    assert all("shapes (3, 4) and (3, 4) do not fit" in str(error) for error in errors)
    assert [error.rank for error in errors] == [0, 0, 0]
    assert isinstance(errors[0].original, cuop.errors.ShapeError)

    def different_calls(mpi):
        if mpi.get_rank() == 1:
            return reduction.distributed_sum(a, mpi, None)
        return matrix_ops.distributed_add(a, a, mpi, None)

    for error in failures(3, different_calls):
        assert "rank 0 called add" in str(error) and "rank 1 called sum" in str(error)

    def not_an_array(mpi):
        return reduction.distributed_sum(object(), mpi, None)

    assert all("object" in str(error) for error in failures(2, not_an_array))

    def goes_on(comm):
        mpi = MPIManager()
        with pytest.raises(MPIError):
            bad_shape(mpi)
        return matrix_ops.distributed_add(a, a, mpi, None)

    np.testing.assert_array_equal(dist.run_ranks(goes_on, 3)[0], a + a)


def test_the_grid_is_as_square_as_it_can_be():
    assert [compute_2d_grid(p) for p in (1, 6, 7, 16)] == [(1, 1), (2, 3), (1, 7), (4, 4)]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"]
)
def test_every_kind_of_element(dtype):
    x = (np.abs(noise(12, 5, 7)) * 10).astype(dtype)
    if dtype.startswith("complex"):
        x = x * (1 - 2j)
    wide = x.astype(np.complex128 if dtype.startswith("complex") else np.float64)
    for mode in ["plain", "compensated", "exact"]:
        result = rooted(3, reduction.distributed_sum, x, dim=0, mode=mode)
        assert result.dtype == cuop.sum(x, 0).dtype
        np.testing.assert_allclose(result, wide.sum(0), rtol=2e-3, atol=0.05)
    mean = rooted(3, reduction.distributed_mean, x[:, ::2])
    np.testing.assert_allclose(mean, wide[:, ::2].mean(), rtol=2e-3, atol=0.01)
    swapped = rooted(3, matrix_ops.distributed_transpose, x)
    np.testing.assert_array_equal(swapped, x.T)
    np.testing.assert_array_equal(rooted(3, matrix_ops.distributed_add, x, x), x + x)
    product = rooted(3, matrix_ops.distributed_matmul, x, x.T.copy(), strategy="k_split")
    assert product.dtype == x.dtype
    if dtype in ("bool", "int8", "uint64"):
        np.testing.assert_array_equal(product, x @ x.T)
    else:
        np.testing.assert_allclose(product.astype(wide.dtype), wide @ wide.T, rtol=2e-3, atol=0.5)
