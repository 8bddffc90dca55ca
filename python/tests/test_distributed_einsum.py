"""einsum and tensordot over ranks, against NumPy: tensors in parts, and from rank 0 to rank 0."""

import numpy as np
import opt_einsum
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_einsum import random_call, random_equation, widened

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu.algorithms.einsum import (
    compare_optimization_strategies,
    create_contraction_expression,
    distributed_einsum,
    distributed_einsum_with_path,
    distributed_tensordot,
    get_optimal_path,
    print_path_info,
)

RANKS = [1, 2, 3, 4, 7]
A, B, C = (np.random.default_rng(1).random(shape) for shape in ((10, 5), (5, 8), (8, 4)))
EQUATION = "ij,jk,kl->il"
EXPECTED = A @ B @ C


def rooted(ranks, call, *arrays):
    """call(arrays, mpi, distributor) on every rank; the result is on rank 0 only."""

    def work(comm):
        mpi = MPIManager()
        mine = [array if comm.rank == 0 else None for array in arrays]
        return call(mine, mpi, TensorDistributor(mpi))

    results = dist.run_ranks(work, ranks)
    assert all(result is None for result in results[1:])
    return results[0]


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    ranks=st.sampled_from(RANKS),
    strategy=st.sampled_from(["", "split"]),
)
def test_random_equations(seed, ranks, strategy):
    rng = np.random.default_rng(seed)
    equation, shapes = random_equation(rng)
    arrays = [rng.standard_normal(shape) for shape in shapes]

    def call(mine, mpi, distributor):
        return dist.einsum_from_root(mpi.comm, equation, *mine, strategy=strategy)

    try:
        expected = np.einsum(equation, *arrays)
    except ValueError:
        with pytest.raises(
            (cuop.ShapeError, cuop.ExecutionError, cuop.CommunicationError), match="einsum: "
        ):
            rooted(ranks, call, *arrays)
        return
    scale = np.einsum(equation, *[abs(array) for array in arrays])
    result = np.asarray(rooted(ranks, call, *arrays))
    assert result.shape == expected.shape
    assert np.all(abs(result - expected) <= 1e-13 * (scale + 1e-30))


def some_sharding(rng, ranks, ndim):
    """One mesh axis for a dimension, or two of a grid, or none."""
    grid = dist.compute_2d_grid(ranks) if rng.random() < 0.5 else (1, ranks)
    mesh = dist.Mesh(tuple(grid), ("a", "b"))
    axes = [None] * ndim
    for name in ("a", "b"):
        if ndim and rng.random() < 0.8:
            dim = int(rng.integers(0, ndim))
            axes[dim] = name if axes[dim] is None else (axes[dim], name)
    return dist.Sharding(mesh, dist.P(*axes))


def in_parts(comm, arrays, shardings):
    """Arrays of rank 0 as distributed tensors that lie so."""
    return [
        dist.DistTensor.from_root(comm, array if comm.rank == 0 else None).redistribute(sharding)
        for array, sharding in zip(arrays, shardings)
    ]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), ranks=st.sampled_from(RANKS))
def test_tensors_in_parts(seed, ranks):
    rng = np.random.default_rng(seed)
    equation, arrays, expected = random_call(rng)
    lying = [some_sharding(rng, ranks, array.ndim) for array in arrays]
    wanted = some_sharding(rng, ranks, expected.ndim) if rng.random() < 0.5 else None

    def work(comm):
        parts = in_parts(comm, arrays, lying)
        result = dist.einsum(equation, *parts, output=wanted)
        assert wanted is None or result.sharding == wanted
        return np.asarray(result)

    scale = np.einsum(equation, *[abs(array) for array in arrays])
    for result in dist.run_ranks(work, ranks):
        assert result.shape == expected.shape
        assert np.all(abs(result - expected) <= 1e-13 * (scale + 1e-30))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    ranks=st.sampled_from(RANKS),
    share=st.sampled_from([0.0, 0.3, 0.8]),
    dtype=st.sampled_from(["float64", "float16", "int8", "bool"]),
)
def test_slices_keep_to_a_limit(seed, ranks, share, dtype):
    """From the least limit, which the error names, to what the plan without one needs."""
    rng = np.random.default_rng(seed)
    equation, arrays, expected = random_call(rng, dtype)
    lying = [some_sharding(rng, ranks, array.ndim) for array in arrays]
    wanted = some_sharding(rng, ranks, expected.ndim) if rng.random() < 0.5 else None

    def work(comm):
        parts = in_parts(comm, arrays, lying)
        dist.einsum(equation, *parts, output=wanted)
        whole = dist.last_report().plan.memory_per_rank
        try:
            dist.einsum(equation, *parts, output=wanted, memory_limit=0)
            least = 0
        except cuop.errors.Error as error:
            least = int(str(error).split(" bytes)")[0].split("(")[-1])
        limit = least + int(share * max(0, whole - least))
        result = dist.einsum(equation, *parts, output=wanted, memory_limit=limit)
        plan = dist.last_report().plan
        assert plan.memory_per_rank <= limit
        assert wanted is None or result.sharding == wanted
        return np.asarray(result), plan.detail, whole <= limit

    for result, detail, is_enough in dist.run_ranks(work, ranks):
        assert result.shape == expected.shape and result.dtype == dtype
        assert not is_enough or "slices" not in detail
        if dtype in ("int8", "bool"):
            np.testing.assert_array_equal(result, expected)
            continue
        scale = np.einsum(equation, *[abs(array) for array in widened(arrays)])
        bound = 1e-13 if dtype == "float64" else 4e-3 * len(arrays)
        least = 2.0**-14 if dtype == "float16" else 1e-30  # below that float16 has fewer digits
        assert np.all(abs(result - expected) <= bound * np.maximum(scale, least))


