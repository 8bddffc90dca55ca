"""Rows as a table for people, as Markdown for the repository and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cuop.bench.measure import Row
from cuop.files import replace_file

COLUMNS = [
    "case", "precision", "kind", "cuOP", "peer", "peer's", "ratio", "goal", "floor", "error", "",
]  # fmt: skip


def cells(row: Row) -> list[str]:
    """A row as text, in the order of COLUMNS."""
    return [
        row.name,
        row.precision,
        row.kind,
        _milliseconds(row.seconds),
        row.peer,
        _milliseconds(row.peer_seconds),
        f"{row.ratio:.2f}",
        f"{row.goal:.2f}" if row.goal else "-",
        f"{row.floor_seconds / row.seconds:.0%}" if row.floor_seconds else "-",
        f"{row.error:.1e}" if row.error == row.error else "-",
        row.verdict,
    ]


def write(path: Path, rows: Sequence[Row], about: dict[str, str]) -> None:
    """Write `path` (Markdown) and beside it the raw samples as .json."""
    lines = [f"# {about['title']}", ""]
    lines += [f"- {key}: {value}" for key, value in about.items() if key != "title"]
    lines += [
        "",
        "Times are medians of interleaved rounds, in milliseconds a call. Ratio is the peer's time "
        "over ours; floor is the least time that the measured roofs allow over ours; error is "
        "against double precision, relative to the largest value. 'even' is a ratio at most 1.5 % "
        "below its goal, or at most 3 % with the goal within its 95 % interval (bootstrap of the "
        "medians).",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    goals = [row for row in rows if row.goal]
    reached = sum(row.is_reached for row in goals)
    even = sum(row.verdict == "even" for row in goals)
    lines += ["", f"{reached} of {len(goals)} goals reached, {even} of them evenly."]
    with replace_file(path, "bench") as file:
        file.write(("\n".join(lines) + "\n").encode())
    with replace_file(path.with_suffix(".json"), "bench") as file:
        raw = {"about": about, "rows": [asdict(row) for row in rows]}
        file.write((json.dumps(raw, indent=1) + "\n").encode())


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"
