"""The devices of genesis.cuda, where there is a GPU."""

import pytest
from in_threads import in_threads
from processes import python

import cuop
import genesis

COUNT = genesis.cuda.device_count()


@pytest.fixture(autouse=True)
def the_same_device_afterwards():
    before = cuop.current_device()
    yield
    cuop.set_current_device(before)


def test_there_is_a_gpu():
    assert genesis.cuda.is_available()
    assert genesis.cuda.device_count() == cuop.device_count("cuda") >= 1


@pytest.mark.parametrize("index", range(COUNT))
def test_the_current_device_is_the_one_that_was_set(index):
    for name in (index, f"cuda:{index}", genesis.device(f"cuda:{index}")):
        cuop.set_current_device("cpu")
        assert genesis.cuda.set_device(name) is None
        assert genesis.cuda.current_device() == index
        assert cuop.current_device() == cuop.ones(1).device == f"cuda:{index}"
        assert genesis.zeros(1).device == "cpu"


def test_the_first_gpu_is_current_for_a_thread_on_the_cpu():
    cuop.set_current_device("cpu")
    assert genesis.cuda.current_device() == 0
    assert cuop.current_device() == "cpu"


def test_each_thread_has_a_current_device_of_its_own():
    last = COUNT - 1

    def other():
        genesis.cuda.set_device(last)
        return genesis.cuda.current_device()

    genesis.cuda.set_device(0)
    assert in_threads(other) == [last]
    assert genesis.cuda.current_device() == 0


@pytest.mark.parametrize("absent", [COUNT, f"cuda:{COUNT}", 1000])
def test_a_gpu_that_is_not_there_is_refused_and_nothing_changes(absent):
    genesis.cuda.set_device(0)
    for use in (genesis.cuda.set_device, genesis.cuda.synchronize, genesis.cuda.memory_stats):
        with pytest.raises(cuop.DeviceError, match="is not available"):
            use(absent)
    with pytest.raises(cuop.DeviceError, match="'cpu' is not a GPU"):
        genesis.cuda.set_device("cpu")
    assert genesis.cuda.current_device() == 0


@pytest.mark.parametrize("device", [None, 0, "cuda", "cuda:0"])
def test_synchronize_waits_for_every_stream(device):
    streams = [cuop.Stream("cuda") for _ in range(3)]
    for stream in streams:
        with stream:
            x = cuop.ones(1 << 20, device="cuda")
            for _ in range(5):
                x = x + 1
    assert genesis.cuda.synchronize(device) is None
    assert all(stream.is_idle() for stream in streams)
    assert cuop.current_stream("cuda").is_idle()


def test_lazy_initialisation_ends_at_the_first_use_or_when_it_is_switched_off():
    lines, errors = python("""
import genesis
opened = lambda: 'libcuda' in open('/proc/self/maps').read()
genesis.enable_lazy_init(True)
genesis.cuda.enable_lazy_init()
print(opened(), genesis.tensor([1.0]).device, opened())
print(genesis.cuda.enable_lazy_init(False), opened())
print(genesis.zeros(1).device, genesis.cuda.current_device())
""")
    assert lines[:3] == ["False cpu False", "None True", "cpu 0"]
    assert errors == ""
