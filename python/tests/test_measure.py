"""benchmark, profile, system information, and the names that the documentation promises."""

import ast
import io
import json
import math
import os
import re
import sys

import numpy as np
import pytest
from fresh_process import output_of, run_with

import cuop


@pytest.mark.cpu
def test_benchmark_has_every_field():
    gemm = cuop.GemmFloat()
    gemm.set_weight(np.ones((8, 8)))
    a, c = cuop.ones((8, 8)), cuop.zeros((8, 8))
    result = cuop.benchmark(gemm, a, c, num_runs=5, warmup_runs=1)
    assert c.tolist() == [[8.0] * 8] * 8
    assert (result["num_runs"], result["warmup_runs"]) == (5, 1)
    assert 0 < result["min_time_ms"] <= result["median_time_ms"] <= result["max_time_ms"]
    assert result["min_time_ms"] <= result["mean_time_ms"] <= result["max_time_ms"]
    assert result["std_time_ms"] >= 0 and result["gpu_time_ms"] is None
    assert result["gflops"] == pytest.approx(2 * 8**3 / result["median_time_ms"] / 1e6)
    assert result["bandwidth_gb_s"] == pytest.approx(3 * 256 / result["median_time_ms"] / 1e6)
    assert result["percent_of_roof"] > 0


def test_benchmark_counts_its_calls_and_takes_functions():
    calls = []
    result = cuop.benchmark(lambda x, scale: calls.append(x), 3, scale=2, num_runs=4, warmup_runs=2)
    assert calls == [3] * 6
    assert "gflops" not in result
    assert cuop.benchmark(cuop.DotDouble(), [1.0], [2.0], num_runs=1)["gflops"] > 0
    softmax = cuop.benchmark(
        cuop.SoftmaxFloat(), cuop.ones((2, 3)), cuop.zeros((2, 3)), axis=0, num_runs=1
    )
    assert softmax["percent_of_roof"] > 0


def test_benchmark_refuses_what_it_cannot_time():
    with pytest.raises(cuop.ExecutionError, match="num_runs is 0"):
        cuop.benchmark(cuop.ReluFloat(), num_runs=0)
    with pytest.raises(cuop.ExecutionError, match="warmup_runs is -1"):
        cuop.benchmark(cuop.ReluFloat(), warmup_runs=-1)
    with pytest.raises(cuop.DTypeError, match="op: needed is a function, given 3"):
        cuop.benchmark(3)
    with pytest.raises(cuop.ExecutionError, match="call set_weight first"):
        cuop.benchmark(cuop.GemmFloat(), cuop.ones((1, 1)), cuop.ones((1, 1)))


@pytest.mark.cpu
def test_profiling_prints_a_line_an_operation_and_a_table(capsys):
    cuop.enable_profiling(True)
    assert cuop.is_profiling()
    x = cuop.ones((64, 64))
    cuop.matmul(x, x)
    with cuop.fused():
        y = cuop.exp(x) + 1
    y.tolist()
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(r"matmul_kernel: \d+(\.\d+)?ms", line) for line in lines)
    names = [line.split("_kernel: ")[0] for line in lines]
    assert "fused" in names and "exp" not in names, "recorded operations did not run"
    rows = cuop.profiling_rows()
    (matmul,) = [row for row in rows if row["name"] == "matmul"]
    assert (matmul["device"], matmul["calls"]) == ("cpu", 1)
    assert matmul["mean_ms"] == matmul["total_ms"] > 0
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    cuop.enable_profiling(False)
    table = capsys.readouterr().out
    assert not cuop.is_profiling()
    assert re.match(r"operation +device +calls +total ms +mean ms +share\n", table)
    assert re.search(r"^matmul +cpu +1 ", table, re.M) and cuop.profiling_summary() == table
    cuop.matmul(x, x)
    assert capsys.readouterr().out == ""


@pytest.mark.cpu
def test_profiling_lines_do_not_wait_in_a_buffer(monkeypatch):
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))
    cuop.enable_profiling(True)
    try:
        cuop.matmul(cuop.ones((4, 4)), cuop.ones((4, 4)))
        assert b"matmul_kernel: " in pipe.getvalue()
    finally:
        cuop.enable_profiling(False)


def test_a_profile_leaves_no_file_open(tmp_path):
    for _ in range(3):
        with cuop.profile(tmp_path / "t.json"):
            cuop.ones((4,))
    handles = [f"/proc/self/fd/{handle}" for handle in os.listdir("/proc/self/fd")]
    names = [os.readlink(handle) for handle in handles if os.path.lexists(handle)]
    assert not [name for name in names if str(tmp_path) in name]


