"""GPU time in benchmarks, profiles, traces and the profiler's table."""

import json
import re

import pytest

import cuop
import genesis
from cuop.bench import processes

GPU = "cuda:0"


def test_benchmark_tells_the_streams_time():
    relu, x = cuop.ReluFloat(), cuop.ones((64, 64), device=GPU)
    result = cuop.benchmark(relu, x, cuop.zeros((64, 64), device=GPU), num_runs=3, warmup_runs=1)
    assert 0 < result["gpu_time_ms"] <= result["max_time_ms"]
    assert result["bandwidth_gb_s"] == pytest.approx(2 * x.nbytes / result["gpu_time_ms"] / 1e6)
    assert result["percent_of_roof"] > 0


def test_the_profiler_tells_gpu_time_and_waits_for_nothing(capsys):
    x = cuop.ones((64, 64), device=GPU)
    cuop.softmax(x)  # compiled
    cuop.enable_profiling(True)
    try:
        cuop.softmax(x)
        cuop.synchronize(GPU)
        cuop.exp(x)
        rows = {(row["name"], row["device"]): row for row in cuop.profiling_rows()}
        assert rows["softmax", GPU]["calls"] == rows["exp", GPU]["calls"] == 1
        assert rows["softmax", GPU]["total_ms"] > 0
    finally:
        cuop.enable_profiling(False)
    text = capsys.readouterr().out
    assert re.search(r"^softmax_kernel: [\d.]+ms$", text, re.M)
    assert re.search(rf"^softmax +{GPU} +1 ", text, re.M)


def test_the_trace_has_a_track_for_each_stream(tmp_path):
    x = cuop.ones((64, 64), device=GPU)
    stream = cuop.Stream(GPU)
    with cuop.profile(tmp_path / "t.json") as recording:
        cuop.exp(x)
        with stream:
            cuop.sqrt(x)
    tracks = {
        event["args"]["name"]
        for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert {"cuda:0 default stream", "cuda:0 stream 1"} <= tracks
    on_gpu = {event["name"]: event for event in recording.events if event["category"] == "gpu"}
    assert on_gpu["exp"]["stream"] == "cuda:0 default stream"
    assert on_gpu["sqrt"]["stream"] == "cuda:0 stream 1"
    host = {event["name"]: event for event in recording.events if event["category"] == "op"}
    for name in ("exp", "sqrt"):
        assert on_gpu[name]["time_ms"] == pytest.approx(host[name]["gpu_time_ms"], abs=2e-6)
        assert on_gpu[name]["start_ms"] > host[name]["start_ms"] - 1  # two clocks


def test_what_a_graph_records_has_no_time_of_its_own():
    x = cuop.ones((64, 64), device=GPU)
    cuop.exp(x)
    graph = cuop.Graph(GPU)
    with cuop.profile() as recording:
        with graph:
            cuop.exp(x)
        graph.replay()
    on_gpu = [event["name"] for event in recording.events if event["category"] == "gpu"]
    assert "exp" not in on_gpu and "graph" in on_gpu


def test_jit_profiles_tell_the_kernels_time():
    relu = cuop.JITReluFloat()
    x = cuop.ones((64, 64), device=GPU)
    relu.forward(x, cuop.zeros((64, 64), device=GPU))
    profile = relu.get_performance_profile()
    assert profile.kernel_time_ms > 0 and profile.launch_overhead_ms > 0
    assert profile.execution_time == pytest.approx(
        profile.kernel_time_ms + profile.launch_overhead_ms
    )
    assert profile.bandwidth_gb_s == pytest.approx(2 * x.nbytes / profile.kernel_time_ms / 1e6)


def test_system_info_names_every_gpu():
    parts = {part.name: part for part in cuop.system_info()}
    for index in range(cuop.device_count("cuda")):
        assert cuop.device_description(f"cuda:{index}") in parts[f"GPU {index}"].detail
        assert " GiB free of " in parts[f"GPU {index}"].detail
        others = parts[f"processes on cuda:{index}"]
        assert others.detail.startswith("others: " if others.is_found else "NVML: ")


def test_storage_takes_its_memory_when_it_is_used():
    before = genesis.cuda.memory_allocated()
    storage = genesis.CUDAStorage((256, 256), "float32")
    assert genesis.cuda.memory_allocated() == before and not storage.is_allocated
    assert storage.data_ptr() % 256 == 0 and storage.is_allocated
    assert genesis.cuda.memory_allocated() >= before + storage.nbytes
    del storage
    assert genesis.cuda.memory_allocated() == before


def test_the_pool_counts_what_it_gives():
    pool = genesis.CUDAMemoryPool.get_instance()
    assert pool is genesis.CUDAMemoryPool.get_instance(0)
    before = pool.allocated_bytes
    address = pool.allocate(1 << 20)
    assert pool.allocated_bytes >= before + (1 << 20) and pool.peak_allocated_bytes > before
    assert pool.reserved_bytes >= pool.allocated_bytes and pool.free_bytes > 0
    pool.deallocate(address)
    assert pool.allocated_bytes == before and pool.cached_bytes >= 1 << 20
    assert 0 <= pool.fragmentation_ratio <= 1


def test_warming_up_compiles_on_the_gpu():
    assert genesis.cuda.warm_up_kernels(["add", "softmax", (8, 8)]) == 2
    before = cuop.kernel_cache_info()["compilations"]
    x = cuop.ones((8, 8), device=GPU)
    cuop.softmax(x + x)
    assert cuop.kernel_cache_info()["compilations"] == before


def test_a_process_first_uses_are_measured():
    rows = processes.first_use_rows()
    assert [len(row.samples["cuop"]) for row in rows] == [2, 11, 11]
    assert all(second > 0 for row in rows for second in row.samples["cuop"])