@pytest.mark.parametrize("ranks", RANKS)
def test_plans_say_what_is_sliced(ranks):
    rng = np.random.default_rng(5)
    a, b, c = rng.random((6, 300)), rng.random((300, 300)), rng.random((300, 5))

    def work(comm):
        mine = [each if comm.rank == 0 else None for each in (a, b, c)]
        whole = distributed_einsum(EQUATION, *mine, mpi=MPIManager(comm), optimize=False)
        plan = dist.last_report().plan
        needed = plan.memory_per_rank
        with pytest.raises(MPIError, match=r"no plan fits the memory limit of 1000 B.* bytes\)"):
            distributed_einsum(EQUATION, *mine, mpi=MPIManager(comm), memory_limit=1000)
        limit = needed - 8 * 6 * 150
        sliced = distributed_einsum(
            EQUATION, *mine, mpi=MPIManager(comm), optimize=False, memory_limit=limit
        )
        return whole, sliced, needed, limit, dist.last_report().plan

    whole, sliced, needed, limit, plan = dist.run_ranks(work, ranks)[0]
    np.testing.assert_allclose(whole, a @ b @ c, rtol=1e-12)
    np.testing.assert_allclose(sliced, a @ b @ c, rtol=1e-12)
    assert plan.memory_per_rank <= limit < needed
    if ranks == 1:
        assert "slices (" in plan.detail and "flops" in plan.explain()


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimize": "greedy"},
        {"optimize": "optimal"},
        {"use_opt_einsum": False},
        {"optimize": [(0, 1), (0, 1)]},
    ],
)
def test_documented_call(ranks, options):
    result = rooted(
        ranks, lambda mine, mpi, distributor: distributed_einsum(EQUATION, *mine, mpi=mpi, distributor=distributor, **options),
        A, B, C,
    )  # fmt: skip
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-13)


def test_other_ranks_may_leave_the_operands_out():
    def work(comm):
        return distributed_einsum(
            EQUATION, *((A, B, C) if comm.rank == 0 else ()), mpi=MPIManager()
        )

    np.testing.assert_allclose(dist.run_ranks(work, 3)[0], EXPECTED, rtol=1e-13)


def test_false_multiplies_from_left_to_right():
    def work(comm):
        mine = [array if comm.rank == 0 else None for array in (A, B, C)]
        distributed_einsum(EQUATION, *mine, mpi=MPIManager(), use_opt_einsum=False)
        in_order = dist.last_report().plan.detail
        distributed_einsum(EQUATION, *mine, mpi=MPIManager())
        return in_order, dist.last_report().plan.detail

    in_order, found = dist.run_ranks(work, 2)[1]
    assert in_order.startswith("ij,jk->ik") and "jk,kl->jl" in found


@pytest.mark.parametrize("ranks", [1, 3])
def test_paths_are_followed(ranks):
    path, info = get_optimal_path(EQUATION, A.shape, B.shape, C.shape)
    assert path == [(1, 2), (0, 1)] and info.opt_cost == 2 * (5 * 8 * 4 + 10 * 5 * 4)
    theirs = opt_einsum.contract_path(EQUATION, A, B, C)[0]
    for each in (path, theirs, [(0, 1), (0, 1)], [(0, 1, 2)], None):
        result = rooted(
            ranks, lambda mine, mpi, distributor, path=each: distributed_einsum_with_path(
                EQUATION, *mine, mpi=mpi, distributor=distributor, path=path),
            A, B, C,
        )  # fmt: skip
        np.testing.assert_allclose(result, EXPECTED, rtol=1e-13)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "dims", [0, 1, 2, ([0], [2]), ([1, 2], [0, 1]), ([-1, 1], [1, 0]), ((), ())]
)
def test_tensordot(ranks, dims):
    rng = np.random.default_rng(2)
    a, b = (
        rng.random((5, 4, 3)),
        rng.random({1: (3, 2)}.get(dims if isinstance(dims, int) else -1, (4, 3, 5))),
    )
    result = rooted(ranks, lambda mine, mpi, distributor: distributed_tensordot(*mine, dims=dims, mpi=mpi, distributor=distributor), a, b)  # fmt: skip
    np.testing.assert_allclose(result, np.tensordot(a, b, dims), rtol=1e-13)


