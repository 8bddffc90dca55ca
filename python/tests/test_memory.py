"""The memory functions of cuop on the CPU's pool."""

import copy
import gc
import json
import os
import pickle
import sys
from functools import partial

import numpy as np
import pytest
from fresh_process import TEST_PATH, run_with
from in_threads import in_threads

import cuop
import genesis.cuda

MIB = 1 << 20


@pytest.fixture
def pool():
    """The CPU's pool, with nothing idle before and no limit, callback or guard after."""
    gc.collect()
    cuop.empty_cache("cpu")
    yield "cpu"
    cuop.set_memory_limit(None, "cpu")
    cuop.set_cache_size("8GB", "cpu")
    cuop.set_memory_callback(None, device="cpu")


def test_figures_follow_tensors(pool):
    before = cuop.memory_allocated(pool)
    cuop.reset_peak_memory_stats(pool)
    x = cuop.zeros(5 * MIB, dtype="uint8", device=pool)
    y = cuop.zeros(10, dtype="uint8", device=pool)
    assert cuop.memory_allocated(pool) == before + 5 * MIB + 10
    del x, y
    stats = cuop.memory_stats(pool)
    assert stats["allocated"] == before
    assert stats["peak_allocated"] == before + 5 * MIB + 10
    assert cuop.max_memory_allocated(pool) == stats["allocated_bytes.all.peak"]
    assert stats["active_bytes.all.peak"] == stats["peak_allocated"]
    assert stats["reserved_bytes.all.peak"] >= stats["reserved"]
    assert stats["reserved"] == cuop.memory_reserved(pool) >= stats["cached"] >= 5 * MIB
    assert 0 <= stats["fragmentation"] < 1
    assert 0 < stats["free"] <= stats["total"]
    assert stats["allocation.all.current"] == stats["allocation_count"] - stats["free_count"]
    assert cuop.empty_cache(pool) >= 5 * MIB
    stats = cuop.memory_stats(pool)
    assert stats["cached"] < 5 * MIB  # what lives pins the rest of its granule
    assert stats["reserved_bytes.all.peak"] >= stats["reserved"] + 5 * MIB
    cuop.reset_peak_memory_stats(pool)
    stats = cuop.memory_stats(pool)
    assert stats["reserved_bytes.all.peak"] == stats["reserved"]
    assert stats["active_bytes.all.peak"] == stats["active_bytes.all.current"]
    summary = cuop.memory_summary(pool)
    assert "peak_allocated" in summary and "." not in summary.split()[0]


def test_memory_is_reused_without_asking_the_system(pool):
    for _ in range(3):
        x = cuop.ones(3 * MIB, device=pool)
        del x
    maps = cuop.memory_stats(pool)["map_count"]
    for _ in range(10):
        x = cuop.ones(3 * MIB, device=pool)
        assert x.sum().item() == 3 * MIB
        del x
    assert cuop.memory_stats(pool)["map_count"] == maps


def test_a_limit_is_an_error_with_figures_and_the_program_goes_on(pool):
    held = cuop.memory_reserved(pool)
    cuop.set_memory_limit(held + 64 * MIB, pool)
    kept = cuop.zeros(16 * MIB, dtype="uint8", device=pool)
    with pytest.raises(cuop.MemoryError, match=r"asked of cpu \(100 MiB\).*live.*reserved.*limit"):
        cuop.zeros(100 * MIB, dtype="uint8", device=pool)
    assert cuop.memory_stats(pool)["num_ooms"] >= 1
    assert (kept + 1).sum().item() == 16 * MIB
    assert cuop.memory_reserved(pool) <= held + 64 * MIB


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cuop.set_memory_fraction(0, "cpu"), "memory fraction: 0 is not"),
        (lambda: cuop.set_memory_fraction(1.5, "cpu"), "0 < fraction <= 1"),
        (lambda: cuop.set_memory_limit("lots", "cpu"), "set_memory_limit: 'lots' is not a size"),
        (lambda: cuop.set_memory_limit(-1, "cpu"), "memory limit: -1 bytes"),
        (lambda: cuop.set_cache_size(1.5, "cpu"), "set_cache_size: size: needed is a size"),
        (lambda: cuop.set_cache_size(-1, "cpu"), "cache size: -1 bytes"),
        (
            lambda: cuop.set_memory_callback(3, device="cpu"),
            "function: needed is a function, given 3",
        ),
        (
            lambda: cuop.set_memory_callback(print, [2.0], "cpu"),
            "set_memory_callback: thresholds has 2",
        ),
    ],
)
def test_what_cannot_be_is_said(pool, call, message):
    with pytest.raises((cuop.ExecutionError, cuop.DTypeError), match=message):
        call()


