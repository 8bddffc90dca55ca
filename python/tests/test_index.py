"""Indexing, gathering and masks against NumPy, over random shapes, index lists, views and dtypes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from layouts import laid_out

import cuop

settings.register_profile("index", max_examples=150, deadline=None)
settings.load_profile("index")

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SIZES = st.integers(0, 5)


def filled(shape, dtype="int64"):
    count = int(np.prod(shape, dtype=np.int64))
    return np.asarray(np.arange(count).reshape(shape) * 7 % 127, dtype)


def strided(rng, array):
    choice = rng.integers(3)
    if choice == 0:
        return np.ascontiguousarray(array.T).T
    if choice == 1 and array.ndim:
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return array


@st.composite
def index_lists(draw, shape):
    """A valid NumPy index for `shape` with every kind of entry."""
    entries, axis = [], 0
    broadcast = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    has_mask = False
    while axis < len(shape):
        kinds = ["slice", "int", "none", "array", "stop", "truth"]
        if broadcast in ((), (1,)) and not has_mask:
            kinds.append("mask")
        kind = draw(st.sampled_from(kinds))
        size = shape[axis]
        if kind == "stop":
            break
        if kind == "none":
            if len(entries) < 6:
                entries.append(None)
            continue
        if kind == "truth":
            if broadcast in ((), (1,)) and len(entries) < 6:
                entries.append(draw(st.booleans()) if not has_mask else True)
                has_mask = True
            continue
        if kind == "slice":
            bound = st.none() | st.integers(-7, 7)
            step = draw(st.none() | st.integers(-3, 3).filter(bool))
            entries.append(slice(draw(bound), draw(bound), step))
            axis += 1
        elif kind == "mask":
            ndim = draw(st.integers(1, len(shape) - axis))
            covered = shape[axis : axis + ndim]
            entries.append(
                np.array(
                    draw(
                        st.lists(
                            st.booleans(),
                            min_size=int(np.prod(covered)),
                            max_size=int(np.prod(covered)),
                        )
                    ),
                    dtype=bool,
                ).reshape(covered)
            )
            axis += ndim
            has_mask = True
        elif size > 0:
            number = st.integers(-size, size - 1)
            if kind == "int":
                entries.append(draw(number))
            else:
                count = int(np.prod(broadcast))
                values = draw(st.lists(number, min_size=count, max_size=count))
                dtype = draw(st.sampled_from([np.int64, np.int32, np.int8]))
                entries.append(np.array(values, dtype).reshape(broadcast))
            axis += 1
        else:
            entries.append(slice(None))
            axis += 1
    if axis < len(shape) or draw(st.booleans()):
        where = draw(st.integers(0, len(entries)))
        # An ellipsis only at the end keeps the entries on the axes they were drawn for.
        if where == len(entries):
            entries.append(Ellipsis)
    return tuple(entries)


def to_cuop(index):
    return tuple(cuop.tensor(i) if isinstance(i, np.ndarray) else i for i in index)


@given(st.data(), st.lists(SIZES, max_size=4), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_get(data, shape, dtype, seed):
    x = strided(np.random.default_rng(seed), filled(shape, dtype))
    index = data.draw(index_lists(tuple(shape)))
    try:
        wanted = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            laid_out(x)[to_cuop(index)]
        return
    result = np.asarray(laid_out(x)[to_cuop(index)])
    assert result.dtype == x.dtype
    assert np.array_equal(result, wanted), index


@given(st.data(), st.lists(SIZES, max_size=4), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_set(data, shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = filled(shape, dtype)
    index = data.draw(index_lists(tuple(shape)))
    try:
        target = x[index].shape
    except IndexError:
        return
    kept = tuple(1 if rng.integers(4) == 0 else size for size in target)
    value_shape = kept[rng.integers(len(kept) + 1) :]
    value = rng.integers(0, 100, value_shape).astype(rng.choice(["int16", "float32"]))
    wanted, result = np.array(x), cuop.tensor(x)
    wanted[index] = value
    result[to_cuop(index)] = cuop.tensor(value)
    assert np.array_equal(np.asarray(result), wanted), index


@pytest.mark.parametrize(
    "index",
    [
        (0, Ellipsis, [1, 2]), ([0, 1], Ellipsis), ([0, 1], slice(None), [1, 2]),
        (slice(None), [1, 2], [0, 1]), (Ellipsis, [0, 1], 1), (0, slice(None), [1]),
        (None, [1], None, [2]), ([], ), (slice(None), []), ([[True, False, True]] * 2,),
        (np.int32(1), np.array(2)), (True,), (False,), (np.bool_(True), [1]), (1, Ellipsis, 2, 0),
        (slice(None, None, 2**70), 1), ([0, 1], Ellipsis, [0, 1], 2), (slice(-(2**80), 2**80),),
    ],
)  # fmt: skip
def test_written_out(index):
    x = filled((2, 3, 4), "float32")
    assert np.array_equal(np.asarray(cuop.tensor(x)[index]), x[index])
    wanted, result = x.copy(), cuop.tensor(x)
    wanted[index], result[index] = -1, -1
    assert np.array_equal(np.asarray(result), wanted)


def test_views_share_and_copies_do_not():
    x = cuop.zeros((4, 5))
    x[1:3, ::2].fill(1)
    x[[0, 3]].fill(9)
    assert np.asarray(x).sum() == 6


def test_assignment_from_itself():
    x = np.arange(10)
    t = cuop.tensor(x)
    t[1:] = t[:-1]
    assert np.array_equal(np.asarray(t), np.r_[0, x[:-1]])
    t = cuop.tensor(x)
    t[[3, 4, 5]] = t[2:5]
    x[[3, 4, 5]] = x[2:5].copy()
    assert np.array_equal(np.asarray(t), x)


def test_the_last_of_repeated_indices_stays():
    count = 100_000
    rng = np.random.default_rng(3)
    where = rng.integers(0, 50, count)
    values = rng.standard_normal(count)
    wanted, result = np.zeros(50), cuop.zeros(50, "float64")
    wanted[where] = values
    result[where] = values
    assert np.array_equal(np.asarray(result), wanted)


def test_large_parallel_gathers():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((300, 500)).astype(np.float32)
    t = cuop.asarray(x)
    rows, columns = rng.integers(-300, 300, 1000), rng.integers(-500, 500, 1000)
    mask = rng.random(x.shape) < 0.3
    for index in [(rows,), (slice(None), columns), (rows, columns), (mask,), (mask[:, 0],),
                  (slice(None), mask[0])]:  # fmt: skip
        assert np.array_equal(np.asarray(t[index]), x[index])
        wanted, result = x.copy(), cuop.tensor(x)
        wanted[index] = 2.5
        result[index] = 2.5
        assert np.array_equal(np.asarray(result), wanted)


def test_iteration():
    x = filled((3, 2))
    assert [np.asarray(row).tolist() for row in cuop.asarray(x)] == x.tolist()
    with pytest.raises(cuop.DTypeError, match="0 dimensions cannot be iterated"):
        iter(cuop.tensor(1.0))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data(), st.sampled_from(DTYPES))
def test_take(shape, data, dtype):
    x = filled(shape, dtype)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    size = x.size if axis is None else shape[axis]
    indices = np.array(data.draw(st.lists(st.integers(-size, size - 1), max_size=6)), np.int64)
    for where in (indices, indices.reshape(-1, 1).astype(np.int16)):
        wanted = np.take(x, where, axis)
        assert np.array_equal(np.asarray(cuop.take(x, where, axis)), wanted)
        out = cuop.tensor(np.zeros_like(wanted))
        cuop.take(x, where, axis, out=out)
        assert np.array_equal(np.asarray(out), wanted)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data(), st.integers(0, 2**32))
def test_along_axis(shape, data, seed):
    rng = np.random.default_rng(seed)
    x = strided(rng, filled(shape))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    index_shape = [1 if rng.integers(3) == 0 else size for size in shape]
    index_shape[axis] = data.draw(st.integers(0, 6))
    where = rng.integers(-shape[axis], shape[axis], index_shape)
    wanted = np.take_along_axis(x, where, axis)
    assert np.array_equal(np.asarray(cuop.take_along_axis(x, where, axis)), wanted)
    target, result = x.copy(), cuop.tensor(x)
    values = rng.integers(0, 99, where.shape)
    np.put_along_axis(target, where, values, axis)
    cuop.put_along_axis(result, where, values, axis)
    assert np.array_equal(np.asarray(result), target)


def test_values_that_do_not_fit_are_named():
    with pytest.raises(cuop.ShapeError, match="put_along_axis: values: shape"):
        cuop.put_along_axis(cuop.zeros((2, 3)), cuop.asarray([[1, 2]]), cuop.zeros(4), 1)


@given(st.lists(SIZES, min_size=1, max_size=3), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_masks(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = strided(rng, (filled(shape) % 3).astype(dtype))
    mask = rng.random(shape[rng.integers(len(shape)) :]) < 0.5
    wide = np.broadcast_to(mask, shape)
    assert np.array_equal(np.asarray(cuop.masked_select(x, mask)), x[wide])
    values = rng.integers(0, 2, shape).astype(dtype)
    assert np.array_equal(np.asarray(cuop.masked_fill(x, mask, values)), np.where(wide, values, x))
    assert cuop.count_nonzero(x) == np.count_nonzero(x)
    for ours, theirs in zip(cuop.nonzero(x), np.nonzero(x), strict=True):
        assert np.array_equal(np.asarray(ours), theirs)


def test_bfloat16_moves():
    x = cuop.tensor([1.5, 2.5, 3.5], "bfloat16")
    assert np.asarray(x[[2, 0]].to("float32")).tolist() == [3.5, 1.5]
    x[cuop.tensor([True, False, True])] = 0.25
    assert np.asarray(x.to("float32")).tolist() == [0.25, 2.5, 0.25]


def read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    return cuop.asarray(array)


def assign(tensor, index, value):
    tensor[index] = value


X = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x[2], IndexError, "index: 2 is out of range for axis 0 of size 2"),
        (lambda x: x[0, -4], IndexError, "index: -4 is out of range"),
        (lambda x: x[[0, 5]], IndexError, "index: 5 is out of range for axis 0 of size 2"),
        (lambda x: x[:, [-4]], IndexError, "index: -4 is out of range for axis 1 of size 3"),
        (lambda x: x[0, 0, 0], IndexError, "index: 3 axes are indexed of a tensor of 2 dimensions"),
        (lambda x: x[..., ...], IndexError, "index: 2 ellipses"),
        (lambda x: x[[True, False, True]], IndexError,
         "index: a mask of shape (3,) does not fit axes of shape (2,) from axis 0 on"),
        (lambda x: x[[0, 1], [0, 1, 2]], IndexError, "do not broadcast"),
        (lambda x: x[[0.5]], cuop.DTypeError, "must be bool or of integers, given float32"),
        (lambda x: x[::0], cuop.ExecutionError, "step of a slice must not be 0"),
        (lambda x: x["a":], cuop.DTypeError, "bounds of a slice"),
        (lambda x: assign(x, 0, [1.0, 2.0]), cuop.ShapeError, "does not broadcast to (3,)"),
        (lambda x: assign(x, [0], [1.0, 2.0]), cuop.ShapeError, "does not broadcast to (1, 3)"),
        (lambda x: assign(read_only(), 0, 1), cuop.ExecutionError, "read-only"),
        (lambda x: cuop.take(x, [7]), IndexError, "take: 7 is out of range for axis 0 of size 6"),
        (lambda x: cuop.take(x, [0.5]), cuop.DTypeError, "take: the indices must be integers"),
        (lambda x: cuop.take(x, [0], 2), cuop.ShapeError, "take: axis 2 is out of range"),
        (lambda x: cuop.take_along_axis(x, [0]), cuop.ShapeError, "must be equal"),
        (lambda x: cuop.take_along_axis(x, [[9]]), IndexError,
         "take_along_axis: 9 is out of range for axis 1 of size 3"),
        (lambda x: cuop.masked_select(x, [1, 0, 1]), cuop.DTypeError, "the mask must be bool"),
        (lambda x: cuop.masked_select(x, [True, False]), cuop.ShapeError, "does not broadcast"),
        (lambda x: cuop.masked_fill(x, [True] * 3, x, out=x[::-1]),
         cuop.ExecutionError, "shares memory"),
        (lambda x: cuop.nonzero(1.0), cuop.ShapeError, "nonzero: a tensor of 0 dimensions"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call(cuop.tensor(X))


TOP = np.array([2**64 - 1], "uint64")  # -1 to who converts it to int64


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[TOP],
        lambda x: assign(x, TOP, 1),
        lambda x: cuop.take(x, TOP),
        lambda x: cuop.take_along_axis(x, TOP, 0),
        lambda x: cuop.gather(x, 0, TOP),
        lambda x: cuop.put_along_axis(x, TOP, 1, 0),
        lambda x: cuop.searchsorted(x, [0.0, 1, 2], sorter=np.array([0, 1, TOP[0]], "uint64")),
    ],
)
def test_indices_beyond_int64_are_outside(call):
    with pytest.raises(IndexError, match=f"{2**64 - 1} is out of range for axis 0 of size 3"):
        call(cuop.zeros(3))


def test_unsigned_indices():
    with pytest.raises(IndexError, match=f"index: {2**64 - 1} is outside every axis"):
        cuop.zeros(3)[TOP[0]]
    x = np.arange(12.0).reshape(3, 4)
    at = np.array([[2, 0], [1, 1]], "uint64")
    assert np.array_equal(cuop.take(x, at, 0), x[at])
    assert np.array_equal(cuop.tensor(x)[at, 1], x[at, 1])


def test_an_error_writes_nothing():
    x = cuop.zeros(5)
    with pytest.raises(IndexError):
        x[[0, 1, 9]] = 1
    assert np.asarray(x).sum() == 0


@given(st.data())
def test_gather_reads_as_far_as_its_indices_reach(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    reach = [data.draw(st.integers(0, size)) for size in shape]
    reach[axis] = data.draw(st.integers(0, 5))
    x = np.arange(np.prod(shape)).reshape(shape)
    indices = data.draw(
        hnp.arrays(np.int64, reach, elements=st.integers(-shape[axis], shape[axis] - 1))
    )
    expected = np.empty(reach, x.dtype)
    for place in np.ndindex(*reach):
        source = list(place)
        source[axis] = indices[place]
        expected[place] = x[tuple(source)]
    np.testing.assert_array_equal(np.asarray(cuop.gather(x, axis, indices)), expected)


def test_gather_refuses_what_it_cannot_read():
    with pytest.raises(cuop.ShapeError, match="gather: the indices have shape .*only along axis 0"):
        cuop.gather([[1, 2]], 0, [[0, 0, 0]])
    with pytest.raises(cuop.ShapeError, match="gather: x has 2 dimensions, the indices have 1"):
        cuop.gather([[1, 2]], 0, [0])
    with pytest.raises(cuop.IndexError, match="gather|index"):
        cuop.gather([1, 2], 0, [2])
    with pytest.raises(cuop.DTypeError, match="gather: the indices must be integers"):
        cuop.gather([1, 2], 0, [0.5])


class Raising:
    """A number whose value cannot be had."""

    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no value"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_bound_raises_is_raised(error):
    x = cuop.zeros((4, 4))
    for bounds in (slice(Raising(error), 3), slice(0, Raising(error)), slice(0, 3, Raising(error))):
        with pytest.raises(type(error)):
            x[bounds]
        with pytest.raises(type(error)):
            x[bounds] = 7
    if not isinstance(error, Exception):
        with pytest.raises(type(error)):
            cuop.zeros((2, Raising(error)))
    assert x.sum().item() == 0
