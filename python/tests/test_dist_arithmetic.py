"""Arithmetic, indexing and reductions of DistTensors beside the same on tensors of one process."""

import operator

import numpy as np
import pytest

import cuop
from cuop import dist

RANKS = [1, 2, 3, 4, 7]
SYMBOLS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
    operator.iand,
    operator.ior,
    operator.ixor,
    operator.ilshift,
    operator.irshift,
]


def shardings(comm, ndim):
    """Layouts of a tensor of so many dimensions: lines along each, grids, copies, one rank."""
    line = dist.Mesh.line(comm.size)
    rows, cols = dist.compute_2d_grid(comm.size)
    grid = dist.Mesh((rows, cols), ("a", "b"))
    found = [dist.Sharding.replicated(line), dist.Sharding.on_rank(line, comm.size - 1)]
    for dim in range(ndim):
        found.append(dist.Sharding(line, dist.P(*[None] * dim, "r")))
        found.append(dist.Sharding(grid, dist.P(*[None] * dim, "b")))
        found.append(dist.Sharding(grid, dist.P(*[None] * dim, ("b", "a"))))
    if ndim > 1:
        found.append(dist.Sharding(grid, dist.P("a", *[None] * (ndim - 2), "b")))
    return found


def parted(comm, array, sharding):
    """The array laid out so; every rank cuts its part from its own copy."""
    array = np.asarray(array)
    box = sharding.owner_box(array.shape, comm.rank)
    is_elsewhere = sharding.single_rank not in (-1, comm.rank)
    local = None
    if not (is_elsewhere and array.ndim == 0):
        local = cuop.tensor(array[tuple(slice(low, high) for low, high in box)].copy())
        local = local.to(cuop.current_device())
    return dist.DistTensor(comm, sharding, array.shape, array.dtype.name, local)


def outcome(work):
    """What a call gives: dtype and elements, or the type of its error."""
    try:
        result = work()
    except (cuop.errors.Error, TypeError) as error:
        return type(error), str(error)
    return result


def same(given, expected, what):
    if isinstance(expected, tuple):
        assert isinstance(given, tuple) and given[0] is expected[0], (what, given, expected)
        return
    assert not isinstance(given, tuple), (what, given)
    assert given.dtype == expected.dtype and given.shape == expected.shape, what
    whole = given.gather_all() if isinstance(given, dist.DistTensor) else given
    np.testing.assert_array_equal(whole.to_numpy(), expected.to_numpy(), err_msg=str(what))


