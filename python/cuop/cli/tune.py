"""`cuop tune`: measure which kernels are the fastest here, and look after what was found."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import typer

from cuop.cli import console, tuned, values

application = typer.Typer(
    no_args_is_help=True,
    help="Measure which kernels are the fastest here, and keep what was found.",
)


#: That operators are tuned for.
_DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")


@application.command("ops")
def ops(
    operators: Annotated[
        list[str] | None,
        typer.Argument(
            parser=values.one_of(tuned.OPERATORS), help=f"{', '.join(tuned.OPERATORS)}."
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(help="Of the one operator, as 512x512x512; can be given several times."),
    ] = None,
    dtype: Annotated[
        list[str] | None,
        values.choice_option(
            "--dtype",
            "Of the elements; float32 and float64 by default. The others are for products and "
            "convolutions on a GPU.",
            _DTYPES,
        ),
    ] = None,
    device: Annotated[
        str,
        values.named_option("--device", values.device, "Where to measure: cpu or cuda:N."),
    ] = "cpu",
    details: Annotated[bool, typer.Option(help="Print every candidate.")] = False,
) -> None:
    """Measure operators on some sizes, and store which kernel or algorithm won.

    What is stored already is shown and not measured again; `cuop tune clear` forgets it.
    """
    import cuop

    cases = tuned.cases(operators or [], size or [], dtype or _DTYPES[:2], device)
    cuop.set_device(device)  # says what is missing where there is no such device
    if cuop.tuning_frozen():
        console.errors.print("the tuner is frozen: stored choices are shown, nothing is measured")
    rows, reports = [], []
    with console.stages(len(cases)) as stages:
        for case in cases:
            stages.begin(case.name)
            if not console.errors.is_terminal:
                console.errors.print(f"measuring {case.name}", markup=False)
            report = case.measure(device)
            rows.append([case.name, *_cells(report)])
            reports.append((case.name, report.text))
    console.table(f"cuop tune ops on {device}", ["case", "fastest", "gain", "from", "took"], rows)
    if details:
        for name, text in reports:
            console.console.print(f"\n{name}\n{text}".rstrip(), markup=False)
    info = cuop.tuning_info()
    console.console.print(_place(info), markup=False)


def _cells(report: Any) -> list[str]:
    gain = f"{report.gain * 100:.1f} %" if report.gain > 0 else "default"
    return [report.fastest, gain, report.source, f"{report.made_in_ms:.1f} ms"]


def _place(info: dict[str, Any]) -> str:
    if info["problem"]:
        return f"not stored: {info['problem']}"
    return f"stored in {info['directory']}"


@application.command("ls")
def ls() -> None:
    """List the stored choices, the last used first."""
    import cuop

    rows = [
        [
            row["choice"],
            f"{row['gain'] * 100:.1f} %",
            f"{row['made_in_ms']:.1f}",
            datetime.datetime.fromtimestamp(row["used"]).isoformat(" "),
            row["key"],
        ]
        for row in cuop.tuning_choices()
    ]
    console.table("choices", ["choice", "gain", "made in ms", "last used", "for"], rows)


@application.command("info")
def info() -> None:
    """Print where choices are kept, how many, and whether they can be used."""
    import cuop

    about = cuop.tuning_info()
    rows = [
        ["directory", about["directory"]],
        ["state", about["problem"] or "usable"],
        ["choices", f"{len(cuop.tuning_choices())}"],
        ["frozen", "yes" if about["is_frozen"] else "no"],
    ]
    console.table("tuner", ["", ""], rows)


@application.command("clear")
def clear() -> None:
    """Remove every stored choice."""
    import cuop

    count = cuop.tuning_clear()
    console.console.print(f"{count} choice{'' if count == 1 else 's'} removed", markup=False)
