"""Runs the nearest tests with one mistake awake and says whether any of them noticed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from tools.mutants import nearest

LEAST_SECONDS = 40.0  # of one command; mistakes that loop for ever end here
FIRST_SECONDS = 900.0  # of one command without a mistake


@dataclass
class Answer:
    outcome: str  # "caught", "survived", or "unclear": the test failed without the mistake too
    seen_by: str = ""


@dataclass
class Place:
    """Where the tests run, and which do not: those that fail without a mistake."""

    root: Path
    tree: Path
    preset: str
    left_out: set[str] = field(default_factory=set)

    def googletest(self, chosen: str) -> list[str]:
        tests = str(self.tree / f"build/{self.preset}/tests/cuop_tests")
        chosen, _, others = chosen.partition("-")
        parts = [others, *sorted(name for name in self.left_out if "::" not in name)]
        without = ":".join(part for part in parts if part)
        return [tests, f"--gtest_filter={chosen}-{without}", "--gtest_fail_fast"]

    def pytest(self, chosen: list[str]) -> list[str]:
        python = str(self.root / ".venv" / "bin" / "python")
        without = [f"--deselect={name}" for name in sorted(self.left_out) if "::" in name]
        return [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen, *without]

    def commands(self, name: str) -> list[list[str]]:
        """What runs for a file, nearest first."""
        result = []
        if name.startswith("src/"):
            filters = nearest.googletest_filters(self.root, name)
            result += [self.googletest(chosen) for chosen in filters]
        files = nearest.pytest_files(self.root, name)
        return [*result, self.pytest(files)] if files else result


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and whatever it started; called before it is reaped, so the group is its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _first_to_go() -> None:
    """A mistake that takes all memory shall end itself, not its neighbours."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass


def run(place: Place, command: list[str], number: int, limit: float) -> tuple[int | None, str]:
    """(exit status or None where it took too long, output) of a command with a mistake awake."""
    folder = place.tree.parent / "runs" / f"{number}-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(place.tree / f"build/{place.preset}/python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUOP_CACHE_DIR": str(folder / "cache"),
        "CUOP_MUTANT": str(number),
        "TMPDIR": str(folder),
    }
    output = folder / "output"
    try:
        with output.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=place.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_first_to_go,
            )
            deadline, code = time.monotonic() + limit, None
            try:
                while time.monotonic() < deadline:
                    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
                    ended = os.waitid(os.P_PID, process.pid, flags)
                    if ended is not None:
                        is_exit = ended.si_code == os.CLD_EXITED
                        code = ended.si_status if is_exit else -ended.si_status
                        break
                    time.sleep(0.05)
            finally:
                _end(process)
        return code, output.read_text(errors="replace")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def failed_test(output: str) -> list[str]:
    """The test that failed first: ["googletest" or "pytest", its name], or [] where none is named."""
    if match := re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.MULTILINE):
        return ["googletest", match[1]]
    if match := re.search(
        r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - .*)?$", output, re.MULTILINE
    ):
        return ["pytest", match[1]]
    begun = re.findall(r"^\[ RUN      \] ([\w./]+)", output, re.MULTILINE)
    return ["googletest", begun[-1]] if begun else []


@dataclass
class Times:
    """How long suites and pytest files take without a mistake."""

    seconds: dict[str, float]

    def limit(self, command: list[str]) -> float:
        """The deadline of a command: several times what its parts took."""
        chosen = re.sub(
            "-.*", "", next((c for c in command if c.startswith("--gtest_filter=")), "")
        )
        patterns = chosen.removeprefix("--gtest_filter=").split(":")
        suites = {p.removesuffix(".*") for p in patterns if p}
        names = [n for n in self.seconds if n in command or any(fnmatch(n, s) for s in suites)]
        return LEAST_SECONDS + 4 * sum(self.seconds[name] for name in names)


def look(place: Place, number: int, name: str, times: Times) -> Answer:
    """Runs the nearest tests of a file with a mistake awake."""
    for command in place.commands(name):
        limit = times.limit(command)
        for _ in range(2):
            code, output = run(place, command, number, limit)
            if code in (0, 5):  # 5: pytest has nothing left to run
                break
            failed = failed_test(output)
            how = "hangs" if code is None else f"exit {code}" if code < 0 or not failed else ""
            by = " ".join(part for part in (failed[1] if failed else "", how) if part)
            if not failed:
                return Answer("caught", by)
            # A test that fails by chance, or because the machine is busy, has caught nothing.
            kind, test = failed
            again = place.pytest([test]) if kind == "pytest" else place.googletest(test)
            if run(place, again, -1, FIRST_SECONDS)[0] != 0:
                return Answer("unclear", by)
            if run(place, again, number, limit)[0] != 0:
                return Answer("caught", by)
        else:  # it fails in the company of others, twice
            return Answer("caught", by)
    return Answer("survived")


def without_mistake(place: Place, names: list[str], jobs: int, known: dict[str, float]) -> Times:
    """Runs what stands near these files with no mistake awake, but for what has known times.

    What fails there goes into place.left_out.
    """
    layers = sorted({name.split("/")[2] for name in names if name.startswith("src/")})
    files = sorted({file for name in names for file in nearest.pytest_files(place.root, name)})
    times = Times(dict(known))

    def googletest(layer: str) -> None:
        filters = [
            chosen
            for name in names
            if name.startswith(f"src/cuop/{layer}/")
            for chosen in nearest.googletest_filters(place.root, name)
        ]
        suites = dict.fromkeys(s for chosen in filters for s in chosen.split("-")[0].split(":"))
        chosen = ":".join(suites) + "-" + ":".join(nearest.SLOW)
        output = passing_output(place, lambda: place.googletest(chosen))
        ends = re.finditer(r"tests? from (\S+?)(?:, where .*)? \((\d+) ms total\)", output)
        times.seconds.update({end[1]: int(end[2]) / 1000 for end in ends})
        times.seconds[layer] = 0

    def pytest(file: str) -> None:
        start = time.monotonic()
        passing_output(place, lambda: place.pytest([file]))
        times.seconds[file] = round(time.monotonic() - start, 1)

    work = [(googletest, layer) for layer in layers] + [(pytest, file) for file in files]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda part: part[0](part[1]), [p for p in work if p[1] not in known]))
    return times


def passing_output(place: Place, command: Callable[[], list[str]]) -> str:
    """Leaves out what fails twice without a mistake, until the rest passes; what that printed."""
    before: list[str] = []
    for _ in range(20):
        code, output = run(place, command(), -1, FIRST_SECONDS)
        if code in (0, 5):  # 5: pytest has nothing left to run
            return output
        failed = failed_test(output)
        if not failed:
            break
        if failed == before:
            place.left_out.add(failed[1])
        before = failed
    raise SystemExit(f"tests fail without a mistake:\n{output[-3000:]}")
