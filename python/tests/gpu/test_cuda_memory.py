"""The memory functions documented for Genesis, on a GPU."""

import json
import subprocess
import sys

import numpy as np
import pytest

import cuop
import genesis

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture(autouse=True)
def _restored():
    cuop.empty_cache("cuda")
    yield
    genesis.cuda.set_memory_limit(None)
    genesis.cuda.set_cache_size(None)
    genesis.cuda.set_memory_callback(None)


def test_figures_follow_tensors():
    before = genesis.cuda.memory_allocated()
    genesis.cuda.reset_peak_memory_stats()
    x = genesis.zeros(10 * MIB, device="cuda")
    assert genesis.cuda.memory_allocated() == before + 40 * MIB
    del x
    stats = genesis.cuda.get_memory_stats()
    assert stats["allocated"] == before
    assert stats["peak_allocated"] == before + 40 * MIB == genesis.cuda.max_memory_allocated()
    assert stats["reserved"] >= stats["cached"] >= 40 * MIB
    assert 0 <= stats["fragmentation"] < 1 and stats["free"] > 0
    assert "peak_allocated" in genesis.cuda.memory_summary()
    assert genesis.cuda.empty_cache() >= 40 * MIB


def test_running_out_is_an_error_and_the_program_goes_on():
    with pytest.raises(cuop.MemoryError, match=r"asked of cuda:0.*live.*reserved.*largest hole"):
        genesis.zeros(50 * GIB, device="cuda")  # 200 GiB
    genesis.cuda.set_memory_limit("1GB")
    with pytest.raises(cuop.MemoryError, match="of a limit of 1 GiB"):
        genesis.zeros(300 * MIB, device="cuda")
    genesis.cuda.set_memory_fraction(0.5)
    x = genesis.full(1000, 2.0, device="cuda")
    np.testing.assert_array_equal(x.to_numpy(), np.full(1000, 2.0, np.float32))


def test_callbacks_hear_of_thresholds_and_can_free():
    genesis.cuda.set_memory_limit("1GB")
    hoard, events = [genesis.zeros(150 * MIB, device="cuda")], []

    def listen(event):
        events.append(event.kind)
        hoard.clear()

    genesis.cuda.set_memory_callback(listen, thresholds=[0.99])
    x = genesis.zeros(200 * MIB, device="cuda")
    assert events == ["out_of_memory"] and x.size == 200 * MIB


def test_pool_and_storage():
    pool = genesis.cuda.CUDAMemoryPool.get_instance()
    assert pool is genesis.cuda.CUDAMemoryPool.get_instance()
    before = pool.allocated_bytes
    address = pool.allocate(MIB)
    assert address % 512 == 0 and pool.allocated_bytes == before + MIB
    pool.deallocate(address)
    with pytest.raises(cuop.MemoryError, match="is not a live block"):
        pool.deallocate(address)
    storage = genesis.cuda.CUDAStorage((10, 20), "float32", device_id=0)
    assert not storage.is_allocated and storage.nbytes == 800
    assert storage.data_ptr() % 512 == 0 and storage.is_allocated
    assert pool.allocated_bytes == before + 800


def test_a_snapshot_names_the_device(tmp_path):
    x = genesis.zeros(5 * MIB, device="cuda")
    json_name, html_name = genesis.cuda.memory_snapshot(tmp_path / "gpu")
    state = json.loads(open(json_name).read())
    assert state["device"] == "cuda:0" and state["upstream"].startswith("cuda")
    assert any(b.get("requested") == x.nbytes for s in state["segments"] for b in s)
    assert "cuda:0" in open(html_name).read()


def test_memory_used_on_another_stream_is_not_reused_before_its_work():
    side = cuop.Stream(device="cuda")
    x = cuop.full(256 * MIB, 1.0, device="cuda")
    address = x.data_ptr()
    cuop.synchronize("cuda")
    with side:
        for _ in range(200):  # some 60 ms of work
            x.fill(3.0)
    cuop.record_stream(x, side)
    del x
    assert genesis.cuda.memory_stats()["pending"] == GIB
    other = cuop.full(256 * MIB, 2.0, device="cuda")
    assert other.data_ptr() != address
    del other
    side.synchronize()
    genesis.cuda.empty_cache()
    assert genesis.cuda.memory_stats()["pending"] == 0
    with pytest.raises(cuop.DeviceError, match="a tensor on cpu and a stream of cuda:0"):
        cuop.record_stream(cuop.zeros(3, device="cpu"), side)


DEBUGGED = """
import genesis, cuop
genesis.cuda.enable_memory_debugging(True)
x = genesis.zeros(100, device="cuda")
assert x.to("cpu").sum().item() == 0
assert genesis.cuda.check_memory() == []
assert genesis.cuda.memory_leaks()[0][0] == 400
kept = x
"""


def test_debugging_guards_gpu_tensors():
    result = subprocess.run(
        [sys.executable, "-c", DEBUGGED], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "1 blocks, 400 bytes, were not freed" in result.stderr
