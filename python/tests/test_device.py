"""Devices, memory, and the choices of the BLAS interface as arguments."""

import gc

import pytest
from fresh_process import output_of

import cuop

HAS_CUDA = cuop.device_count("cuda") > 0
without_cuda = pytest.mark.skipif(HAS_CUDA, reason="there is a usable GPU")


@without_cuda
def test_the_cpu_is_device_0_of_1():
    assert cuop.get_device_count() == 1
    assert cuop.get_device() == 0
    cuop.set_device(0)
    cuop.set_device("cpu")
    assert cuop.current_device() == "cpu"
    cuop.synchronize()


@without_cuda
def test_no_memory_is_locked_for_a_gpu_that_is_absent():
    for use in (lambda: cuop.pin_memory(cuop.ones(3)), lambda: cuop.release_pinned()):
        with pytest.raises(cuop.DeviceError, match=r"cuda:0 is not available: .*CUOP_DEVICE=cpu"):
            use()


def test_a_device_that_is_absent_is_said():
    count = cuop.get_device_count()
    with pytest.raises(cuop.DeviceError, match=f"{count} is out of range; there are {count}"):
        cuop.set_device(count)
    with pytest.raises(cuop.DeviceError, match="-1 is out of range"):
        cuop.set_device(-1)
    with pytest.raises(cuop.DeviceError, match="'gpu' is not a device; allowed are"):
        cuop.set_device("gpu")


@without_cuda
@pytest.mark.parametrize("make", [cuop.empty, cuop.zeros])
def test_asking_for_cuda_without_it_says_what_is_missing_and_how_to_use_the_cpu(make):
    with pytest.raises(cuop.DeviceError, match=r"cuda:0 is not available: .*use device 'cpu'"):
        make((2, 2), device="cuda")


def test_memory_info_is_free_and_total():
    free, total = cuop.get_memory_info()
    assert 0 < free <= total


def test_emptying_the_cache_leaves_live_tensors_alone():
    kept = cuop.ones(100_000)
    assert cuop.empty_cache() >= 0
    assert kept.to_numpy().sum() == 100_000


def test_a_memory_context_frees_what_is_not_kept():
    gc.collect()
    device = cuop.current_device()
    before = cuop.memory_statistics(device)["allocated_bytes"]
    with cuop.memory_context():
        kept = cuop.ones(1000)
        cycle = [cuop.ones(1_000_000)]
        cycle.append(cycle)
        del cycle
    after = cuop.memory_statistics(device)["allocated_bytes"]
    assert after - before == kept.nbytes


def test_a_memory_context_does_not_hide_errors():
    with pytest.raises(cuop.ShapeError), cuop.memory_context():
        cuop.zeros((-1,))


def test_lists_become_doubles_without_passing_through_float32():
    assert cuop.tensor([0.1, 1 / 3], dtype="float64").tolist() == [0.1, 1 / 3]


def test_blas_choices_have_the_enum_members():
    assert cuop.Uplo.LOWER != cuop.Uplo.UPPER
    assert cuop.Side.LEFT != cuop.Side.RIGHT
    assert {m.name for m in cuop.Trans} == {"NONE", "TRANS", "CONJ_TRANS"}
    assert {m.name for m in cuop.Diag} == {"UNIT", "NON_UNIT"}


def test_importing_opens_no_cuda_library():
    seen = output_of("import cuop, genesis; print(open('/proc/self/maps').read())")
    assert "_core" in seen
    assert "libcuda" not in seen
    assert "libcublas" not in seen


def test_cuop_device_cpu_keeps_a_process_off_the_gpus():
    code = """
import cuop
assert cuop.device_count("cuda") == 0
assert cuop.current_device() == "cpu"
try:
    cuop.zeros((2,), device="cuda")
except cuop.DeviceError as error:
    print(error)
assert "libcuda" not in open("/proc/self/maps").read()
"""
    assert "cuda:0 is not available: CUOP_DEVICE=cpu keeps" in output_of(code, CUOP_DEVICE="cpu")


def test_work_of_the_cpu_is_done_at_once():
    with cuop.Stream("cpu") as stream:
        assert cuop.current_stream("cpu") == stream
        start, end = cuop.Event("cpu", timed=True), cuop.Event("cpu", timed=True)
        with pytest.raises(cuop.ExecutionError, match="nothing was recorded"):
            end.elapsed_ms(start)
        start.record()
        end.record()
        assert end.is_done()
        assert end.elapsed_ms(start) >= 0
    assert stream.is_idle()
    stream.wait(end)
    with pytest.raises(cuop.DTypeError, match="Stream or an Event"):
        stream.wait(3)
    with pytest.raises(cuop.ExecutionError, match="timed=True"):
        cuop.Event("cpu").elapsed_ms(start)
    with pytest.raises(cuop.NotImplementedError, match="none on cpu"):
        cuop.Graph("cpu")


@pytest.mark.cpu
def test_a_cpu_tensor_has_no_stream_and_no_cuda_interface():
    tensor = cuop.ones((2,))
    assert not hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(cuop.ExecutionError, match="pass stream=None"):
        tensor.__dlpack__(stream=1)


@without_cuda
def test_memory_of_a_gpu_that_is_not_there_is_refused():
    class Foreign:
        __cuda_array_interface__ = {
            "shape": (2,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    with pytest.raises(cuop.DeviceError, match="is not available"):
        cuop.from_dlpack(Foreign())
    with pytest.raises(cuop.DeviceError, match="is not available"):
        cuop.external_stream(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"typestr": "<V2"}, "has no cuop dtype"),
        ({"strides": (3,)}, "no multiple"),
        ({"mask": object()}, "masked arrays"),
    ],
)
def test_a_cuda_interface_that_means_nothing_is_refused(change, message):
    class Foreign:
        pass

    foreign = Foreign()
    foreign.__cuda_array_interface__ = {
        "shape": (2,),
        "typestr": "<f4",
        "data": (4096, False),
        "version": 3,
    } | change
    with pytest.raises(cuop.DTypeError, match=message):
        cuop.from_dlpack(foreign)
