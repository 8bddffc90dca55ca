"""`cuop demo`: the main job end to end."""

from pathlib import Path
from typing import Annotated

import typer

from cuop._arguments import MOST_RANKS
from cuop.cli import console, values
from cuop.cli.ranks import exec_under_mpirun, is_launched, on_ranks
from cuop.files import check_writable

_RANKS = 4


#: Where the ranks keep their parts of arrays and compute.
_PLACES = ("cpu", "cuda")


def demo(
    ranks: Annotated[
        int | None,
        values.whole_option("Ranks as threads of this process, instead of mpirun.", 1, MOST_RANKS),
    ] = None,
    device: Annotated[
        str | None,
        values.choice_option(
            "--device", "Where the ranks work, cpu or cuda; GPUs where there are any.", _PLACES
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="REPORT.html")] = Path(
        "report.html"
    ),
) -> None:
    """Filter, diffuse and rebuild a photograph, find edges, analyse digits, sum exactly.

    Runs on 4 ranks under mpirun unless --ranks asks for threads or a launcher has started ranks
    already. Each step is checked against NumPy or SciPy; exit code 1 when a check does not hold.
    """
    check_writable(output, "demo")
    if ranks is None and not is_launched():
        chosen = [] if device is None else ["--device", device]
        exec_under_mpirun(_RANKS, ["demo", "--output", str(output), *chosen])
        console.errors.print(f"cuop: mpirun was not found; running on {_RANKS} ranks as threads")
        ranks = _RANKS
    if not on_ranks(lambda comm: _run_rank(comm, device, output), ranks):
        raise typer.Exit(1)


def _run_rank(comm, wanted: str | None, output: Path) -> bool:
    import cuop
    from cuop import _core
    from cuop.demo import runner

    device = wanted or ("cuda" if cuop.device_count("cuda") > 0 else "cpu")
    _core.set_trace_recording(True)
    if comm.rank != 0:
        runner.run_steps(comm, device, lambda title: None)
        return True
    with console.stages(len(runner.STEPS) + 1) as bar:
        results, traces = runner.run_steps(comm, device, bar.begin)
        bar.begin("report")
        runner.write(output, comm, device, results, traces)
    _print(comm, device, results)
    console.console.print(f"report: {output.resolve()}", markup=False)
    return all(result.is_right for result in results)


def _print(comm, device: str, results) -> None:
    from cuop.report.page import format_bytes, format_seconds

    rows = [
        [
            r.title,
            format_seconds(r.seconds),
            r.strategy,
            format_bytes(r.bytes_moved),
            f"{r.error:.1e}",
            f"{r.tolerance:.0e}",
            "holds" if r.is_right else "FAILED",
        ]
        for r in results
    ]
    columns = ["step", "time", "strategy", "moved", "error", "allowed", "check"]
    console.table(f"cuop demo on {comm.size} ranks ({comm.kind}, {device})", columns, rows)
