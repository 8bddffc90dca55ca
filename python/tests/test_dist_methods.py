"""Reductions, transforms and conversions of DistTensors, strict(), and chains of all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import in_threads
from test_dist_arithmetic import RANKS, parted, same, shardings

import cuop
from cuop import dist

GatherError = cuop.errors.GatherError


@pytest.mark.parametrize("ranks", RANKS)
def test_reductions_are_those_of_tensors(ranks):
    rng = np.random.default_rng(0)
    array = rng.standard_normal((7, 5, 3)).astype(np.float32)

    def work(comm):
        for sharding in shardings(comm, 3):
            x, t = parted(comm, array, sharding), cuop.tensor(array)
            for name in ["sum", "mean", "prod", "max", "min", "any", "all"]:
                for axis in [None, 0, -1, (0, 2), (0, 1, 2)]:
                    for keepdims in [False, True]:
                        part = getattr(x, name)(axis, keepdims=keepdims)
                        expected = getattr(t, name)(axis, keepdims=keepdims)
                        assert part.dtype == expected.dtype and part.shape == expected.shape
                        np.testing.assert_allclose(
                            part.gather_all().to_numpy(), expected.to_numpy(), rtol=2e-5, atol=1e-6
                        )
            for mode in ["exact", "compensated"]:
                for name in ["sum", "mean"]:
                    exact = getattr(x, name)(axis=1, mode=mode)
                    expected = getattr(t, name)(axis=1, mode=mode)
                    np.testing.assert_array_equal(exact.gather_all(), expected)
        rows = parted(comm, array, dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        assert rows.sum(1).sharding.spec == dist.P("r", None)
        assert rows.sum().sharding.is_replicated
        with pytest.raises(cuop.errors.ShapeError):
            rows.sum(5)
        with pytest.raises(cuop.errors.ExecutionError, match="mode"):
            rows.sum(mode="odd")
        with pytest.raises(cuop.errors.ShapeError, match="no elements"):
            rows[:0].max()
        assert float(rows[:0].sum()) == 0.0 and rows[:0].all().item() is True

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_reductions_over_no_axis_take_each_element_alone(ranks):
    def work(comm):
        for array in [np.arange(-3, 9).reshape(4, 3), np.full((), -2.5, np.float32)]:
            for sharding in shardings(comm, array.ndim):
                x, t = parted(comm, array, sharding), cuop.tensor(array)
                for name in ["sum", "mean", "prod", "max", "min", "any", "all", "var", "std"]:
                    for keepdims in [False, True]:
                        part = getattr(x, name)((), keepdims=keepdims)
                        same(part, getattr(t, name)((), keepdims=keepdims), name)
                same(x.sum((), dtype="float64"), t.sum((), dtype="float64"), "dtype")
        rows = parted(comm, np.ones((4, 3)), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        assert rows.sum(()).box == rows.box

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
def test_functions_over_no_axis_take_each_element_alone(ranks, name):
    x = np.arange(-3, 9, dtype="int32").reshape(4, 3)
    everywhere = dist.Sharding.replicated(dist.Mesh.line(ranks))
    most = np.ones((1,) * 32)

    def work(comm):
        given = x if comm.rank == 0 else None
        expected = getattr(cuop.tensor(x), name)(())
        for sharding in shardings(comm, 2):
            part = getattr(dist, name)(parted(comm, x, sharding), (), True, output=everywhere)
            assert part.sharding == everywhere
            same(part, expected, name)
        result = getattr(dist, f"{name}_from_root")(comm, given, dim=())
        assert (result is None) == (comm.rank != 0)
        if result is not None:
            np.testing.assert_array_equal(result.numpy(), expected.numpy())
            assert result.dtype == expected.dtype
        with pytest.raises(
            cuop.errors.Error, match="over no axis x may have at most 31 dimensions"
        ):
            getattr(dist, f"{name}_from_root")(comm, most if comm.rank == 0 else None, dim=())

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_what_is_gathered_has_memory_of_its_own(ranks):
    def work(comm):
        given = np.ones((4, 3))
        for sharding in shardings(comm, 2):
            x = parted(comm, given, sharding)
            before = None if x.local is None else x.local.numpy()
            for gathered in [x.gather_all(), x.gather(comm.size - 1)]:
                if gathered is not None:
                    gathered[...] = 7
            comm.barrier()
            assert before is None or np.array_equal(x.local.numpy(), before)
            assert (x.gather_all().numpy() == 1).all()

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_transforms_are_numpys(ranks):
    rng = np.random.default_rng(0)
    grid, stack = rng.standard_normal((9, 10)), rng.standard_normal((5, 4, 6))

    def close(part, expected):
        np.testing.assert_allclose(part.gather_all().to_numpy(), expected, atol=1e-12)

    def work(comm):
        for sharding in shardings(comm, 2):
            x = parted(comm, grid, sharding)
            for norm in [None, "ortho", "forward"]:
                close(x.fft2d(norm), np.fft.fft2(grid, norm=norm))
                close(x.fft2d(norm).ifft2d(norm), grid)
                for axis in [0, -1]:
                    close(x.fft(axis=axis, norm=norm), np.fft.fft(grid, axis=axis, norm=norm))
                    close(x.rfft(8, axis=axis), np.fft.rfft(grid, 8, axis=axis))
                    close(x.ifft(12, axis=axis), np.fft.ifft(grid, 12, axis=axis))
                    close(x.irfft(7, axis=axis), np.fft.irfft(grid, 7, axis=axis))
        for sharding in shardings(comm, 3):
            x = parted(comm, stack, sharding)
            close(x.fft2d(), np.fft.fft2(stack))
            close(x.fft2d().ifft2d(), stack)
        assert x.fft2d().sharding.spec != dist.P()
        line = parted(comm, grid[0], dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        for wrong in [line.fft2d, lambda: line.fft(axis=3), lambda: line.fft(0)]:
            with pytest.raises(cuop.errors.ShapeError):
                wrong()
        with pytest.raises(cuop.errors.Error, match="norm"):
            line.fft(norm="odd")

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_conversions_gather_on_all_ranks(ranks):
    array = np.arange(6.0).reshape(2, 3)

    def work(comm):
        for sharding in shardings(comm, 2):
            x = parted(comm, array, sharding)
            for whole in [np.asarray(x), x.numpy(), x.to_numpy(), x.tolist()]:
                np.testing.assert_array_equal(whole, array)
            if cuop.current_device().type == "cpu":  # NumPy takes nothing else by DLPack
                np.testing.assert_array_equal(np.from_dlpack(x), array)
            assert np.asarray(x, dtype="float32").dtype == np.float32
            assert cuop.tensor(x).shape == (2, 3)
            assert x[1, 2].item() == 5.0 and float(x[1, 2]) == 5.0 and int(x[1, 1]) == 4
            assert complex(x[0, 1]) == 1 and not x[0, 0] and bool(x.any())
            assert range(9)[x.astype("int64")[1, 0]] == 3
            with pytest.raises(cuop.errors.DTypeError, match="no integer"):
                x[0, 0].__index__()
            for convert in [float, int, bool, complex, lambda x: x.item()]:
                with pytest.raises(cuop.errors.ShapeError, match="has 6 elements, needed is 1"):
                    convert(x)
        # What lies on all ranks is converted by each of them alone.
        if comm.rank == 0:
            copies = parted(comm, array, dist.Sharding.replicated(dist.Mesh.line(comm.size)))
            np.testing.assert_array_equal(copies, array)

    dist.run_ranks(work, ranks)


def test_strict_forbids_what_gathers_silently():
    array = np.arange(70.0).reshape(14, 5)

    def work(comm):
        line = dist.Mesh.line(comm.size)
        x = parted(comm, array, dist.Sharding(line, dist.P("r")))
        row = parted(comm, array[:1], dist.Sharding(line, dist.P(None, "r")))
        assert not dist.is_strict()
        with dist.strict():
            assert dist.is_strict()
            text = r"add: strict\(\) forbids to gather silently: b \(1, 5\): P\(None, \"r\"\) on "
            with pytest.raises(GatherError, match=text + r".*whole on 3 ranks \(\d+ B moved\)"):
                x + row
            with pytest.raises(GatherError, match="redistribute"):
                x += row
            with pytest.raises(GatherError, match="redistribute"):
                x[...] = row
            for convert in [
                np.asarray,
                np.from_dlpack,
                cuop.tensor,
                cuop.sum,
                lambda x: x.tolist(),
                lambda x: x.numpy(),
                lambda x: cuop.matmul(cuop.eye(14), x),
            ]:
                with pytest.raises(GatherError, match="gather_all"):
                    convert(x)
            with pytest.raises(GatherError, match="on rank 0 makes it whole there"):
                x[:, 0].fft()
            # What says so, what has one element, and what stays in parts.
            np.testing.assert_array_equal(x.gather_all(), array)
            x.gather(1)
            copies = row.redistribute(dist.Sharding.replicated(line))
            np.testing.assert_array_equal((x + copies).gather_all(), array + array[:1])
            np.testing.assert_array_equal(copies, array[:1])
            assert float(x.sum()) == array.sum() and x[3, 4].item() == array[3, 4]
            assert [float(row[0]) for row in x] == array[:, 0].tolist()
            with pytest.raises(GatherError, match=r"B \(5, 14\).* or force strategy .*k_split"):
                x @ x.T
            dist.matmul(x, x.T, strategy="k_split")
            dist.sum(x, output=dist.Sharding.on_rank(line, 0))
        assert not dist.is_strict()
        np.testing.assert_array_equal(x, array)
        np.testing.assert_array_equal((x + row).gather_all(), array + array[:1])

    dist.run_ranks(work, 3)


def test_strict_is_a_matter_of_threads():
    with dist.strict():
        assert in_threads(dist.is_strict) == [False]
        assert dist.run_ranks(lambda comm: dist.is_strict(), 3) == [True] * 3
        with pytest.raises(ValueError), dist.strict():
            raise ValueError
        assert dist.is_strict()
    assert dist.run_ranks(lambda comm: dist.is_strict(), 2) == [False] * 2

    @dist.strict()
    def decorated():
        return dist.is_strict()

    assert decorated() and not dist.is_strict()


def test_ranks_must_agree_on_strict():
    def work(comm):
        x = parted(comm, np.ones(6), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        dist._dist._set_strict(comm.rank == 1)
        with pytest.raises(cuop.errors.CommunicationError, match="different calls"):
            x + x
        with pytest.raises((GatherError, cuop.errors.CommunicationError)):
            np.asarray(x)

    dist.run_ranks(work, 3)


STEPS = {
    "add": lambda x: x + 1,
    "scale": lambda x: 2 * x - 0.5,
    "divide": lambda x: x / (abs(x) + 3),
    "square": lambda x: x * x,
    "where": lambda x: where(abs(x) > 1, x, -x),
    "transpose": lambda x: x.T,
    "first": lambda x: x[1:],
    "stride": lambda x: x[:, ::2],
    "reverse": lambda x: x[::-1],
    "column": lambda x: x[:, -1:],
    "row": lambda x: x[0][None],
    "centre": lambda x: x - x.mean(axis=0, keepdims=True),
    "total": lambda x: x + x.sum(axis=1, keepdims=True),
    "gram": lambda x: x @ x.T,
    "widen": lambda x: x[:, :1] + x[:1, :],
}


def where(condition, a, b):
    is_parts = isinstance(condition, dist.DistTensor)
    return cuop.where(condition, a, b) if is_parts else np.where(condition, a, b)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    st.tuples(st.sampled_from([0, 1, 2, 5, 11]), st.sampled_from([1, 3, 7])),
    st.sampled_from(RANKS),
    st.integers(0, 8),
    st.integers(0, 99),
)
def test_random_chains_are_numpys(steps, shape, ranks, layout, seed):
    array = np.random.default_rng(seed).uniform(-1, 1, shape)

    def work(comm):
        choices = shardings(comm, 2)
        expected, x = array, parted(comm, array, choices[layout % len(choices)])
        for step in steps:
            if expected.size == 0 and step == "centre":
                continue  # NumPy warns of means of nothing
            try:
                with np.errstate(all="ignore"):
                    expected = STEPS[step](expected)
            except IndexError:
                with pytest.raises(cuop.errors.IndexError):
                    STEPS[step](x)
                break
            x = STEPS[step](x)
            assert x.shape == expected.shape and x.dtype == expected.dtype.name
        np.testing.assert_allclose(x.gather_all().to_numpy(), expected, rtol=1e-9, atol=1e-12)

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_numbers_of_distributed_tensors(ranks):
    array = np.arange(12.0).reshape(4, 3)

    def work(comm):
        x = parted(comm, array, dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None)))
        assert 5.0 in x and 99 not in x and None not in x
        assert f"{x.sum():.2f}" == "66.00" and f"{x}" == str(x)
        with pytest.raises(
            cuop.ShapeError, match="^format: the tensor has 12 elements, needed is 1$"
        ):
            f"{x:.2f}"
        with pytest.raises(
            cuop.ShapeError, match=r"^bool: the tensor has 12 .* any\(\) or all\(\)"
        ):
            bool(x)
        with pytest.raises(cuop.ExecutionError, match="a distributed mask of its first dimensions"):
            x[[0, 1]]

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_product_with_an_array_of_one_rank_is_refused(ranks):
    def work(comm):
        x = parted(
            comm, np.ones((4, 3)), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None))
        )
        for here in [cuop.ones((2, 4), dtype="float64"), np.ones((2, 4))]:
            with pytest.raises(cuop.DTypeError, match="beside a DistTensor needed is another one"):
                here @ x
            with pytest.raises(cuop.DTypeError, match="beside a DistTensor needed is another one"):
                x @ here.T
        for wrong in [lambda: 2.0 @ x, lambda: x @ 2.0]:
            with pytest.raises(cuop.ShapeError, match="matmul: a number was given"):
                wrong()
        with pytest.raises(TypeError, match="unsupported operand"):
            object() @ x

    dist.run_ranks(work, ranks)
