"""All steps in order on all ranks, with their time line."""

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

from cuop.demo import diffuse, edges, lowpass, pca, poisson, sums
from cuop.demo.step import Context, Result
from cuop.report.timeline import make_timeline

STEPS = (lowpass, diffuse, poisson, edges, pca, sums)


def run_steps(comm, device: str, on_step: Callable[[str], None]) -> tuple[list[Result], list[str]]:
    """Run every step on this rank, on "cpu" or "cuda"; rank 0 returns the results and all ranks' traces."""
    from cuop import _core

    context = Context(comm, device)
    results = []
    for step in STEPS:
        on_step(step.TITLE)
        context.reset()
        gathered = step.run(context)
        bytes_moved = context.total_bytes()
        if context.is_root:
            results.append(
                dataclasses.replace(step.check(context, *gathered), bytes_moved=bytes_moved)
            )
    traces = comm.gather(_core.trace_json())
    return (results, traces) if context.is_root else ([], [])


def write(path: Path, comm, device: str, results: Sequence[Result], traces: list[str]) -> None:
    """Write the report of a run."""
    import cuop
    from cuop.demo.report import write_report

    header = {
        "version": f"cuOP {cuop.__version__}",
        "ranks": comm.size,
        "kind": {"mpi": "MPI processes", "thread": "threads"}.get(comm.kind, comm.kind),
        "processor": cuop.device_description(device),
        "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
    }
    write_report(path, results, make_timeline(traces, comm.size), header)
