"""Times of a program's sections and its memory, by name."""

import time

import cuop
from cuop._arguments import Switch, refused
from cuop.errors import ExecutionError

__all__ = ["Profiler"]


class Profiler:
    """Measures sections between `start(name)` and `end(name)`, and memory where it is asked.

    Both wait for the device, so that the time is that of the work and not of its launch. Sections of
    different names may overlap. Not enabled it does nothing, as on the ranks that do not print. For
    what happens within a call see `cuop.profile` and `cuop.dist.last_report()`.
    """

    enabled = Switch()

    def __init__(self, enabled=True):
        self.enabled = enabled
        self.reset()

    def reset(self):
        """Forgets everything."""
        self._running = {}
        self._times = {}
        self._memory = {}

    def start(self, name):
        """Begins a section."""
        if not self.enabled:
            return
        _check_name(name, "start")
        if name in self._running:
            raise ExecutionError(f"start: {name!r} runs already; end it first")
        cuop.synchronize()
        self._running[name] = time.perf_counter()

    def end(self, name):
        """Ends a section; its milliseconds, None when not enabled."""
        if not self.enabled:
            return None
        _check_name(name, "end")
        if name not in self._running:
            raise ExecutionError(
                f"end: {name!r} was not started; running are {sorted(self._running)}"
            )
        cuop.synchronize()
        taken = (time.perf_counter() - self._running.pop(name)) * 1e3
        self._times.setdefault(name, []).append(taken)
        return taken

    def record_memory(self, label):
        """Notes cuop's live and held bytes on the current device under this label."""
        if self.enabled:
            _check_name(label, "record_memory", "label")
            self._memory[label] = (cuop.memory_allocated(), cuop.memory_reserved())

    def get_average(self, name):
        """Mean milliseconds of a section; 0.0 of one that has not ended yet."""
        _check_name(name, "get_average")
        times = self._times.get(name, [])
        return sum(times) / len(times) if times else 0.0

    def get_total(self, name):
        """Milliseconds of a section in all."""
        _check_name(name, "get_total")
        return float(sum(self._times.get(name, [])))

    def print_summary(self):
        """Prints a table of the sections, the longest first, and of the memory."""
        if not self.enabled:
            return
        whole = sum(map(sum, self._times.values())) or 1.0
        print(
            f"{'section':<24}{'calls':>7}{'total ms':>12}{'mean ms':>12}{'least ms':>12}{'share':>8}"
        )
        for name in sorted(self._times, key=self.get_total, reverse=True):
            times = self._times[name]
            print(
                f"{name:<24}{len(times):>7}{sum(times):>12.3f}{self.get_average(name):>12.3f}"
                f"{min(times):>12.3f}{sum(times) / whole:>8.1%}"
            )
        for label, (live, held) in self._memory.items():
            print(f"memory {label}: {live / 1e6:.1f} MB live, {held / 1e6:.1f} MB held")


def _check_name(value, who, name="name"):
    """DTypeError for what cannot be looked up, as a list."""
    try:
        hash(value)
    except TypeError as error:
        raise refused(value, who, name, "a text") from error