NUMBERS = [3, -2, 2.5, True, 1 + 2j, 300, 2**63, np.float64(1.5), np.int8(3), np.complex64(1j)]
DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_parts_give_what_they_give_beside_tensors(dtype):
    array = np.arange(1, 8).astype(dtype)

    def work(comm):
        x = cuop.tensor(array)
        parts = parted(comm, array, dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        with np.errstate(all="ignore"):
            for symbol in SYMBOLS:
                for number in NUMBERS:
                    what = (symbol.__name__, dtype, number)
                    same(
                        outcome(lambda: symbol(parts, number)),  # noqa: B023
                        outcome(lambda: symbol(x, number)),  # noqa: B023
                        what,
                    )
                    same(
                        outcome(lambda: symbol(number, parts)),  # noqa: B023
                        outcome(lambda: symbol(number, x)),  # noqa: B023
                        what,
                    )

    dist.run_ranks(work, 3)


@pytest.mark.parametrize("ranks", RANKS)
def test_functions_of_the_table_compute_parts_where_they_lie(ranks):
    array = np.linspace(-2.0, 2.0, 35, dtype=np.float32).reshape(7, 5)

    def work(comm):
        for sharding in shardings(comm, 2):
            parts = parted(comm, array, sharding)
            sent = comm.bytes_sent
            for row in cuop.elementwise_table():
                function = getattr(cuop, row["name"])
                others = [0.5, 1.5][: len(row["parameters"]) - 1]
                result = outcome(lambda: function(parts, *others))  # noqa: B023
                expected = outcome(lambda: function(cuop.tensor(array), *others))  # noqa: B023
                if isinstance(expected, tuple):
                    same(result, expected, row["name"])
                    continue
                assert isinstance(result, dist.DistTensor) and result.sharding == sharding
                assert result.dtype == expected.dtype
                assert comm.bytes_sent == sent
                same(result, expected, row["name"])
                sent = comm.bytes_sent
            same(-parts, cuop.tensor(-array), "-x")
            same(abs(parts), cuop.tensor(abs(array)), "abs")
            same(+parts, cuop.tensor(array), "+x")
            same(cuop.absolute(parts), cuop.tensor(abs(array)), "another name")
            same(cuop.clamp(parts, max=1), cuop.clamp(cuop.tensor(array), max=1), "clamp")
            same(cuop.clip(parts), cuop.tensor(array), "clip by nothing")
            small = parted(comm, np.arange(7), dist.Sharding(dist.Mesh.line(ranks), dist.P("r")))
            same(~small, cuop.tensor(~np.arange(7)), "~x")

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_tensors_under_different_shardings_broadcast(ranks):
    pairs = [((5, 3), (5, 3)), ((5, 3), (3,)), ((5, 1), (1, 4)), ((2, 3, 4), ()), ((0, 3), (1, 3))]
    pairs += [((), ()), ((7,), (1,)), ((1, 3), (2, 13, 1))]

    def noise(shape, seed):
        return np.random.default_rng(seed).standard_normal(shape)

    def work(comm):
        for shape_a, shape_b in pairs:
            a, b = noise(shape_a, 1).astype("float32"), noise(shape_b, 2)
            for sharding_a in shardings(comm, len(shape_a)):
                for sharding_b in shardings(comm, len(shape_b)):
                    x, y = parted(comm, a, sharding_a), parted(comm, b, sharding_b)
                    same(x + y, cuop.tensor(a) + cuop.tensor(b), (sharding_a, sharding_b))
                    same(y > x, cuop.tensor(b) > cuop.tensor(a), (sharding_a, sharding_b))
            chosen = cuop.where(x > y, x, 0)
            same(chosen, cuop.where(cuop.tensor(a) > cuop.tensor(b), cuop.tensor(a), 0), "where")
            same(cuop.maximum(1, x), cuop.maximum(1, cuop.tensor(a)), "maximum")

    dist.run_ranks(work, ranks)


def test_results_lie_where_the_fewest_bytes_move():
    def work(comm):
        line = dist.Mesh.line(comm.size)
        rows, columns = dist.Sharding(line, dist.P("r")), dist.Sharding(line, dist.P(None, "r"))
        copies = dist.Sharding.replicated(line)
        wide, narrow = np.ones((60, 90)), np.ones((60, 90), np.float32)
        x, y = parted(comm, wide, rows), parted(comm, narrow, columns)
        for result in [x + y, y + x]:
            assert result.sharding.spec == dist.P("r")  # half as many bytes move to it
            assert dist.last_report().plan.bytes == 60 * 90 * 4 * (comm.size - 1) // comm.size
        for whole in [np.ones((60, 90)), np.ones(90), np.ones((60, 1)), np.ones(())]:
            result = parted(comm, whole, copies) * y
            assert result.sharding.spec == columns.spec and dist.last_report().plan.bytes == 0
        # A column in parts keeps rows in parts beside what lies on all ranks.
        column = parted(comm, np.ones((60, 1)), rows)
        result = parted(comm, wide, copies) + column
        assert result.sharding.spec == dist.P("r", None) and dist.last_report().plan.bytes == 0
        centred = x - x.mean(1, keepdims=True)
        assert centred.sharding == rows and dist.last_report().plan.bytes == 0
        uneven = dist.DistTensor.from_parts(comm, cuop.ones((comm.rank, 1), "float64"))
        result = uneven + parted(comm, np.ones((1, 5)), copies)
        assert result.box == [uneven.box[0], (0, 5)]

    dist.run_ranks(work, 3)


@pytest.mark.parametrize("ranks", RANKS)
def test_in_place_forms_change_the_parts(ranks):
    def work(comm):
        base = np.arange(1, 22).reshape(7, 3)
        for sharding in shardings(comm, 2):
            for symbol in IN_PLACE:
                for other in [2, 2.5, np.arange(1, 4), np.ones((7, 3), np.int64)]:
                    for dtype in ["int64", "float32"]:
                        x = cuop.tensor(base.astype(dtype))
                        parts = parted(comm, base.astype(dtype), sharding)
                        before = parts
                        beside = other
                        if isinstance(other, np.ndarray):
                            rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
                            beside = parted(comm, other, rows)
                        given = outcome(lambda: symbol(parts, beside))  # noqa: B023
                        expected = outcome(lambda: symbol(x, other))  # noqa: B023
                        same(given, expected, (symbol.__name__, dtype, str(other)))
                        assert isinstance(given, tuple) or given is before

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_products_with_vectors_are_those_of_tensors(ranks):
    shapes = [((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((2, 4, 5), (5,)), ((5,), (2, 5, 3))]
    shapes += [((0,), (0,)), ((1,), (1, 7)), ((3, 0), (0,))]
    wrong = [((5,), (4,)), ((4, 5), (4,)), ((), (5,)), ((5,), ()), ((5,), (4, 5))]

    def work(comm):
        for first, second in shapes + wrong:
            a, b = (np.arange(float(np.prod(s))).reshape(s) - 3 for s in (first, second))
            expected = outcome(lambda: cuop.tensor(a) @ cuop.tensor(b))  # noqa: B023
            for left in shardings(comm, a.ndim):
                for right in shardings(comm, b.ndim):
                    x, y = parted(comm, a, left), parted(comm, b, right)
                    given = outcome(lambda: x @ y)  # noqa: B023
                    same(given, expected, (first, second, left, right))

    dist.run_ranks(work, ranks)


def test_conversions_are_refused_on_ranks_without_a_part_too():
    def work(comm):
        idle = dist.Mesh((1,), ("r",), idle=comm.size - 1)
        for array in [np.ones((), np.complex64), np.ones(2, np.complex64)]:
            x = parted(comm, array, dist.Sharding(idle, dist.P()))
            on_last = x.redistribute(dist.Sharding.on_rank(dist.Mesh.line(comm.size), 1))
            for parts in [x, on_last]:
                with pytest.raises(cuop.errors.DTypeError, match="would drop the imaginary part"):
                    parts.astype("float32")
                assert parts.astype("bool").dtype == cuop.bool

    dist.run_ranks(work, 3)


def test_in_place_refuses_what_does_not_fit():
    def work(comm):
        line = dist.Mesh.line(comm.size)
        x = parted(comm, np.ones((1, 3)), dist.Sharding(line, dist.P("r")))
        with pytest.raises(cuop.errors.ShapeError, match="add in place: .*does not broadcast"):
            x += parted(comm, np.ones((4, 3)), dist.Sharding(line, dist.P("r")))
        with pytest.raises(cuop.errors.DTypeError):
            x += parted(comm, np.ones(3, np.complex64), dist.Sharding.replicated(line))
        same(x, cuop.tensor(np.ones((1, 3))), "unchanged")

    dist.run_ranks(work, 3)


def test_what_does_not_go_beside_parts():
    def work(comm):
        x = parted(comm, np.ones(6), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        for other in [np.ones(6), cuop.ones(6)]:
            for call in [
                lambda: x + other,  # noqa: B023
                lambda: other + x,  # noqa: B023
                lambda: cuop.add(x, other),  # noqa: B023
                lambda: cuop.add(other, x),  # noqa: B023
                lambda: x @ other,  # noqa: B023
            ]:
                with pytest.raises(cuop.errors.DTypeError, match="of this rank alone"):
                    call()
        for other in ["a", None, [1.0] * 6, object()]:
            with pytest.raises(TypeError):
                x + other
        with pytest.raises(TypeError):
            np.exp(x)
        assert (x == None) is False and (x != None) is True  # noqa: E711
        assert len({x, x}) == 1
        other = comm.split(0, -comm.rank)
        y = parted(other, np.ones(6), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        with pytest.raises(cuop.errors.ExecutionError, match="another communicator"):
            cuop.maximum(x, y)
        with pytest.raises(cuop.errors.ExecutionError, match="another communicator"):
            x += y
        with pytest.raises(cuop.errors.ShapeError, match=r"shapes \(6,\) and \(5,\)"):
            x + parted(comm, np.ones(5), x.sharding.replicated(x.sharding.mesh))
        unmade = dist.DistTensor.__new__(dist.DistTensor)
        with pytest.raises(cuop.errors.Error):
            unmade + 1

    dist.run_ranks(work, 2)


def test_numbers_that_differ_between_ranks_are_noticed_beside_several_tensors():
    def work(comm):
        x = parted(comm, np.ones(6), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        for mine in [0.1 + comm.rank * 1e-12, [1, 1.0, True][comm.rank]]:
            with pytest.raises(cuop.errors.CommunicationError, match="different calls"):
                cuop.where(x, x, mine)

    dist.run_ranks(work, 3)
