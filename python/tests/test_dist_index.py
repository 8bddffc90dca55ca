"""x[...] of DistTensors beside NumPy's, and what it moves."""

import numpy as np
import pytest
from test_dist_arithmetic import RANKS, parted, shardings

import cuop
from cuop import dist

KEYS = [
    0,
    -1,
    slice(None),
    slice(1, 4),
    slice(None, None, 2),
    slice(5, 1),
    slice(-3, None),
    slice(None, None, -1),
    slice(4, 0, -2),
    slice(1, 2**70),
    slice(2, None, 2**70),
    slice(None, None, -(2**70)),
    ...,
    None,
    (..., None),
    (2, 1),
    (slice(1, None), -1),
    (None, 1, ..., slice(None, 2)),
    (..., 0),
    (slice(None, None, -2), slice(None, None, -1)),
    (slice(2, 3), None, slice(1, 3)),
    (),
    np.int64(2),
]


def expect(parts, expected, what):
    assert parts.shape == expected.shape and parts.dtype == expected.dtype.name, what
    boxes = [
        tuple(map(tuple, parts.sharding.owner_box(parts.shape, r))) for r in range(parts.comm.size)
    ]
    assert tuple(map(tuple, parts.box)) == boxes[parts.comm.rank]
    np.testing.assert_array_equal(parts.gather_all().to_numpy(), expected, err_msg=str(what))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("shape", [(7, 5), (5, 3, 2), (11,)])
def test_integers_slices_and_new_axes(ranks, shape):
    array = np.arange(np.prod(shape)).reshape(shape)

    def work(comm):
        for sharding in shardings(comm, len(shape)):
            x = parted(comm, array, sharding)
            for key in KEYS:
                try:
                    expected = array[key]
                except IndexError:
                    with pytest.raises(cuop.errors.IndexError):
                        x[key]
                    continue
                sent = comm.bytes_sent
                part = x[key]
                keys = key if isinstance(key, tuple) else (key,)
                if not any(isinstance(k, slice) and (k.step or 1) < 0 for k in keys):
                    assert comm.bytes_sent == sent, key
                expect(part, expected, (sharding, key))
                expect(part + 1, expected + 1, (sharding, key))  # parts like any other

    dist.run_ranks(work, ranks)


def test_rows_stay_with_their_owners():
    array = np.arange(20.0).reshape(5, 4)

    def work(comm):
        line = dist.Mesh.line(3)
        x = parted(comm, array, dist.Sharding(line, dist.P("r", None)))
        uneven = x[1:4]
        assert uneven.sharding == x.sharding.with_blocks(0, [1, 2, 0])
        assert x[:, 2].sharding == dist.Sharding(line, dist.P("r"))
        assert x[:, 2:].sharding == x.sharding and x[...].sharding == x.sharding
        assert x[3].sharding == dist.Sharding.on_rank(line, 1)
        assert x[3, 1].sharding == dist.Sharding.on_rank(line, 1) and x[3, 1].item() == 13.0
        assert x[1::-1].sharding == x.sharding.with_blocks(0, [2, 0, 0])
        assert x[::-1].sharding == x.sharding
        assert x[None].sharding.spec == dist.P(None, "r", None)
        # A part is a view: what is written shows in the whole.
        uneven += 100.0
        assert x[2, 0].item() == 108.0 and x[4, 0].item() == 16.0
        return None

    dist.run_ranks(work, 3)

    def on_a_grid(comm):
        grid = dist.Mesh((2, 2), ("a", "b"))
        x = parted(comm, array, dist.Sharding(grid, dist.P("a", "b")))
        row = x[3]  # the ranks of the second row of the grid have it
        assert row.sharding == dist.Sharding(grid, dist.P(("a", "b"))).with_blocks(0, [0, 0, 2, 2])
        assert x[3, 3].sharding == dist.Sharding.on_rank(grid, 3)
        copies = parted(comm, array, dist.Sharding(grid, dist.P("a")))
        assert copies[3].box == ([(0, 4)] if comm.rank >= 2 else [(0, 0)])

    dist.run_ranks(on_a_grid, 4)


def test_errors_are_those_of_tensors():
    array = np.arange(6.0).reshape(2, 3)

    def work(comm):
        x = parted(comm, array, dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        t = cuop.tensor(array)
        for key in [2, -3, (0, 3), (0, 0, 0), (..., ...), slice(None, None, 0), 2**80, "a", 1.5]:
            with pytest.raises(cuop.errors.Error) as expected:
                t[key]
            with pytest.raises(expected.type) as given:
                x[key]
            assert str(given.value) == str(expected.value)
        for key in [[0, 1], np.array([True, False]), True, cuop.tensor([1])]:
            with pytest.raises(cuop.errors.ExecutionError, match="masks and index arrays"):
                x[key]
        assert len(x) == 2
        for row, expected in zip(x, array, strict=True):
            expect(row, expected, "a row")
        scalar = x[0, 0]
        with pytest.raises(cuop.errors.DTypeError, match="cannot be iterated"):
            iter(scalar)
        with pytest.raises(cuop.errors.DTypeError, match="no length"):
            len(scalar)

    dist.run_ranks(work, 3)


@pytest.mark.parametrize("ranks", RANKS)
def test_assignment(ranks):
    array = np.arange(35.0).reshape(7, 5)

    def work(comm):
        keys = [0, -1, slice(1, 6, 2), (slice(None), 2), slice(5, 0, -2), ..., (3, 3), slice(3, 3)]
        for sharding in shardings(comm, 2):
            for key in keys:
                for shape in [None, (), (1,), array[key].shape, (1, 1, *array[key].shape)]:
                    expected = array.copy()
                    x = parted(comm, array, sharding)
                    if shape is None:
                        expected[key] = -1
                        x[key] = -1
                        expect(x, expected, (sharding, key))
                        continue
                    values = -np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
                    cuop.asarray(expected)[key] = values
                    for where in shardings(comm, len(shape))[:4]:
                        x = parted(comm, array, sharding)
                        x[key] = parted(comm, values, where)
                        expect(x, expected, (sharding, key, where))

    dist.run_ranks(work, ranks)


def test_wrong_assignments():
    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x = parted(comm, np.ones((4, 3), np.int8), rows)
        with pytest.raises(cuop.errors.OverflowError, match="300"):
            x[0] = 300
        with pytest.raises(cuop.errors.IndexError, match="9 is out of range for axis 0 of size 4"):
            x[9] = 1
        with pytest.raises(cuop.errors.ShapeError, match="do not broadcast"):
            x[0] = parted(comm, np.ones(2), rows)
        with pytest.raises(cuop.errors.DTypeError):
            x[0] = parted(comm, np.ones(3, np.complex64), rows)
        with pytest.raises(cuop.errors.DTypeError, match="of this rank alone"):
            x[0] = np.ones(3)
        with pytest.raises(cuop.errors.ExecutionError, match="masks"):
            x[[0, 1]] = 1
        with pytest.raises(cuop.errors.CommunicationError, match="different calls"):
            x[comm.rank] = parted(comm, np.zeros(3), rows)
        x[1] = np.float32(7.0)
        expected = np.ones((4, 3), np.int8)
        expected[1] = 7
        expect(x, expected, "what was right")

    dist.run_ranks(work, 3)