def test_expressions():
    expression = create_contraction_expression(EQUATION, A.shape, B.shape, C.shape)
    assert expression.path == [(1, 2), (0, 1)] and expression.info.speedup > 1
    assert EQUATION in repr(expression)
    local = expression(A, B, C)
    assert type(local) is np.ndarray
    np.testing.assert_allclose(local, EXPECTED, rtol=1e-13)
    assert isinstance(expression(*map(cuop.asarray, (A, B, C))), cuop.Tensor)
    result = rooted(
        3,
        lambda mine, mpi, distributor: expression(*mine, mpi=mpi, distributor=distributor),
        A,
        B,
        C,
    )
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-13)


def test_what_paths_cost(capsys):
    shapes = [(100, 50), (50, 80), (80, 40)]
    print_path_info(EQUATION, *shapes)
    print_path_info(get_optimal_path(EQUATION, *shapes)[1])
    first, second = capsys.readouterr().out.split("einsum ")[1:]
    assert (
        first == second and "speedup               66.67" in first and "[(1, 2), (0, 1)]" in first
    )
    infos = compare_optimization_strategies(EQUATION, *shapes)
    costs = [info.opt_cost for info in infos.values()]
    assert costs == sorted(costs) and set(infos) == {
        "auto",
        "optimal",
        "greedy",
        "random-greedy",
        "in-order",
    }
    assert infos["in-order"].opt_cost == 2 * (100 * 50 * 80 + 100 * 80 * 40)
    assert set(compare_optimization_strategies(EQUATION, *shapes, strategies=["dp"])) == {"dp"}
    print_path_info(EQUATION, *shapes, memory_limit="40KiB", dtype="float64")
    told = capsys.readouterr().out
    assert "slices  " in told and "flops added by them" in told and "peak of float64" in told
    many = ",".join(["ij"] * 17)
    assert "optimal" not in compare_optimization_strategies(many, *[(2, 2)] * 17)
    with pytest.raises(cuop.DTypeError, match="strategies: needed is a sequence of names"):
        compare_optimization_strategies(EQUATION, *shapes, strategies="auto")
    with pytest.raises(cuop.ExecutionError, match="takes up to 16 tensors"):
        get_optimal_path(many, *[(2, 2)] * 17)


def test_torch_like_kinds_come_back():
    result = rooted(
        2,
        lambda mine, mpi, distributor: distributed_einsum("ij,jk", *mine, mpi=mpi),
        cuop.asarray(A),
        B,
    )
    assert isinstance(result, cuop.Tensor)


ERRORS = [
    (lambda mine, mpi: distributed_einsum("ij,jk->il", *mine, mpi=mpi), "index l of the result"),
    (lambda mine, mpi: distributed_einsum("ij,ik", *mine, mpi=mpi), "index i of"),
    (lambda mine, mpi: distributed_einsum("ij,jk,kl", *mine, mpi=mpi), "3 terms, 2 operands were given"),
    (lambda mine, mpi: distributed_einsum("ij", *mine, mpi=mpi), "1 term, 2 operands were given"),
    (lambda mine, mpi: distributed_einsum("ij,jk", *mine, mpi=mpi, optimize="best"), 'search "best" is unknown'),
    (lambda mine, mpi: distributed_einsum("ij,jk", *mine, mpi=mpi, optimize=("auto", "max_input")), "not every rank knows"),
    (lambda mine, mpi: distributed_einsum_with_path("ij,jk", *mine, mpi=mpi, path=[(0, 3)]), "position 3"),
    (lambda mine, mpi: distributed_einsum("ij,jk", mine[0], "x" if mine[0] is not None else None, mpi=mpi), "operands|array"),
    (lambda mine, mpi: distributed_tensordot(*mine, dims=3, mpi=mpi), "axes is 3"),
    (lambda mine, mpi: distributed_tensordot(*mine, dims="ab", mpi=mpi), "dims"),
    (lambda mine, mpi: distributed_tensordot(*mine, dims=([0], [0]), mpi=mpi), "axis 0 of a has 10 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_errors_are_raised_on_every_rank(call, text):
    def work(comm):
        mine = [array if comm.rank == 0 else None for array in (A, B)]
        mpi = MPIManager()
        with pytest.raises(MPIError, match=text):
            call(mine, mpi)
        result = distributed_einsum("ij,jk", *mine, mpi=mpi)  # they go on
        assert comm.rank > 0 or np.allclose(result, A @ B)
        return True

    assert dist.run_ranks(work, 2) == [True, True]


def test_no_manager_is_an_error_of_its_own():
    with pytest.raises(cuop.DTypeError, match="an MPIManager"):
        distributed_einsum("ij,jk", A, B)


def test_an_operand_that_is_none_in_parts_fails_on_every_rank():
    def work(comm):
        x = dist.DistTensor.from_root(comm, A if comm.rank == 0 else None)
        with pytest.raises(cuop.errors.Error, match="a DistTensor is needed, given ndarray"):
            dist.einsum("ij,kj", x, A if comm.rank == 0 else x)
        with pytest.raises(
            cuop.DTypeError, match="a DistTensor is needed, given the class Tensor$"
        ):
            dist.einsum("ij,kj", x, cuop.Tensor)
        return comm.all_gather(comm.rank)

    assert dist.run_ranks(work, 2) == [[0, 1], [0, 1]]
