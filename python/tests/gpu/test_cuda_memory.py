"""The memory functions documented for Genesis, on a GPU."""

import json

import numpy as np
import pytest
from fresh_process import TEST_PATH, run_with

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


def test_a_capture_changes_no_figures_of_the_device():
    kept = genesis.zeros(10 * MIB, device="cuda")
    unused = genesis.zeros(20 * MIB, device="cuda")
    del unused
    before = genesis.cuda.memory_allocated()
    graph = cuop.Graph("cuda")
    with graph:
        inside = kept + 1
        stats = genesis.cuda.memory_stats()
        given_back = genesis.cuda.empty_cache()
    assert stats["allocated"] == before + 40 * MIB
    assert stats["reserved"] >= stats["allocated"] and stats["capacity"] > 0
    assert given_back >= 40 * MIB
    graph.replay()
    assert inside.sum().item() == 10 * MIB


def test_raw_blocks_keep_to_their_stream():
    pool, side = genesis.cuda.CUDAMemoryPool(), cuop.Stream(device="cuda")
    address = pool.allocate(96 * MIB)
    with side:
        pool.deallocate(address)
        other = pool.allocate(96 * MIB)  # nothing idle on this stream
    assert other != address
    assert pool.allocate(96 * MIB) == address


def test_the_environment_limits_memory():
    code = "import cuop; s = cuop.memory_stats('cuda')\nprint(round(s['capacity'] / s['total'], 3))"
    assert run_with({}, code).stdout == "1.0\n"
    theirs = {"GENESIS_CUDA_MEMORY_FRACTION": "0.5"}
    assert run_with(theirs, code).stdout == "0.5\n"
    assert run_with({**theirs, "CUOP_CUDA_MEMORY_FRACTION": "0.25"}, code).stdout == "0.25\n"
    assert "0 < fraction <= 1" in run_with({"GENESIS_CUDA_MEMORY_FRACTION": "2"}, code).stderr


def test_the_environment_bounds_the_cache():
    code = (
        "import cuop; x = cuop.zeros(16 << 20, dtype='uint8', device='cuda')\n"
        "cuop.synchronize('cuda'); del x\n"
        "print(cuop.memory_stats('cuda')['cached'] >> 20)"
    )
    theirs = {"GENESIS_CUDA_CACHE_SIZE": "4MB"}
    assert int(run_with({}, code).stdout) >= 16
    assert int(run_with(theirs, code).stdout) <= 4
    assert int(run_with({**theirs, "CUOP_CUDA_CACHE_SIZE": "1GB"}, code).stdout) >= 16
    wrong = run_with({"GENESIS_CUDA_CACHE_SIZE": "much"}, code)
    assert "CUOP_CUDA_CACHE_SIZE: 'much' is not a size" in wrong.stderr


@pytest.mark.parametrize("kind", ["auto", "mapped", "plain", "driver"])
def test_the_environment_chooses_the_allocator(kind, tmp_path):
    code = (
        "import cuop; x = cuop.full(1 << 20, 2.0, device='cuda')\n"
        "assert x.sum().item() == 2 << 20\n"
        "assert cuop.memory_allocated('cuda') >= 4 << 20\n"
        f"print(open(cuop.memory_snapshot({str(tmp_path / 'memory')!r}, 'cuda')[0]).read())"
    )
    result = run_with({"CUOP_CUDA_ALLOCATOR": kind}, code)
    if kind == "driver":
        assert "cuda:0 is not served by a pool" in result.stderr
    elif "cannot map memory" not in result.stderr:
        name = "cuda, plain" if kind == "plain" else "cuda, mapped"
        assert json.loads(result.stdout)["upstream"] == name


def test_an_unknown_allocator_is_refused():
    wrong = run_with({"CUOP_CUDA_ALLOCATOR": "best"}, "import cuop; cuop.empty(3, device='cuda')")
    message = "CUOP_CUDA_ALLOCATOR: 'best' is unknown; give auto, mapped, plain or driver"
    assert message in wrong.stderr


def test_the_environment_names_the_folder_of_kernels(tmp_path):
    code = "import cuop; assert cuop.full(3, 2.0, device='cuda').sum().item() == 6"
    theirs = {"GENESIS_KERNEL_CACHE_DIR": str(tmp_path / "theirs")}
    assert run_with(theirs, code, unset=["CUOP_CACHE_DIR"]).returncode == 0
    assert any((tmp_path / "theirs").rglob("*"))
    assert run_with({**theirs, "CUOP_CACHE_DIR": str(tmp_path / "ours")}, code).returncode == 0
    assert any((tmp_path / "ours").rglob("*"))


TWO_DEVICES = """
import cuop, genesis
cuop.enable_memory_debugging(device="cuda")
genesis.cuda.enable_memory_debugging(True)
cuop.enable_memory_debugging(device="cpu")
cuop.enable_memory_debugging(False, device="cuda")
x = cuop.zeros(100, dtype="uint8", device="cpu")
assert "<string>:7" in cuop.memory_leaks("cpu")[0][2], cuop.memory_leaks("cpu")
cuop.enable_memory_debugging(device="cuda")
y = cuop.zeros(50, dtype="uint8", device="cuda")
"""


def test_debugging_of_two_devices():
    result = run_with({}, TWO_DEVICES)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("1 blocks, 50 bytes, were not freed") == 1
    assert result.stderr.count("1 blocks, 100 bytes, were not freed") == 1


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
    result = run_with({}, DEBUGGED)
    assert result.returncode == 0, result.stderr
    assert "1 blocks, 400 bytes, were not freed" in result.stderr


CHECKED_AMID_THREADS = """
import threading
import cuop
from in_threads import in_threads

cuop.enable_memory_debugging(device="cuda:0")
is_over = threading.Event()


def work():
    while not is_over.is_set():
        cuop.ones(5000, device="cuda:0")


def check():
    try:
        return [cuop.check_memory("cuda:0") for _ in range(20)]
    finally:
        is_over.set()


found = in_threads(check, work, work)[0]
assert found == [[]] * 20, found[-1][:3]
"""


def test_a_check_waits_for_the_gpu_while_threads_free_tensors():
    """A look waits for its stream, and that for Python; nobody may wait for the look."""
    done = run_with(TEST_PATH, CHECKED_AMID_THREADS)
    assert (done.returncode, done.stderr) == (0, "")
