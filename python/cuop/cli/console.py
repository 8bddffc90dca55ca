"""Output that is rich on a terminal and plain everywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table: drawn on a terminal, tab-separated lines otherwise."""
    if not console.is_terminal:
        for row in [[f"# {title}"], columns, *rows]:
            console.print("\t".join(row), markup=False)
        return
    drawn = Table(title=title, title_justify="left")
    for column in columns:
        drawn.add_column(column)
    for row in rows:
        drawn.add_row(*row)
    console.print(drawn)


class Stages:
    """A progress bar over named stages; each stage may tell how far it is, from 0 to 1."""

    def __init__(self, progress: Progress | None, total: int):
        self._progress = progress
        self._begun = 0
        self._task = progress.add_task("", total=total) if progress else None

    def begin(self, name: str) -> None:
        """Enter the next stage; the one before is complete."""
        self._begun += 1
        self._update(description=name)
        self.at(0.0)

    def at(self, fraction: float) -> None:
        """The current stage is done to `fraction`."""
        self._update(completed=self._begun - 1 + fraction)

    def _update(self, **values) -> None:
        if self._progress is not None:
            self._progress.update(self._task, **values)


@contextmanager
def stages(total: int) -> Iterator[Stages]:
    """A bar of `total` stages on stderr; nothing at all when stderr is not a terminal."""
    if not errors.is_terminal:
        yield Stages(None, total)
        return
    columns = (TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        yield Stages(progress, total)