def test_a_snapshot_that_cannot_be_written_is_a_file_error(tmp_path):
    (tmp_path / "taken.html").mkdir()
    for path in ["/no/such/folder/x", tmp_path / "taken", "/dev/null/x"]:
        with pytest.raises(cuop.FileError, match="memory snapshot: .*"):
            cuop.memory_snapshot(path, "cpu")
        with pytest.raises(OSError, match="memory snapshot"):
            genesis.cuda.memory_snapshot(path)


def test_a_snapshot_needs_the_name_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for path in ["", ".", "..", "/", "folder/", f"{tmp_path}/folder/"]:
        for snapshot in (lambda p: cuop.memory_snapshot(p, "cpu"), genesis.cuda.memory_snapshot):
            with pytest.raises(cuop.FileError, match=f"'{path}' names no file, but a directory"):
                snapshot(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_the_cache_keeps_to_its_size(pool):
    cuop.set_cache_size("4MB", pool)
    x = cuop.zeros(32 * MIB, dtype="uint8", device=pool)
    del x
    assert cuop.memory_stats(pool)["cached"] <= 5 * MIB


def test_a_callback_can_free_what_a_request_needs(pool):
    hoard = [cuop.zeros(32 * MIB, dtype="uint8", device=pool)]
    cuop.set_memory_limit(cuop.memory_reserved(pool) + 8 * MIB, pool)
    events = []

    def give_up(event):
        events.append(event)
        assert cuop.memory_allocated(pool) == event.allocated
        hoard.clear()

    cuop.set_memory_callback(give_up, thresholds=[], device=pool)
    x = cuop.zeros(30 * MIB, dtype="uint8", device=pool)
    assert x.sum().item() == 0
    assert [event.kind for event in events] == ["out_of_memory"]
    assert events[0].requested == 30 * MIB and str(events[0].device) == "cpu"


def test_callbacks_may_take_nothing_and_may_fail(pool, monkeypatch):
    called = []
    cuop.set_memory_limit(cuop.memory_reserved(pool) + 64 * MIB, pool)
    cuop.set_memory_callback(lambda: called.append(1), thresholds=[0.2], device=pool)
    x = cuop.zeros(60 * MIB, dtype="uint8", device=pool)
    assert called == [1]
    del x

    def fails(_):
        raise RuntimeError("on purpose")

    cuop.set_memory_callback(fails, thresholds=[0.2], device=pool)
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: told.append(str(failure.exc_value)))
    x = cuop.zeros(60 * MIB, dtype="uint8", device=pool)
    assert told == ["on purpose"]
    assert x.sum().item() == 0


def test_a_callback_is_given_the_event_when_it_must_have_something(pool):
    hoard, told = ["kept"], []
    callbacks = {
        "defaults": lambda hoard=hoard: hoard.clear(),
        "event": lambda event: told.append(event.kind),
        "any": lambda *events: told.append(len(events)),
        "event and default": lambda event, told=told: told.append(event.threshold),
    }
    cuop.set_memory_limit(cuop.memory_reserved(pool) + 64 * MIB, pool)
    for callback in callbacks.values():
        cuop.set_memory_callback(callback, thresholds=[0.2], device=pool)
        cuop.zeros(60 * MIB, dtype="uint8", device=pool)
    assert hoard == [] and told == ["threshold", 1, 0.2]


@pytest.mark.parametrize("wrong", [lambda a, b: None, lambda *, event: None])
def test_a_callback_that_cannot_be_called_is_refused(pool, wrong):
    with pytest.raises(cuop.DTypeError, match="needed is a function of one MemoryEvent"):
        cuop.set_memory_callback(wrong, device=pool)


def test_threads_share_the_pool(pool):
    before = cuop.memory_allocated(pool)

    def work(number):
        total = 0
        for i in range(50):
            total += cuop.full(1000 + i, number, device=pool).sum().item()
        assert total == number * sum(1000 + i for i in range(50))

    in_threads(*(partial(work, n) for n in range(4)))
    assert cuop.memory_allocated(pool) == before