def test_profiling_ends_with_the_program():
    script = (
        "import genesis\n"
        "genesis.enable_profiling(True)\n"
        "x = genesis.ones((8, 8))\n"
        "genesis.matmul(x, x)\n"
        "print('over')\n"
    )
    run = run_with({}, script)
    before, after = run.stdout.split("over\n")
    assert "matmul_kernel: " in before and re.search(r"^matmul +cpu +1 ", after, re.M)
    assert run.stderr == ""


def test_profiling_survives_an_output_that_fails(monkeypatch, capsys):
    class Broken:
        def write(self, text):
            raise OSError("broken pipe")

    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    cuop.enable_profiling(True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        assert cuop.ones((2,)).tolist() == [1, 1]
        (cuop.ones((2,)) + 1).tolist()
    cuop.enable_profiling(False)
    assert "add" in capsys.readouterr().out
    assert raised and str(raised[0].exc_value) == "broken pipe"


def test_profiling_is_turned_on_or_off():
    with pytest.raises(cuop.DTypeError, match="is_on: needed is True or False, given 'on'"):
        cuop.enable_profiling("on")


@pytest.mark.cpu
def test_the_trace_has_tracks_and_counters(tmp_path):
    with cuop.profile(tmp_path / "t.json"):
        x = cuop.ones((128, 128))
        cuop.matmul(x, x)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks and all(track.startswith("thread ") for track in tracks)
    counters = [event for event in events if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {"GB/s", "GFLOP/s"}
    assert counters[-1]["args"]["GFLOP/s"] == 0


def test_spans_know_the_bytes_that_they_move():
    x = cuop.ones((10, 10))
    with cuop.profile() as recording:
        x + cuop.ones((10,))
        x.clone()
        with cuop.fused():
            y = cuop.exp(x) * 2
    assert y.size == 100
    # Threads that another test left to themselves are recorded too.
    moved = {(event["name"], event["bytes"]) for event in recording.events}
    assert ("add", 4 * (100 + 100 + 10)) in moved
    assert {("copy", 4 * 200), ("fused", 4 * 200)} <= moved


@pytest.mark.cpu
def test_profile_writes_a_chrome_trace(tmp_path):
    path = tmp_path / "trace.json"
    with cuop.profile(path) as recording:
        cuop.matmul(cuop.ones((4, 5)), cuop.ones((5, 6)))
        cuop.softmax(cuop.ones((4, 5)))
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert {"matmul", "softmax"} <= set(names)
    (matmul,) = [event for event in recording.events if event["name"] == "matmul"]
    assert matmul["flops"] == 2 * 4 * 5 * 6 and matmul["time_ms"] >= 0
    assert "softmax" in recording.summary() and "calls" in recording.summary()
    with cuop.profile() as empty:
        pass
    assert empty.events == []


def test_profile_ends_with_its_block_and_does_not_nest(tmp_path):
    with pytest.raises(ValueError), cuop.profile(tmp_path / "t.json"):
        raise ValueError
    assert (tmp_path / "t.json").exists()
    with cuop.profile(), pytest.raises(cuop.ExecutionError, match="another profile"):
        with cuop.profile():
            pass
    with cuop.profile() as recording:
        pass
    cuop.matmul(cuop.ones((1, 1)), cuop.ones((1, 1)))
    assert recording.events == []


def test_system_info_names_what_there_is_and_what_is_missing(capsys):
    cuop.print_system_info()
    text = capsys.readouterr().out
    assert text.startswith(f"cuOP {cuop.__version__}, Python ")
    parts = {part.name: part for part in cuop.system_info()}
    for name in ("CPU", "memory", "BLAS", "FFTW", "oneDNN", "MPI", "CUDA driver", "GPU"):
        assert name in text and parts[name].detail
        # Free memory changes from one look to the next.
        assert name == "memory" or parts[name].detail in text
    assert parts["CPU"].is_found
    if cuop.device_count("cuda") == 0:
        assert parts["GPU"] == ("GPU", False, cuop.cuda_absence_reason())


def test_the_roof_is_kept_in_the_cache_directory(tmp_path):
    script = "import cuop; print(repr(cuop.measured_roof('float32')))"
    env = {"CUOP_CACHE_DIR": str(tmp_path / "cache"), "CUOP_DEVICE": "cpu"}
    run = [output_of(script, **env) for _ in range(2)]
    files = list((tmp_path / "cache" / "roofs").glob("*.json"))
    if not files:  # others kept this machine busy, and nothing is kept of such a measurement
        pytest.skip("the machine is busy")
    kept = json.loads(files[0].read_text())
    assert kept["key"].startswith("roof of float32 on ") and "threads" in kept["key"]
    flops, moved = ast.literal_eval(run[1])
    assert kept["choice"] == f"{flops:g} flop/s {moved:g} B/s"


READS_A_PROFILE = """
import math, os, time, cuop
relu = cuop.JITReluFloat()
relu.forward(cuop.ones((64, 64)), cuop.zeros((64, 64)))
begin = time.process_time()
profile = relu.get_performance_profile()
print(time.process_time() - begin < 0.02, math.isnan(profile.percent_of_roof))
relu.warmup()
print(os.path.exists(os.environ["CUOP_CACHE_DIR"]))
cuop.measured_roof("float32")
print(relu.get_performance_profile().percent_of_roof > 0)
"""


def test_reading_a_profile_measures_nothing_until_somebody_asks(tmp_path):
    cache = tmp_path / "cache"
    done = run_with({"CUOP_CACHE_DIR": str(cache), "CUOP_DEVICE": "cpu"}, READS_A_PROFILE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "False", "True"]


def test_the_roof_is_that_of_a_machine():
    for dtype in ("float32", "float64"):
        flops, moved = cuop.measured_roof(dtype)
        assert math.isfinite(flops) and flops >= 0
        assert moved > 1e8


def test_tensors_named_after_their_dtype_are_zeros():
    for make, dtype in [(cuop.TensorFloat, "float32"), (cuop.TensorDouble, "float64")]:
        for shape in [(2, 3), [2, 3], 6, ()]:
            t = make(shape)
            assert t.dtype == dtype and np.all(np.asarray(t) == 0)
        assert make((2, 3)).shape == (2, 3)
    with pytest.raises(cuop.ShapeError):
        cuop.TensorFloat((-1,))


DOCUMENTED = """
    tensor TensorFloat TensorDouble zeros ones empty full eye arange random manual_seed linspace
    logspace meshgrid from_dlpack matmul softmax relu layer_norm batch_norm conv2d max_pool2d
    avg_pool2d flatten dot axpy trsm symm gemv scal global_max_pool global_avg_pool batch_matmul
    JITConfig GlobalJITConfig get_default_jit_config get_default_global_jit_config
    set_global_jit_config get_device_count get_device set_device synchronize get_memory_info
    empty_cache memory_context print_system_info benchmark profile Uplo Side Trans Diag Error
    MemoryError ExecutionError CompilationError ShapeError DTypeError DeviceError
    CommunicationError fused fuse explain
""".split()
CLASSES = """
    Scal Axpy Copy Dot Gemm Gemv Symm Trsm Relu Softmax BatchNorm LayerNorm Convolution2D MatMul
    BatchMatMul MaxPool2D AveragePool2D GlobalMaxPool2D GlobalAveragePool2D Flatten View JITGemm
    JITGemv JITRelu JITSoftmax JITBatchNorm JITLayerNorm JITConvolution2D JITMatMul
""".split()


@pytest.mark.parametrize("name", DOCUMENTED + [c + t for c in CLASSES for t in ("Float", "Double")])
def test_every_documented_name_is_there_and_documented(name):
    assert getattr(cuop, name).__doc__


@pytest.mark.parametrize("name", [c + t for c in CLASSES for t in ("Float", "Double")])
def test_operators_have_the_common_methods(name):
    assert callable(getattr(cuop, name).forward)
    assert callable(getattr(cuop, name).get_last_error)
    if name.startswith("JIT"):
        for method in (
            "enable_jit enable_persistent_cache set_persistent_cache_directory set_jit_config "
            "get_performance_profile warmup get_statistics"
        ).split():
            assert callable(getattr(getattr(cuop, name), method))


OUT = {
    "matmul": lambda out: cuop.matmul([[1.0, 2.0]], [[3.0], [4.0]], out=out),
    "softmax": lambda out: cuop.softmax([[1.0]], out=out),
    "relu": lambda out: cuop.relu([[1.0]], out=out),
    "layer_norm": lambda out: cuop.layer_norm([[1.0]], [1.0], out=out),
    "batch_norm": lambda out: cuop.batch_norm([[1.0]], out=out),
    "conv2d": lambda out: cuop.conv2d([[[[2.0]]]], [[[[3.0]]]], out=out),
    "max_pool2d": lambda out: cuop.max_pool2d([[[[2.0]]]], 1, out=out),
    "avg_pool2d": lambda out: cuop.avg_pool2d([[[[2.0]]]], 1, out=out),
    "flatten": lambda out: cuop.flatten([[1.0]], out=out),
    "axpy": lambda out: cuop.axpy(2.0, [1.0], [1.0], out=out),
    "trsm": lambda out: cuop.trsm([[2.0]], [[4.0]], out=out),
    "symm": lambda out: cuop.symm([[2.0]], [[4.0]], out=out),
    "gemv": lambda out: cuop.gemv([[2.0]], [4.0], out=out),
    "scal": lambda out: cuop.scal(2.0, [4.0], out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_functional_forms_take_out(name):
    expected = OUT[name](None)
    out = cuop.full(expected.shape, -1.0)
    OUT[name](out)
    assert out.tolist() == expected.tolist()
