"""Measuring: `benchmark` times an operator, `profile` writes what ran when, `enable_profiling` tells
the time of every operation."""

import atexit
import contextlib
import os
import sys

from cuop import _core
from cuop._arguments import check_callable, integer, switch
from cuop.errors import ExecutionError
from cuop.files import check_writable, replace_file

__all__ = ["benchmark", "enable_profiling", "profile"]


def _callable_of(op):
    """What to call, and the operator's cost function where it has one."""
    if hasattr(op, "forward"):
        return op.forward, getattr(op, "cost", None)
    check_callable(op, "benchmark", "op")
    return op, None


def _device_of(arguments):
    """Where the work of a call is done: on the first tensor's device, without one the current."""
    for argument in arguments:
        if isinstance(argument, _core.Tensor):
            return argument.device
    return _core.current_device()


def benchmark(op, *tensors, num_runs=100, warmup_runs=10, **options):
    """Times `op.forward(*tensors, **options)`, or `op(...)` for a function.

    Returns a dict of times in ms until the device was done (`mean_time_ms`, `std_time_ms`,
    `min_time_ms`, `max_time_ms`, `median_time_ms`), `num_runs`, `warmup_runs` and `gpu_time_ms`: the
    median by events in the GPU's stream, None on the CPU. Where the operator knows its cost also
    `gflops`, `bandwidth_gb_s` and `percent_of_roof`, from `gpu_time_ms`, on the CPU from the median
    (the roof is that of memory and of a large matrix product; data in caches can exceed 100).
    Raises ExecutionError for counts out of range, DTypeError for what is no count or cannot be
    called; errors of the operator are the operator's.
    """
    num_runs = integer(num_runs, "benchmark", "num_runs", least=1)
    warmup_runs = integer(warmup_runs, "benchmark", "warmup_runs", least=0)
    call, cost = _callable_of(op)
    return _core._benchmark(
        lambda: call(*tensors, **options),
        num_runs,
        warmup_runs,
        cost and (lambda: cost(*tensors, **options)),
        "float64" if type(op).__name__.endswith("Double") else "float32",
        _device_of([*tensors, *options.values()]),
    )


def _write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def _end_profiling(process):
    if process == os.getpid():  # not at the end of a fork
        _core._enable_profiling(False)
    _core._set_profiling_output(None)


def enable_profiling(is_on=True):
    """Tells the time of every operation from now on, in lines as `matmul_kernel: 0.15ms`.

    Time is that of the stream for work on a GPU, where the line comes when the time is known (nothing
    waits for it), and that of the call for work on the CPU. False prints the rest and a table:
    operation, device, calls, total and mean time, share. So does the end of the program. True anew
    begins a new table. `profiling_rows()` and `profiling_summary()` give the table at any time.
    """
    is_on = switch(is_on, "enable_profiling", "is_on")
    if is_on and not _core.is_profiling():
        _core._set_profiling_output(_write)
        atexit.unregister(_end_profiling)
        atexit.register(_end_profiling, os.getpid())
    _core._enable_profiling(is_on)


@contextlib.contextmanager
def profile(path=None):
    """Records what runs inside; writes a Chrome trace (chrome://tracing, Perfetto) to `path`.

    The trace has a process for each rank, in it a track for each thread and each stream of a GPU, and
    counters of GB/s and GFLOP/s. Nothing waits for a GPU before the block ends.

    Yields an object whose `events` (dicts), `calls` (the `cuop.dist.Report` of each distributed call
    of this process's ranks) and `summary()` (a table by name) are there after the block. One recording at a time in a process; raises ExecutionError inside another one, FileError
    when the path cannot be written.
    """
    recording = Recording()
    if path is not None:
        check_writable(path, "profile")
    if _core.is_trace_recording():
        raise ExecutionError("profile: another profile is being recorded in this process")
    _core.clear_trace()
    _core.set_trace_recording(True)
    try:
        yield recording
    finally:
        _core.set_trace_recording(False)
        text = _core.trace_json()
        recording.calls = _core._dist.recorded_reports()
        _core.clear_trace()
        recording.load(text)
        if path is not None:
            with replace_file(path, "profile") as file:
                file.write(text.encode())


class Recording:
    """What `profile` recorded."""

    def __init__(self):
        self.events = []
        self.calls = []

    def load(self, text):
        import json

        self.events = [
            {
                "name": event["name"],
                "category": event["cat"],
                "rank": event["pid"],
                "stream": event["args"].get("stream", ""),
                "start_ms": event["ts"] / 1e3,
                "time_ms": event["dur"] / 1e3,
                "gpu_time_ms": event["args"].get("gpu_us", 0.0) / 1e3,
                "bytes": event["args"]["bytes"],
                "flops": event["args"]["flops"],
            }
            for event in json.loads(text)["traceEvents"]
            if event["ph"] == "X"
        ]

    def summary(self):
        """Calls, total and mean time by name, the longest first; of the host, not of streams."""
        totals = {}
        for event in self.events:
            if event["stream"]:
                continue
            calls, time_ms = totals.get(event["name"], (0, 0.0))
            totals[event["name"]] = (calls + 1, time_ms + event["time_ms"])
        width = max((len(name) for name in totals), default=0)
        rows = [f"{'name':<{width}}  calls   total ms    mean ms"]
        for name, (calls, total) in sorted(totals.items(), key=lambda row: -row[1][1]):
            rows.append(f"{name:<{width}}  {calls:5d} {total:10.3f} {total / calls:10.4f}")
        return "\n".join(rows)
