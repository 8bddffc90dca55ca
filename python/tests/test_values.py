"""Numbers that a dtype cannot hold, conversions of whole arrays, and views that are huge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
common = settings(max_examples=100, deadline=None)


def small(dtype="int8"):
    return cuop.zeros((3,), dtype)


def assign(key, value, dtype="int8"):
    tensor = small(dtype)
    tensor[key] = value
    return tensor


REFUSED = {
    "full": lambda: cuop.full((2,), 300, "int8"),
    "fill": lambda: small().fill(300),
    "index assignment": lambda: assign(0, 300),
    "arange": lambda: cuop.arange(300, 310, dtype="int8"),
    "linspace": lambda: cuop.linspace(0, 300, 4, dtype="int8"),
    "logspace": lambda: cuop.logspace(0, 300, 2, base=1.0191, dtype="int8"),
    "pad": lambda: cuop.pad(small(), 1, constant_values=300),
    "tensor": lambda: cuop.tensor([1, 300], "int8"),
    "masked_fill": lambda: cuop.masked_fill(small(), np.array([True, False, True]), 300),
    "put_along_axis": lambda: cuop.put_along_axis(small(), [0], 300, 0),
    "clip": lambda: cuop.clip(small(), 0, 300),
    "where": lambda: cuop.where(np.array([True, False, True]), small(), 300),
    "add": lambda: small() + 300,
}


@pytest.mark.parametrize("who", REFUSED)
def test_numbers_that_do_not_fit_are_refused_by_name(who):
    with pytest.raises(cuop.OverflowError) as caught:
        REFUSED[who]()
    message = str(caught.value)
    assert message.startswith((f"{who}: the number ", f"{who}: data: the number "))
    assert "does not fit dtype int8, which holds -128 to 127" in message
    assert isinstance(caught.value, OverflowError) and isinstance(caught.value, cuop.DTypeError)


def test_lists_are_refused_like_numbers_and_change_nothing():
    tensor = cuop.full((3,), 7, "uint8")
    for write in (
        lambda: tensor.__setitem__(slice(0, 2), [1, -1]),
        lambda: tensor.copy_from([1, 2, 256]),
        lambda: tensor.copy_from([1.0, 2.0, float("nan")]),
        lambda: tensor.fill(float("inf")),
        lambda: tensor.fill(2**70),
    ):
        with pytest.raises(cuop.OverflowError):
            write()
    with pytest.raises(cuop.DTypeError, match="complex"):
        tensor.fill(1j)
    with pytest.raises(cuop.DTypeError, match="complex"):
        tensor.fill(np.complex64(1j))
    assert tensor.tolist() == [7, 7, 7]


@common
@given(st.sampled_from(INTEGERS), st.integers(-(2**64), 2**64))
def test_integers_fit_exactly_when_they_fit_numpy(dtype, number):
    info = np.iinfo(dtype)
    makers = (
        lambda: cuop.full((1,), number, dtype),
        lambda: cuop.tensor([number], dtype),
        lambda: assign(slice(0, 1), [number], dtype)[:1],
        lambda: cuop.arange(number, number + 1, dtype=dtype),
    )
    for make in makers[: 4 if number < 2**64 - 1 else 3]:  # that arange would end beyond 64 bits
        if info.min <= number <= info.max:
            assert make().tolist() == [number]
        else:
            with pytest.raises((cuop.OverflowError, cuop.DTypeError)):
                make()


def test_large_numbers_need_uint64():
    assert cuop.full((2,), 2**63, "uint64").tolist() == [2**63] * 2
    assert cuop.full((1,), 2**64 - 1).dtype == "uint64"
    wide = cuop.full((1,), 2**63, "uint64")
    assert (wide + (2**63 - 1)).tolist() == [2**64 - 1]
    assert (wide == 2**63).tolist() == [True]
    top = cuop.tensor([2**63 - 1, -1])
    assert (top == 2**63).tolist() == [False, False]
    assert (top < 2**63).tolist() == [True, True]
    assert cuop.arange(2**63, 2**63 + 3).tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    with pytest.raises(cuop.OverflowError):
        top + 2**63


def test_lists_keep_the_precision_of_what_they_are_written_to():
    tensor = cuop.zeros((2,), "float64")
    tensor[:] = [0.1, 1 / 3]
    assert tensor.tolist() == [0.1, 1 / 3]
    tensor.copy_from([1e-300, 1e300])
    assert tensor.tolist() == [1e-300, 1e300]


@common
@given(
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(INTEGERS),
    st.lists(st.floats(width=32), min_size=1, max_size=40),
)
def test_whole_arrays_are_cut_by_the_same_rule_eager_and_fused(source, target, numbers):
    def cut(x):
        top = 2**64 if target == "uint64" else 2**63
        whole = int(x) if np.isfinite(x) and -(2**63) <= x < top else -(2**63)
        info = np.iinfo(target)
        return (whole - info.min) % 2**info.bits + info.min

    array = np.array(numbers, source)
    expected = [cut(x) for x in array.tolist()]
    x = cuop.tensor(array)
    assert x.to(target).tolist() == expected
    assert x.astype(target).tolist() == expected
    assert cuop.zeros(array.shape, target).copy_from(array).tolist() == expected
    with cuop.fused():
        y = (x + 0).to(target)
    assert y.tolist() == expected


def test_imaginary_parts_are_not_dropped():
    z = cuop.tensor([1 + 2j, 3j])
    for convert in (
        lambda: z.to("float32"),
        lambda: z.astype("int32"),
        lambda: cuop.zeros((2,)).copy_from(z),
        lambda: cuop.zeros((2,)).__setitem__(slice(None), z),
        lambda: cuop.tensor([1j], "float64"),
    ):
        with pytest.raises(cuop.DTypeError, match="would drop the imaginary part; take real"):
            convert()
    assert z.to("bool").tolist() == [True, True]
    assert cuop.real(z).tolist() == [1.0, 0.0]


def test_huge_views_print_and_count():
    huge = cuop.broadcast_to(cuop.tensor([[1.5], [2.5]], device="cpu"), (2, 2**40))
    assert huge.nbytes == 2**43
    assert repr(huge) == (
        "tensor([[1.5, 1.5, 1.5, ..., 1.5, 1.5, 1.5],\n"
        "        [2.5, 2.5, 2.5, ..., 2.5, 2.5, 2.5]], dtype=float32)"
    )
    narrow = cuop.broadcast_to(cuop.tensor(1.0, "bfloat16"), (2**30, 2**30))
    assert repr(narrow).count("1., 1., 1., ..., 1., 1., 1.") == 6
    for shape in ((2**40, 2**40), (2**61,)):
        with pytest.raises(cuop.ShapeError, match="does not fit in 64 bits"):
            cuop.broadcast_to(cuop.tensor([1.0]), shape)


@common
@given(
    st.lists(st.sampled_from([1, 2, 6, 7, 8, 20, 40]), min_size=1, max_size=3),
    st.sampled_from(["float32", "int64", "bool", "complex128"]),
    st.booleans(),
)
def test_representation_is_numpys(shape, dtype, is_reversed):
    array = (np.arange(np.prod(shape)) * 7 % 1013).reshape(shape).astype(dtype)
    tensor = cuop.tensor(array)
    device = "" if tensor.device == "cpu" else f", device='{tensor.device}'"
    if is_reversed:
        array, tensor = array[::-1].T, tensor[::-1].T
    text = np.array2string(array, separator=", ", prefix="tensor(")
    assert repr(tensor) == f"tensor({text}, dtype={dtype}{device})"


def test_small_answers():
    z = cuop.zeros((2,), "complex64")
    assert (z ** (1 + 2j)).tolist() == [0, 0]
    assert cuop.take([1.0, 2.0], []).shape == (0,)
    assert cuop.take(np.ones((2, 3)), [], axis=1).shape == (2, 0)
    with pytest.raises(cuop.DTypeError, match="take: the indices must be integers"):
        cuop.take([1.0, 2.0], np.array([]))
    assert cuop.signbit([-3, 0, 3]).tolist() == [True, False, False]


def test_fused_work_reads_shared_memory_when_it_runs():
    array = np.ones(4, "float32")
    shared, copied = cuop.asarray(array), cuop.tensor(array)
    with cuop.fused():
        late, kept = shared * 2, copied * 2
        array[:] = 5  # cuOP does not see this write: `late` has not read the array yet
    assert late.tolist() == [10.0] * 4
    assert kept.tolist() == [2.0] * 4
    with cuop.fused():
        early = shared * 2
        shared.fill(7)  # this one it sees, and reads before
    assert early.tolist() == [10.0] * 4 and array.tolist() == [7.0] * 4
    with cuop.fused():
        looked_at = shared * 2
        assert looked_at[0].item() == 14.0  # looking at a value runs what is recorded
        array[:] = 9
    assert looked_at.tolist() == [14.0] * 4
