"""Tensors on a GPU: there and back, filled, printed, multiplied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 9), max_size=4), st.integers(0, 2**32 - 1))
def test_arrays_go_there_and_come_back(dtype, shape, seed):
    array = (np.random.default_rng(seed).random(shape) * 100).astype(dtype)
    there = cuop.tensor(array, device="cuda")
    assert there.device == "cuda:0"
    assert there.shape == array.shape
    for back in (there.to("cpu"), there.clone().to("cpu")):
        assert back.device == "cpu"
        np.testing.assert_array_equal(back.to_numpy(), array)
    np.testing.assert_array_equal(there.to_numpy(), array)


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize("value", [0, 1, 77])
def test_fill_writes_what_the_cpu_writes(dtype, value):
    there = cuop.empty((1003,), dtype=dtype, device="cuda").fill(value)
    here = cuop.full((1003,), value, dtype=dtype)
    assert there.tolist() == here.tolist() if dtype != "bfloat16" else there.nbytes == 2006
    assert there[5].item() == here[5].item()
    there.zero()
    assert there[1002].item() == 0


def test_copy_from_takes_arrays_and_keeps_the_place():
    there = cuop.zeros((3, 4), device="cuda")
    address = there.data_ptr()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert there.copy_from(array) is there
    assert there.data_ptr() == address
    np.testing.assert_array_equal(there.to_numpy(), array)


def test_it_is_printed_with_its_device():
    text = repr(cuop.tensor([1.5, 2.5], device="cuda"))
    assert "1.5" in text
    assert "device='cuda:0'" in text


def test_a_tensor_stays_where_it_is():
    there = cuop.ones((2,), device="cuda")
    assert there.to("cuda") is not None
    assert there.to("cuda").data_ptr() == there.data_ptr()
    copied = cuop.tensor(there)
    assert copied.device == "cuda:0"
    assert copied.data_ptr() != there.data_ptr()


def test_devices_do_not_mix():
    with pytest.raises(cuop.DeviceError, match="move one with to"):
        cuop.matmul(cuop.ones((2, 2), device="cuda"), cuop.ones((2, 2), device="cpu"))
    with pytest.raises(cuop.DeviceError, match="the NVIDIA driver shows"):
        cuop.zeros((2,), device="cuda:63")


def test_numpy_does_not_reach_a_gpu_silently():
    with pytest.raises(BufferError, match="to\\('cpu'\\)"):
        memoryview(cuop.ones((2,), device="cuda"))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    st.tuples(*[st.integers(1, 70)] * 3),
    st.integers(0, 3),
    st.booleans(),
)
def test_matmul_agrees_with_numpy(dtype, sizes, batch, is_transposed):
    m, k, n = sizes
    rng = np.random.default_rng(m * 10007 + k * 101 + n)
    stack = (batch,) if batch else ()
    a = rng.integers(-4, 5, (*stack, m, k)).astype(dtype)
    b = rng.integers(-4, 5, (n, k) if is_transposed else (k, n)).astype(dtype)
    right = cuop.tensor(b, device="cuda")
    result = cuop.matmul(cuop.tensor(a, device="cuda"), right, trans_b=is_transposed)
    np.testing.assert_array_equal(result.to_numpy(), a @ (b.T if is_transposed else b))


def test_memory_is_counted_and_a_tensor_too_large_is_refused():
    before = cuop.memory_statistics("cuda")["allocated_bytes"]
    kept = cuop.empty((1 << 20,), device="cuda")
    assert cuop.memory_statistics("cuda")["allocated_bytes"] - before >= kept.nbytes
    with pytest.raises(cuop.MemoryError, match="bytes"):
        cuop.empty((1 << 40,), dtype="float64", device="cuda")
    assert kept.fill(3)[7].item() == 3
    del kept
    assert cuop.memory_statistics("cuda")["allocated_bytes"] == before
    free, total = cuop.get_memory_info("cuda")
    assert 0 < free <= total
    assert cuop.empty_cache("cuda") >= 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_is_reduced_like_many(shape, dtype):
    here = cuop.ones(shape, dtype=dtype, device="cpu")
    for name in ("sum", "mean", "prod", "min", "max", "any", "all", "argmax", "var"):
        wanted = getattr(cuop, name)(here)
        result = getattr(cuop, name)(here.to("cuda"))
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        assert result.item() == wanted.item()
