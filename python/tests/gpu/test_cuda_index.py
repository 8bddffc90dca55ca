"""Indexing and random numbers on a GPU: NumPy's answers, and the CPU's bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

DTYPES = ["bool", "int8", "float16", "float32", "int64", "complex128"]
FEW = settings(max_examples=80, deadline=None)


def filled(shape, dtype, seed):
    return (np.random.default_rng(seed).random(shape) * 100 - 50).astype(dtype)


def there(array):
    return cuop.tensor(array, device="cuda")


@FEW
@given(st.data(), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from(DTYPES))
def test_take_and_put_along_axes(data, shape, dtype):
    x = filled(shape, dtype, 1)
    axis = data.draw(st.integers(0, len(shape) - 1))
    size = shape[axis]
    numbers = st.integers(-size, size - 1)
    index = np.array(data.draw(st.lists(numbers, max_size=12)), np.int64)
    result = cuop.take(there(x), index, axis)
    assert result.device == "cuda:0"
    np.testing.assert_array_equal(result.to_numpy(), np.take(x, index, axis))
    long = [1] * len(shape)
    long[axis] = len(index)
    wide = np.broadcast_to(index.reshape(long), [*shape[:axis], len(index), *shape[axis + 1 :]])
    result = cuop.take_along_axis(there(x), there(wide), axis)
    np.testing.assert_array_equal(result.to_numpy(), np.take_along_axis(x, wide, axis))


@FEW
@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.sampled_from(DTYPES))
def test_lists_arrays_and_masks_index_and_assign(data, rows, columns, dtype):
    x = filled((rows, columns), dtype, 2)
    row = data.draw(st.lists(st.integers(-rows, rows - 1), min_size=1, max_size=9))
    column = data.draw(st.integers(-columns, columns - 1))
    mask = np.random.default_rng(3).random((rows, columns)) < data.draw(st.floats(0, 1))
    step = data.draw(st.sampled_from([1, 2, -1]))
    keys = [
        row,
        np.array(row),
        (row, column),
        (slice(None, None, step), [column]),
        mask,
        mask[:, 0],
    ]
    for key in keys:
        np.testing.assert_array_equal(there(x)[key].to_numpy(), x[key])
        wanted, written = x.copy(), there(x)
        values = filled(x[key].shape, dtype, 4)
        wanted[key] = values
        written[key] = values
        np.testing.assert_array_equal(written.to_numpy(), wanted)
        wanted[key] = 1
        written[key] = 1
        np.testing.assert_array_equal(written.to_numpy(), wanted)


@pytest.mark.parametrize("shape", [(0,), (1,), (4099,), (257, 3), (13, 17, 19)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks(shape, dtype):
    x = filled(shape, dtype, 5)
    mask = np.random.default_rng(6).random(shape) < 0.4
    here, mask_there = there(x), there(mask)
    np.testing.assert_array_equal(cuop.masked_select(here, mask_there).to_numpy(), x[mask])
    filled_there = cuop.masked_fill(here, mask_there, 1)
    np.testing.assert_array_equal(filled_there.to_numpy(), np.where(mask, 1, x).astype(dtype))
    for written, wanted in zip(cuop.nonzero(mask_there), np.nonzero(mask), strict=True):
        np.testing.assert_array_equal(written.to_numpy(), wanted)
    assert cuop.count_nonzero(mask_there) == np.count_nonzero(mask)


def test_the_last_of_repeated_indices_stays():
    index = np.random.default_rng(7).integers(0, 100, 100_003)
    wanted = np.zeros(100, np.int64)
    wanted[index] = np.arange(index.size)
    written = cuop.zeros((100,), dtype="int64", device="cuda")
    written[index] = np.arange(index.size)
    np.testing.assert_array_equal(written.to_numpy(), wanted)


@pytest.mark.parametrize("wrong", [10, -11])
def test_an_index_outside_is_the_same_error(wrong):
    x = filled((10, 4), "float32", 8)
    index = [0, 3, wrong, 5]
    with pytest.raises(IndexError) as on_cpu:
        cuop.tensor(x)[index]
    written = there(x)
    with pytest.raises(IndexError) as on_gpu:
        written[index]
    assert str(on_gpu.value) == str(on_cpu.value)
    with pytest.raises(IndexError):
        written[index] = 0
    np.testing.assert_array_equal(written.to_numpy(), x)


def test_tensors_of_another_device_are_refused():
    written = there(filled((10,), "float32", 9))
    with pytest.raises(cuop.DeviceError):
        written[cuop.tensor([1, 2])]
    with pytest.raises(cuop.DeviceError):
        cuop.masked_select(written, cuop.tensor([True] * 10))


@FEW
@given(
    st.integers(0, 5000),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
)
def test_random_numbers_are_the_cpus_bits(size, seed, dtype):
    draws = [
        lambda device: cuop.random((size,), dtype, 1.5, 0.25, device=device),
        lambda device: cuop.uniform((size,), -3, 5, dtype=dtype, device=device),
        lambda device: cuop.randint(-100, 100, (size,), dtype="int8", device=device),
    ]
    results = []
    for device in ("cpu", "cuda"):
        cuop.manual_seed(seed)
        drawn = [draw(device).to("cpu") for draw in draws]
        results.append([each.to("float64").tolist() for each in drawn])  # NumPy has no bfloat16
    assert results[0] == results[1]
