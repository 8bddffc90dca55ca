"""MPIManager and TensorDistributor on ranks that are threads."""

import time

import numpy as np
import pytest

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu.mpi_manager import MAX, SUM

RANKS = [1, 2, 3, 4, 7]


def on_ranks(ranks, work):
    return dist.run_ranks(lambda comm: work(MPIManager()), ranks)


def test_a_plain_process_is_one_rank():
    mpi = MPIManager()
    assert (mpi.get_rank(), mpi.get_size(), mpi.is_master_process()) == (0, 1, True)
    assert mpi.get_gpu_id() == (0 if cuop.current_device().type == "cuda" else -1)
    assert mpi.get_neighbors() == (None, None)
    assert mpi.check_health()
    mpi.synchronize()
    assert mpi.clear_pinned_pool() >= 0


@pytest.mark.parametrize("ranks", RANKS)
def test_objects_travel(ranks):
    def work(mpi):
        rank = mpi.get_rank()
        assert mpi.broadcast({"from": rank}, root=ranks - 1) == {"from": ranks - 1}
        assert mpi.scatter(list("abcdefg")[:ranks] if rank == 0 else None) == "abcdefg"[rank]
        assert mpi.gather(rank * rank) == ([r * r for r in range(ranks)] if rank == 0 else None)
        assert mpi.allgather((rank,)) == [(r,) for r in range(ranks)]
        assert mpi.allreduce(rank + 1) == ranks * (ranks + 1) // 2
        assert mpi.allreduce(rank, op=MAX) == ranks - 1
        spelled = mpi.reduce(str(rank), op=lambda a, b: a + b)
        assert spelled == ("".join(map(str, range(ranks))) if rank == 0 else None)
        right, left = (rank + 1) % ranks, (rank - 1) % ranks
        assert mpi.sendrecv(rank, right, left) == left
        if ranks > 1 and rank == 0:
            mpi.send([1, 2], 1, tag=5)
        if rank == 1:
            assert mpi.recv(0, tag=5) == [1, 2]
        mpi.barrier()
        return mpi.get_neighbors()

    neighbors = on_ranks(ranks, work)
    assert neighbors[0][0] is None and neighbors[-1][1] is None
    if ranks > 2:
        assert neighbors[1] == (0, 2)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_blocks_and_back(ranks, dim):
    x = np.arange(60.0).reshape(5, 4, 3)

    def work(mpi):
        distributor = TensorDistributor(mpi)
        root = mpi.is_master_process()
        mine = distributor.distribute(x if root else None, dim)
        start, stop = distributor.get_local_range(x.shape[dim])
        assert stop - start == distributor.calculate_split_sizes(x.shape[dim])[mpi.get_rank()]
        np.testing.assert_array_equal(mine, np.take(x, range(start, stop), dim))
        np.testing.assert_array_equal(distributor.allgather(mine, dim), x)
        np.testing.assert_array_equal(distributor.broadcast(x if root else None), x)
        part, whole = distributor.distribute_with_broadcast(
            x if root else None, x[0] if root else None, dim
        )
        np.testing.assert_array_equal(part, mine)
        np.testing.assert_array_equal(whole, x[0])
        total = distributor.reduce_sum(np.full(3, mpi.get_rank() + 1.0))
        assert (total is None) != root
        if root:
            np.testing.assert_array_equal(total, np.full(3, ranks * (ranks + 1) / 2))
        np.testing.assert_array_equal(mpi.allreduce_tensor(np.ones(2), SUM), np.full(2, ranks))
        return distributor.gather(mine, dim)

    results = on_ranks(ranks, work)
    np.testing.assert_array_equal(results[0], x)
    assert all(result is None for result in results[1:])


