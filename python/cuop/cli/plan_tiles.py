"""`cuop plan --memory-limit`: tiles of arrays on the host that may be larger than the devices."""

import json

from cuop.cli import console
from cuop.cli.operations import Options
from cuop.cli.tile_operations import LINES
from cuop.errors import MemoryError
from cuop.report.page import format_bytes


def print_tiles(name, call, shapes, dtypes, options: Options, machine, as_json: bool) -> None:
    """Prints the passes over the host's memory; MemoryError, then, when one does not fit.

    call: the cuop.executor.TileOperation; machine: a cuop.executor.TileMachine.
    """
    plan = _plan(name, call, shapes, dtypes, options, machine)
    if not plan.passes:
        _print_whole_grid(name, call, shapes, dtypes, machine, as_json)
        return
    if as_json:
        listed = [
            {"text": each.text, "times": each.times, "plan": json.loads(each.plan.to_json())}
            for each in plan.passes
        ]
        made = {
            "op": name,
            "way": plan.way,
            "feasible": plan.feasible,
            "smallest": plan.smallest,
            "seconds": plan.seconds,
            "scratch": plan.scratch,
            "kept_scratch": plan.kept_scratch,
            "passes": listed,
        }
        console.console.print(json.dumps(made), markup=False)
    else:
        for each in plan.passes:
            if plan.way != "at once" or name in ("fft2d", *LINES):
                console.console.print(f"{name}: {each.text}, {each.times} times", markup=False)
            console.console.print(each.plan.explain(), markup=False, end="")
        if plan.kept_scratch > 0:
            console.console.print(
                f"  on the host beside arrays and result {format_bytes(plan.scratch)}, with --resume "
                f"{format_bytes(plan.kept_scratch)}",
                markup=False,
            )
        console.console.print(f"  reckoned with {machine!r}, {machine.device!r}", markup=False)
    if not plan.feasible:
        raise MemoryError(
            f"plan: {name}: the smallest tiles need {plan.smallest} bytes on a device, "
            f"{machine.memory} may be used"
        )


def _plan(name, call, shapes, dtypes, options: Options, machine):
    """The cuop.executor.CallPlan that `cuop run` would follow."""
    from cuop import executor

    if name == "fft2d" and len(shapes[0]) == 2:
        return executor.plan_fft2d_grid(shapes[0], dtypes[0], machine)
    if name in LINES:
        axis = -1 if options.axis is None else options.axis
        return executor.plan_fft_line(
            shapes[0], dtypes[0], None, axis, options.norm, name, machine=machine
        )
    if name == "stencil":
        return executor.plan_stencil_2d(
            shapes, dtypes, options.boundary, options.iterations, machine
        )
    if name == "jacobi":
        return executor.plan_jacobi_2d(
            shapes, dtypes, options.dx, options.boundary, options.iterations, machine
        )
    return executor.plan_call(call, shapes, dtypes, machine)


def _print_whole_grid(name, call, shapes, dtypes, machine, as_json: bool) -> None:
    """The grid fits the limit several times: its sweeps are shared by the ranks as they are."""
    from cuop import executor

    made = executor.plan_ranks(call, shapes, dtypes, ranks=machine.devices, machine=machine.device)
    if as_json:
        whole = {"op": name, "feasible": True, "seconds": made.seconds, "passes": []}
        text = json.dumps({**whole, "over_ranks": json.loads(made.to_json())})
    else:
        text = f"{name}: the grid fits and is swept whole\n{made.explain()}"
        text += f"  reckoned with {machine.device!r}"
    console.console.print(text, markup=False)
