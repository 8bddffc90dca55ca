"""What distributed calls cost, over ranks: a table, one trace of all ranks, a page of HTML."""

import datetime
import os
import platform
from typing import Any

from cuop._arguments import integer
from cuop._core import _dist
from cuop.files import replace_file
from cuop.report.page import format_bytes, format_seconds, write_page
from cuop.report.timeline import make_timeline

__all__ = ["ProfileReport", "profile_report"]

_TITLES = (
    ("dist", "Distributed calls"),
    ("comm", "Calls between ranks"),
    ("op", "Operations on a rank"),
)
_COLUMNS = (
    "operation",
    "calls",
    "time",
    "on rank",
    "least",
    "moves",
    "predicted",
    "floor",
    "of floor",
    "bytes",
    "busiest link",
    "flop",
)
_MOST_LINKS = 64  # that a page lists


def profile_report(comm: Any, *, max_events: int = 200_000) -> "ProfileReport | None":
    """What all ranks have recorded inside `cuop.profile()` so far; on rank 0, None elsewhere.

    Collective, inside `cuop.profile()` of every process. The ranks' clocks are compared by messages
    there and back. Of more than `max_events` events of a rank the distributed calls and the longest
    of the others are sent. Waits for GPUs. ExecutionError on all ranks where one records nothing or
    the arguments differ; CommunicationError where a rank does not come within its deadline.

        with cuop.profile():
            dist.run_ranks(work, 4)     # at its end: report = dist.profile_report(comm)
    """
    most = integer(max_events, "profile_report", "max_events", least=0, most=2**63 - 1)
    gathered = _dist._gather_profiles(comm, most)
    if gathered is None:
        return None
    rows, ranks, trace = gathered
    plans = {}
    for report in _dist.recorded_reports():
        if report.plan.measured.rank == comm.rank:
            key = (report.plan.op, report.plan.strategy, report.plan.detail)
            plans[key] = report.plan.explain()
    return ProfileReport(rows, ranks, trace, list(plans.values()))


class ProfileReport:
    """The profile of all ranks, on rank 0.

    `rows`: a dict for each operation, distributed calls first, the longest first: `category`
    ("dist", "comm", "op"), `name`, `calls` (of the rank that made most), `seconds` (of the slowest
    rank, all calls together), `slowest_rank`, `least_seconds` (of the quickest rank),
    `move_seconds`, `predicted_seconds` and `floor_seconds` (of the slowest rank's calls; 0 where
    not known), `share_of_floor` (0 to 1), `flops` (of the rank that has most), `bytes` (of all
    ranks) and `links` ({(from, to): bytes}, of distributed calls).
    `ranks`: a dict for each rank: `rank`, `events`, `left_out`, `clock_offset_seconds` and
    `clock_error_seconds` (its times are right to within that, on rank 0's clock).
    `plans`: for each plan that rank 0 followed what it predicted and what was measured, as text.
    """

    def __init__(self, rows: list, ranks: list, trace: str, plans: list):
        self.rows = rows
        self.ranks = ranks
        self.plans = plans
        self._trace = trace

    def links(self) -> dict[tuple[int, int], int]:
        """{(from, to): bytes} of all distributed calls together."""
        sums: dict[tuple[int, int], int] = {}
        for row in self.rows:
            for link, count in row["links"].items():
                sums[link] = sums.get(link, 0) + count
        return sums

    def trace_json(self) -> str:
        """A Chrome trace of all ranks (chrome://tracing, Perfetto): a process a rank, on rank 0's
        clock; the error of a rank's clock stands beside its name."""
        return self._trace

    def write_trace(self, path: str | os.PathLike) -> None:
        """Write it to a file; FileError where that cannot be."""
        with replace_file(path, "write_trace") as file:
            file.write(self._trace.encode())

    def cells(self, row: dict) -> list[str]:
        """A row as text, in the order of the table's columns; "-" for what is not known."""
        links = row["links"]
        busiest = max(links, key=links.get) if links else None
        share = row["share_of_floor"]
        return [
            row["name"],
            str(row["calls"]),
            format_seconds(row["seconds"]),
            str(row["slowest_rank"]),
            format_seconds(row["least_seconds"]),
            *(
                format_seconds(row[name]) if row[name] > 0 else "-"
                for name in ("move_seconds", "predicted_seconds", "floor_seconds")
            ),
            f"{share:.1%}" if share > 0 else "-",
            format_bytes(row["bytes"]) if row["bytes"] else "-",
            f"{busiest[0]} to {busiest[1]}: {format_bytes(links[busiest])}" if busiest else "-",
            f"{row['flops']:.3g}" if row["flops"] else "-",
        ]

    def table(self) -> str:
        """The rows as plain text, a table for each category."""
        parts = []
        for category, title in _TITLES:
            lines = [self.cells(row) for row in self.rows if row["category"] == category]
            if not lines:
                continue
            widths = [max(map(len, column)) for column in zip(_COLUMNS, *lines)]
            parts.append(f"{title} on {len(self.ranks)} ranks")
            for line in [list(_COLUMNS), *lines]:
                name, *rest = (
                    cell.ljust(width) if i == 0 else cell.rjust(width)
                    for i, (cell, width) in enumerate(zip(line, widths))
                )
                parts.append("  ".join([name, *rest]).rstrip())
            parts.append("")
        return "\n".join([*parts, self.clocks()])

    def print(self) -> None:
        """Print the tables, drawn where the output is a terminal, plain lines otherwise. Needs
        the packages of cuop[cli]."""
        from cuop.cli import console

        for category, title in _TITLES:
            lines = [self.cells(row) for row in self.rows if row["category"] == category]
            if lines:
                console.table(f"{title} on {len(self.ranks)} ranks", list(_COLUMNS), lines)
        console.console.print(self.clocks(), markup=False)

    def clocks(self) -> str:
        """How well the ranks' clocks are known, and what was left out, in a sentence."""
        error = max(rank["clock_error_seconds"] for rank in self.ranks)
        words = (
            f"Times of ranks on one time base, right to within {format_seconds(error)}."
            if error > 0
            else "All ranks share one clock."
        )
        left_out = sum(rank["left_out"] for rank in self.ranks)
        return f"{words} {left_out} short events were left out." if left_out else words

    def write_html(self, path: str | os.PathLike) -> None:
        """Write a page with the tables, the links, the ranks' time line and the plans to `path`; it
        needs nothing beside itself. FileError where it cannot be written. Needs the packages of
        cuop[cli]."""
        import cuop

        links = sorted(self.links().items(), key=lambda link: -link[1])
        write_page(
            path,
            "write_html",
            "cuop.report",
            "profile.html.j2",
            {},
            report=self,
            titles=_TITLES,
            columns=_COLUMNS,
            links=links[:_MOST_LINKS],
            links_left_out=len(links[_MOST_LINKS:]),
            timeline=make_timeline([self._trace], 1 + max(rank["rank"] for rank in self.ranks)),
            clocks=self.clocks(),
            header={
                "version": f"cuOP {cuop.__version__}",
                "ranks": len(self.ranks),
                "processor": cuop.device_description("cpu"),
                "machine": platform.platform(),
                "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
            },
        )
