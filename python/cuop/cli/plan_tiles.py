"""`cuop plan --memory-limit`: tiles of arrays on the host that may be larger than the devices."""

import json

from cuop.cli import console
from cuop.cli.operations import Options
from cuop.cli.tile_operations import IN_PASSES
from cuop.errors import MemoryError


def print_tiles(name, call, shapes, dtypes, options: Options, machine, as_json: bool) -> None:
    """Prints the passes over the host's memory; MemoryError, then, when one does not fit.

    call: the cuop.executor.TileOperation; machine: a cuop.executor.TileMachine.
    """
    from cuop import executor

    is_grid = name in IN_PASSES and len(shapes[0]) == 2
    if (
        is_grid
        and name != "fft2d"
        and executor.whole_grid_bytes(shapes[0], dtypes[0]) <= (machine.memory)
    ):
        _print_whole_grid(name, call, shapes, dtypes, machine, as_json)
        return
    if is_grid:
        passes = _passes(name, shapes, dtypes, options, machine)
    else:
        passes = [("at once", 1, executor.plan_tiles(call, shapes, dtypes, machine))]
    plans = [plan for _, _, plan in passes]
    is_feasible = all(plan.feasible for plan in plans)
    seconds = sum(times * plan.seconds for _, times, plan in passes)
    if as_json:
        listed = [
            {"text": text, "times": times, "plan": json.loads(plan.to_json())}
            for text, times, plan in passes
        ]
        made = {"op": name, "feasible": is_feasible, "seconds": seconds, "passes": listed}
        console.console.print(json.dumps(made), markup=False)
    else:
        for text, times, plan in passes:
            if is_grid:
                console.console.print(f"{name}: {text}, {times} times", markup=False)
            console.console.print(plan.explain(), markup=False, end="")
        console.console.print(f"  reckoned with {machine!r}, {machine.device!r}", markup=False)
    if not is_feasible:
        needed = max(plan.smallest for plan in plans)
        raise MemoryError(
            f"plan: {name}: the smallest tiles need {needed} bytes on a device, {machine.memory} may "
            "be used"
        )


def _passes(name, shapes, dtypes, options: Options, machine) -> list:
    from cuop import executor

    if name == "fft2d":
        passes = executor.plan_fft2d_grid(shapes[0], dtypes[0], machine)
    elif name == "stencil":
        passes = [
            executor.plan_stencil_2d(shapes, dtypes, options.boundary, options.iterations, machine)
        ]
    else:
        passes = [
            executor.plan_jacobi_2d(
                shapes, dtypes, options.dx, options.boundary, options.iterations, machine
            )
        ]
    return [(each.text, each.times, each.plan) for each in passes]


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
