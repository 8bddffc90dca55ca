"""How far a call in batches is: a bar in a terminal, a line at its end elsewhere."""

import sys

from cuop.report.page import format_bytes


class Progress:
    """Context manager around one call; shows nothing unless `is_shown`."""

    def __init__(self, name, is_shown):
        self.name = name
        self.is_shown = is_shown
        self._bar = self._task = None

    def __enter__(self):
        if self.is_shown and sys.stderr.isatty():
            try:
                from rich import progress
            except ImportError:
                return self
            self._bar = progress.Progress(transient=True)
            self._task = self._bar.add_task(self.name, total=None)
            self._bar.start()
        return self

    def update(self, done, total):
        """After some of the steps."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def done(self, report):
        """Prints what the call did."""
        if not self.is_shown:
            return
        self._stop()
        plan = report.plan
        passes = f" in {report.passes} passes" if report.passes > 1 else ""
        text = (
            f"[AutoExecutor] {self.name}: {plan.tiles * plan.steps} batches x {plan.devices} devices"
            f"{passes}, {format_bytes(plan.data_bytes)} in {report.seconds * 1e3:.3g} ms (predicted "
            f"{report.predicted * 1e3:.3g}, floor {plan.floor * 1e3:.3g}), peak "
            f"{format_bytes(report.peak)}"
        )
        if report.halvings:
            text += f", memory was short {report.halvings} times"
        print(text)

    def _stop(self):
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __exit__(self, *_):
        self._stop()