@pytest.mark.parametrize("ranks", RANKS)
def test_parts_have_memory_of_their_own(ranks):
    def work(mpi):
        distributor = TensorDistributor(mpi)
        x = np.ones((4 * ranks, 3))
        for view in [x, x[::-1], x.T, x[1::2]]:
            root = view if mpi.is_master_process() else None
            for result in [
                distributor.distribute(root),
                distributor.distribute_compressed(root),
                *distributor.distribute_2d(root, root, 1, ranks),
                distributor.gather(view),
                distributor.allgather(view),
                distributor.gather_compressed(view),
                distributor.reduce_sum(view),
                mpi.allreduce_tensor(view),
            ]:
                if result is not None:
                    result[...] = 7
            assert (x == 1).all()
            everywhere = distributor.broadcast(root)
            assert np.shares_memory(everywhere, x) == mpi.is_master_process()

    on_ranks(ranks, work)


@pytest.mark.parametrize("grid", [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_blocks_of_a_product_on_a_grid(grid):
    a, b = np.random.default_rng(0).standard_normal((2, 7, 7))

    def work(mpi):
        distributor = TensorDistributor(mpi)
        given = (a, b) if mpi.is_master_process() else (None, None)
        rows, columns = distributor.distribute_2d(*given, *grid)
        return distributor.gather_2d(rows @ columns, *grid, 7, 7)

    results = on_ranks(grid[0] * grid[1], work)
    np.testing.assert_allclose(results[0], a @ b, atol=1e-13)
    assert all(result is None for result in results[1:])


def test_kinds_are_kept_on_every_rank():
    def work(mpi):
        x = cuop.asarray(np.ones((4, 2))) if mpi.is_master_process() else None
        assert isinstance(mpi.scatter_tensor(x), cuop.Tensor)
        return type(mpi.broadcast_tensor(np.ones(3) if x is not None else None))

    assert on_ranks(3, work) == [np.ndarray] * 3


def test_errors_reach_every_rank():
    def work(mpi):
        with pytest.raises(MPIError) as caught:
            mpi.scatter_tensor(np.ones((2, 2)), dim=2)
        assert "dim 2 is out of range" in str(caught.value)
        with pytest.raises(MPIError) as caught:
            mpi.gather_tensor(np.ones((mpi.get_rank() + 1, 2)), dim=1)
        assert "rank 1 holds float64 (2, 2)" in str(caught.value)
        block = np.ones((1, 1)) if mpi.get_rank() == 1 else np.ones((2, 4))
        with pytest.raises(MPIError) as caught:
            TensorDistributor(mpi).gather_2d(block, 2, 1, 4, 4)
        assert caught.value.rank == 1
        with pytest.raises(MPIError, match="possible are"):
            mpi.allreduce(1, op="median")
        return mpi.allreduce(1)

    assert on_ranks(2, work) == [2, 2]


@pytest.mark.parametrize("name", ["barrier", "synchronize"])
def test_nobody_goes_on_before_all_have_come(name):
    come = []

    def work(mpi):
        if mpi.get_rank() == 1:
            time.sleep(0.2)
        come.append(mpi.get_rank())
        getattr(mpi, name)()
        return len(come)

    assert on_ranks(3, work) == [3, 3, 3]


def test_printing_keeps_the_ranks_in_order(capsys):
    def work(mpi):
        mpi.print_master("only once")
        mpi.print_all("rank says", mpi.get_rank())

    on_ranks(2, work)
    assert capsys.readouterr().out == "only once\n[rank 0] rank says 0\n[rank 1] rank says 1\n"


@pytest.mark.parametrize("culprits", [[1], [0, 1, 2]])
def test_what_a_placing_function_raises_reaches_every_rank(culprits):
    def work(mpi):
        def place(x):
            if mpi.get_rank() in culprits:
                raise ZeroDivisionError("nothing to divide by")
            return x.local

        with pytest.raises((ZeroDivisionError, MPIError), match="nothing to divide by") as caught:
            mpi.place_tensor(np.ones(3) if mpi.is_master_process() else None, place)
        assert (mpi.get_rank() in culprits) == isinstance(caught.value, ZeroDivisionError)
        with pytest.raises(
            MPIError, match="place_tensor: place: needed is a function that returns"
        ):
            mpi.place_tensor(np.ones(3), lambda x: 5)
        with pytest.raises(MPIError, match="scatter_tensor: dim 5 is out of range"):
            mpi.scatter_tensor(np.ones(3), 5)

    on_ranks(3, work)