def test_a_snapshot_is_json_and_a_page(pool, tmp_path):
    x = cuop.zeros(3 * MIB, dtype="uint8", device=pool)
    names = cuop.memory_snapshot(tmp_path / "memory.json", pool)
    assert [os.path.basename(name) for name in names] == ["memory.json", "memory.html"]
    state = json.loads((tmp_path / "memory.json").read_text())
    assert state["device"] == "cpu"
    assert state["statistics"]["allocated_bytes"] == cuop.memory_allocated(pool)
    blocks = [block for segment in state["segments"] for block in segment]
    assert any(block.get("requested") == x.nbytes for block in blocks)
    assert (
        sum(b["bytes"] for b in blocks if b["state"] != "unmapped")
        == (state["statistics"]["reserved_bytes"])
    )
    assert state["history"][-1]["kind"] in {"allocate", "free", "map", "unmap"}
    assert "<svg" in (tmp_path / "memory.html").read_text()


def test_raw_blocks(pool):
    blocks = cuop.MemoryPool(pool)
    before = blocks.allocated_bytes
    address = blocks.allocate("1MB")
    assert address % 64 == 0
    assert blocks.allocated_bytes == before + MIB <= blocks.peak_allocated_bytes
    assert blocks.reserved_bytes >= MIB
    blocks.deallocate(address)
    assert blocks.allocated_bytes == before
    assert blocks.cached_bytes >= MIB and blocks.free_bytes > 0
    assert 0 <= blocks.fragmentation_ratio < 1
    with pytest.raises(cuop.MemoryError, match="is not a live block"):
        blocks.deallocate(address)
    with pytest.raises(cuop.MemoryError, match="size is -1; give 0"):
        blocks.allocate(-1)
    assert blocks.allocate(0) == 0
    blocks.deallocate(0)


def test_raw_blocks_go_with_their_pool(pool):
    before = cuop.memory_allocated(pool)
    blocks = cuop.MemoryPool(pool)
    blocks.allocate(MIB)
    assert cuop.memory_allocated(pool) == before + MIB
    del blocks
    gc.collect()
    assert cuop.memory_allocated(pool) == before


RAW_BLOCKS = """
import cuop
blocks = cuop.MemoryPool("cpu")
before = cuop.memory_allocated("cpu")
plain = blocks.allocate(1 << 20)
cuop.enable_memory_debugging(True, device="cpu")
guarded = blocks.allocate(1 << 20)
blocks.deallocate(plain)
cuop.enable_memory_debugging(False, device="cpu")
blocks.deallocate(guarded)
assert cuop.check_memory("cpu") == [], cuop.check_memory("cpu")
assert cuop.memory_leaks("cpu") == []
cuop.enable_memory_debugging(True, device="cpu")
cuop.empty_cache("cpu")
cuop.enable_memory_debugging(False, device="cpu")
assert cuop.memory_allocated("cpu") == before, cuop.memory_allocated("cpu") - before
"""


def test_raw_blocks_go_back_to_where_they_came_from():
    result = run_with({}, RAW_BLOCKS)
    assert result.returncode == 0 and result.stderr == "", result.stderr


DEBUGGED = """
import ctypes, cuop
cuop.enable_memory_debugging(True, device="cpu")
x = cuop.zeros(100, dtype="uint8", device="cpu")
ctypes.memset(x.data_ptr() + 100, 0, 1)
y = cuop.ones(50, dtype="uint8", device="cpu")
assert y.sum().item() == 50
found = cuop.check_memory("cpu")
assert len(found) == 1 and "behind a block" in found[0] and "<string>:4" in found[0], found
assert [size for size, _, _ in cuop.memory_leaks("cpu")][:2] == [100, 50]
kept = x
"""


def test_debugging_finds_writes_outside_and_lists_leaks_at_exit():
    result = run_with({}, DEBUGGED)
    assert result.returncode == 0, result.stderr
    assert "somebody wrote behind a block" in result.stderr
    assert "2 blocks, 150 bytes, were not freed" in result.stderr
    assert "100 bytes" in result.stderr and "<string>:4 in <module>" in result.stderr


