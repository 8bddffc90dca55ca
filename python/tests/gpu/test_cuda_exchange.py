"""Tensors of PyTorch and CuPy as ours and ours as theirs: no copy, in the order of the streams."""

import gc
import weakref

import numpy as np
import pytest

import cuop

SIZE = 1 << 24


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool", "complex64"])
def test_pytorch_tensors_are_shared(torch, dtype):
    theirs = torch.ones((3, 5), dtype=getattr(torch, dtype), device="cuda")
    ours = cuop.from_dlpack(theirs)
    assert ours.device == "cuda:0"
    assert ours.data_ptr() == theirs.data_ptr()
    assert str(ours.dtype) == dtype
    assert ours.shape == (3, 5)
    ours.zero()
    assert not theirs.any().item()
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr()
    assert back.dtype == theirs.dtype


def test_strided_pytorch_views_keep_their_strides(torch):
    theirs = torch.arange(24, device="cuda").reshape(4, 6).T
    ours = cuop.from_dlpack(theirs)
    assert ours.strides == theirs.stride()
    assert torch.equal(torch.from_dlpack(ours), theirs)


def test_work_of_pytorch_is_waited_for(torch):
    producer, consumer = torch.cuda.Stream(), cuop.Stream("cuda")
    theirs = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    for round in range(1, 6):
        with torch.cuda.stream(producer):
            for _ in range(30):
                theirs.fill_(round)
        with consumer, torch.cuda.stream(producer):
            ours = cuop.from_dlpack(theirs)
            copied = ours.clone()
            assert copied[SIZE - 1].item() == copied[0].item() == round


def test_pytorch_waits_for_our_work(torch):
    producer, consumer = cuop.Stream("cuda"), torch.cuda.Stream()
    for round in range(1, 6):
        with producer, torch.cuda.stream(consumer):
            ours = cuop.zeros((SIZE,), device="cuda")
            for _ in range(30):
                ours.fill(round)
            theirs = torch.from_dlpack(ours)
            total = theirs.double().sum().item()
        assert total == round * SIZE


def test_the_memory_of_pytorch_is_kept_and_let_go(torch):
    gc.collect()
    before = torch.cuda.memory_allocated()
    theirs = torch.ones(1 << 20, device="cuda")
    held = torch.cuda.memory_allocated()
    assert held > before
    ours = cuop.from_dlpack(theirs)
    del theirs
    gc.collect()
    assert torch.cuda.memory_allocated() == held
    assert ours[7].item() == 1
    del ours
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_our_memory_is_kept_and_let_go(torch):
    gc.collect()
    before = cuop.memory_statistics("cuda")["allocated_bytes"]
    theirs = torch.from_dlpack(cuop.ones((1 << 20,), device="cuda"))
    gc.collect()
    assert theirs.sum().item() == 1 << 20
    assert cuop.memory_statistics("cuda")["allocated_bytes"] > before
    del theirs
    gc.collect()
    assert cuop.memory_statistics("cuda")["allocated_bytes"] == before


class Lent:
    """Memory of a library that frees it when nobody holds the object."""

    def __init__(self, tensor, how):
        self.tensor = tensor
        if how == "interface":
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__
        else:
            self.__dlpack__ = tensor.__dlpack__
            self.__dlpack_device__ = tensor.__dlpack_device__


@pytest.mark.parametrize("how", ["dlpack", "interface"])
@pytest.mark.parametrize("known_by", ["import", "record_stream", "release"])
def test_borrowed_memory_is_given_back_behind_the_work_that_uses_it(how, known_by):
    def is_held():
        return cuop.memory_statistics("cuda")["allocated_bytes"] > before

    outside, stream = cuop.current_stream("cuda"), cuop.Stream("cuda")
    gc.collect()
    before = cuop.memory_statistics("cuda")["allocated_bytes"]
    seen_busy = False
    for _ in range(50):
        theirs = cuop.empty((1 << 24,), device="cuda")
        with stream if known_by == "import" else outside:
            ours = cuop.from_dlpack(Lent(theirs, how))
        with stream:
            for _ in range(30):
                ours.fill(1)
        if known_by == "record_stream":
            cuop.record_stream(ours, stream)
        del theirs
        with stream if known_by == "release" else outside:
            del ours
        held = is_held()
        if not stream.is_idle():  # nor was it when we looked
            seen_busy = True
            assert held
        stream.synchronize()
        assert not is_held()
        if seen_busy:
            break
    assert seen_busy


def test_cupy_arrays_are_shared_both_ways(cupy):
    theirs = cupy.arange(12, dtype="float32").reshape(3, 4)
    ours = cuop.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data.ptr
    np.testing.assert_array_equal(ours.to_numpy(), np.arange(12, dtype="float32").reshape(3, 4))
    back = cupy.from_dlpack(ours)
    assert back.data.ptr == theirs.data.ptr
    back += 1
    assert ours[2, 3].item() == 12


def test_the_array_interface_reaches_cupy(cupy):
    ours = cuop.full((4, 6), 3, dtype="int32", device="cuda")
    interface = ours.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["shape"] == (4, 6)
    assert interface["typestr"] == "<i4"
    assert interface["strides"] is None
    assert interface["stream"] == 1
    assert interface["data"] == (ours.data_ptr(), False)
    theirs = cupy.asarray(ours)
    assert theirs.data.ptr == ours.data_ptr()
    theirs *= 2
    assert ours[3, 5].item() == 6
    assert ours.T.__cuda_array_interface__["strides"] == (4, 24)
    with cuop.Stream("cuda") as stream:
        assert ours.__cuda_array_interface__["stream"] == stream.handle


def test_the_array_interface_of_cupy_is_read(cupy):
    class OnlyInterface:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    source = OnlyInterface(cupy.arange(20, dtype="int64").reshape(4, 5).T)
    gone = weakref.ref(source)
    view = cuop.from_dlpack(source)
    assert view.data_ptr() == source.array.data.ptr
    assert view.device == "cuda:0"
    assert view.shape == (5, 4)
    assert view[1, 3].item() == 16
    del source, view
    gc.collect()
    assert gone() is None


def test_what_the_array_interface_cannot_express_is_no_attribute():
    assert not hasattr(cuop.ones((2,)), "__cuda_array_interface__")
    assert not hasattr(cuop.ones((2,), dtype="bfloat16", device="cuda"), "__cuda_array_interface__")


@pytest.mark.parametrize("stream", [0, -2])
def test_a_stream_number_that_means_nothing_is_refused(stream):
    with pytest.raises(cuop.ExecutionError, match="ambiguous"):
        cuop.ones((2,), device="cuda").__dlpack__(stream=stream)


def test_one_stream_ordered_program_of_three_libraries(torch, cupy):
    stream = cuop.Stream("cuda")
    torch_stream = torch.cuda.ExternalStream(stream.handle)
    cupy_stream = cupy.cuda.ExternalStream(stream.handle)
    with stream, torch.cuda.stream(torch_stream), cupy_stream:
        a = torch.full((256, 256), 2.0, device="cuda")
        b = cupy.full((256, 256), 3.0, dtype="float32")
        product = cuop.matmul(cuop.from_dlpack(a), cuop.from_dlpack(b))
        shifted = torch.from_dlpack(product) + 1
        halved = cupy.from_dlpack(shifted) / 2
        result = cuop.from_dlpack(halved)
        assert result[255, 0].item() == (2 * 3 * 256 + 1) / 2
