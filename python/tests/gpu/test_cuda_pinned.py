"""Page-locked host memory."""

import numpy as np
import pytest

import cuop

SIZE = 1_000_003


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64"])
@pytest.mark.parametrize("source", ["cpu", "cuda"])
def test_a_pinned_tensor_has_the_values_and_lies_on_the_cpu(dtype, source):
    values = (np.arange(6 * 7).reshape(6, 7) % 5).astype(dtype)
    for view in (values, values.T, values[::2, 1:], values[:0]):
        tensor = cuop.tensor(view, device=source)
        pinned = cuop.pin_memory(tensor)
        assert pinned.device == "cpu" and pinned.dtype == dtype and pinned.is_contiguous()
        np.testing.assert_array_equal(np.asarray(pinned), view)
        assert view.size == 0 or pinned.data_ptr() != tensor.data_ptr()


def test_views_of_a_gpu_tensor_are_pinned_row_by_row():
    x = cuop.arange(12, dtype="float32", device="cuda").reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(cuop.pin_memory(x.T)), np.asarray(x.to("cpu")).T)
    with cuop.fused():
        pinned = cuop.pin_memory(x + 1)
    np.testing.assert_array_equal(np.asarray(pinned), np.arange(1, 13).reshape(3, 4))


def test_copies_from_and_to_it_are_done_when_they_return():
    pinned = cuop.pin_memory(cuop.zeros(SIZE, dtype="int32", device="cpu"), device="cuda:0")
    host = np.asarray(pinned)
    for stream in (cuop.current_stream("cuda"), cuop.Stream("cuda")):
        with stream:
            for round in range(5):
                host[:] = round
                there = pinned.to("cuda")
                host[:] = -1  # the copy does not read it any more
                assert there.min().item() == there.max().item() == round
                there = there + 7
                pinned.copy_from(there.to("cpu"))
                assert host[0] == host[-1] == round + 7
                back = cuop.pin_memory(there)
                assert np.asarray(back)[0] == np.asarray(back)[-1] == round + 7


def test_memory_goes_back_to_the_pool_with_the_last_view_and_from_there_to_the_system():
    cuop.release_pinned()
    pinned = cuop.pin_memory(cuop.ones(SIZE, device="cpu"))
    address, view = pinned.data_ptr(), pinned[5:]
    del pinned
    assert cuop.release_pinned() == 0
    assert view.sum().item() == SIZE - 5
    del view
    again = cuop.pin_memory(cuop.ones(SIZE, device="cpu"))
    assert again.data_ptr() == address
    del again
    assert cuop.release_pinned() >= 4 * SIZE
    assert cuop.release_pinned() == 0


def test_memory_is_locked_for_a_gpu():
    for use in (
        lambda name: cuop.pin_memory(cuop.ones(3, device="cpu"), device=name),
        lambda name: cuop.release_pinned(name),
    ):
        with pytest.raises(cuop.DeviceError, match="give cuda or cuda:N, not cpu"):
            use("cpu")
        with pytest.raises(cuop.DeviceError, match="cuda:99 is not available"):
            use("cuda:99")