DEBUGGED_THREADS = """
import threading
from functools import partial
import cuop
from in_threads import in_threads

cuop.enable_memory_debugging(device="cpu")
is_over = threading.Event()


def work(k):
    n = k
    while not is_over.is_set():
        cuop.ones(1 + n * 7919 % 300_000, device="cpu")
        n += 1


def check():
    try:
        return [cuop.check_memory("cpu") for _ in range(40)]
    finally:
        is_over.set()


found = in_threads(check, *(partial(work, k) for k in range(3)))[0]
assert found == [[]] * 40, found[-1][:3]
"""


def test_a_check_amid_threads_finds_nothing_in_a_sound_program():
    done = run_with(TEST_PATH, DEBUGGED_THREADS)
    assert (done.returncode, done.stderr) == (0, "")


DEBUGGED_FIGURES = """
import cuop

def figures():
    stats = cuop.memory_stats("cpu")
    return stats["allocated"], stats["peak_allocated"], stats["allocation.all.current"]

x = cuop.zeros(1_000_000, dtype="uint8", device="cpu")
plain = figures()
assert plain[:2] == (1_000_000, 1_000_000)
cuop.enable_memory_debugging(device="cpu")
assert figures() == plain
y = cuop.zeros(500_000, dtype="uint8", device="cpu")
assert figures() == (1_500_000, 1_500_000, plain[2] + 1)
del y, x
assert cuop.memory_allocated("cpu") == 0 and cuop.max_memory_allocated("cpu") == 1_500_000
for _ in range(20):
    cuop.zeros(500_000, dtype="uint8", device="cpu")
assert cuop.max_memory_allocated("cpu") == 1_500_000
x = cuop.zeros(1_000_000, dtype="uint8", device="cpu")
cuop.enable_memory_debugging(False, device="cpu")
assert figures()[:2] == (1_000_000, 1_500_000)
y = cuop.zeros(700_000, dtype="uint8", device="cpu")
assert figures()[:2] == (1_700_000, 1_700_000)
del x, y
assert figures() == (0, 1_700_000, 0)
cuop.reset_peak_memory_stats("cpu")
assert figures() == (0, 0, 0)
"""


def test_debugging_changes_no_figures():
    done = run_with({}, DEBUGGED_FIGURES)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_environment_chooses_the_hosts_allocator():
    code = (
        "import cuop; x = cuop.zeros(9, device='cpu'); print(cuop.memory_stats('cpu')['map_count'])"
    )
    assert run_with({"CUOP_HOST_ALLOCATOR": "system"}, code).stdout == "0\n"
    assert int(run_with({"CUOP_HOST_ALLOCATOR": "pool"}, code).stdout) > 0
    wrong = run_with({"CUOP_HOST_ALLOCATOR": "best"}, code)
    assert "CUOP_HOST_ALLOCATOR: 'best' is unknown; give pool or system" in wrong.stderr
    limit = "import cuop; cuop.set_memory_limit(1, 'cpu')"
    no_pool = run_with({"CUOP_HOST_ALLOCATOR": "system"}, limit)
    assert "cpu is not served by a pool" in no_pool.stderr


def test_the_environment_sets_the_hosts_cache():
    code = (
        "import cuop; x = cuop.zeros(32 << 20, dtype='uint8'); del x\n"
        "print(cuop.memory_stats('cpu')['cached'] < 5 << 20)"
    )
    assert run_with({"CUOP_HOST_CACHE_SIZE": "4MB"}, code).stdout == "True\n"
    wrong = run_with({"CUOP_HOST_CACHE_SIZE": "much"}, code)
    assert "CUOP_HOST_CACHE_SIZE: 'much' is not a size" in wrong.stderr


def test_a_forked_child_can_compute():
    code = (
        "import os, cuop\n"
        "x = cuop.ones(1000, device='cpu')\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if (x + x).sum().item() == 2000 else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert run_with({"CUOP_THREADS": "1"}, code).stdout == "0\n"


def test_numpy_views_keep_their_memory(pool):
    view = np.asarray(cuop.full(MIB, 7, dtype="uint8", device=pool))
    gc.collect()
    other = cuop.full(MIB, 9, dtype="uint8", device=pool)
    assert (view == 7).all() and other.sum().item() == 9 * MIB


def test_a_pool_owns_its_blocks_and_cannot_be_copied():
    blocks = cuop.MemoryPool("cpu")
    address = blocks.allocate(100)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="MemoryPool: a pool cannot be copied"):
            copied(blocks)
    blocks.deallocate(address)
