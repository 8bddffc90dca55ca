"""Runs calls that are made up from a seed, so that a crash or a hang is known by the call.

The calls run in a worker process, which says each of them before it makes it. The parent reads that,
starts the worker again behind a call that ended it or took longer than a call may, and reports.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

_LONGEST_CALL = 30.0  # seconds; the longest honest one takes 2, and 12 on a busy machine
_LONGEST_INTERRUPT = 2.0  # seconds until a call hears Ctrl-C
_CALLS_OF_A_WORKER = 4000  # what a call leaves behind does not pile up for ever
_MOST_MEMORY = 6 << 30  # beyond what the process has reserved when it begins
_MOST_REPORTED = 200
_WORST = (
    "crash",
    "hang",
    "SystemError",
    "raw text",
    "no words",
    "fuzzer",
    "words",
    "values",
    "refusal",
)
# Seeds differ from run to run: of errors that do not name their argument one in so many calls is told
# for people to mend, more are a kind of call that was overlooked.
_RARE = 10_000


@dataclass(frozen=True)
class Case:
    """One call: its text, and what makes it and answers what is wrong with the outcome, or "".

    `may_last` says that its arguments ask for work without end, such as 2**40 sweeps. Such a call is
    interrupted as by Ctrl-C, and is a defect when it does not hear that.
    """

    text: str
    run: Callable[[], str]
    may_last: bool = False


@dataclass
class Findings:
    """What was seen, by kind, each with the first call that showed it."""

    calls: int = 0
    counts: Counter = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, index: int, text: str) -> None:
        """Another finding of a kind."""
        self.counts[kind.split(":")[0]] += 1
        self.first.setdefault(kind, f"--only {index}: {text}")


def files_of(content: Callable[[random.Random], bytes], judge: Callable[[bytes], str]):
    """What makes up cases for `main`: files of that content, of which `judge` says what is wrong."""

    def prepare():
        import cuop

        cuop.set_device("cpu")

        def make(random_: random.Random) -> Case:
            made = content(random_)
            return Case(repr(made[:200]), lambda: judge(made))

        return make

    return prepare


def main(description: str, prepare: Callable[[], Callable[[random.Random], Case]]) -> None:
    """Run as many calls as the command line says; exit code 1 when one of them shows a defect.

    Findings of kinds that are not among the worst are told, and for people to judge.

    `prepare` is called once in each worker and answers what makes up a case.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most so long")
    parser.add_argument("--calls", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=None, help="by default another every time")
    parser.add_argument("--only", type=int, default=None, help="make this one call, here")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(prepare, options)
        return
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    if options.only is not None:
        case = prepare()(_random(seed, options.only))
        print(case.text, flush=True)
        with tempfile.TemporaryDirectory() as folder:  # for the files that the call writes
            os.chdir(folder)
            print(case.run() or "nothing is wrong")
        return
    print(f"seed {seed}", flush=True)
    findings = _watch(seed, options)
    worst_first = sorted(findings.first.items(), key=lambda item: _severity(item[0]))
    for kind, example in worst_first[:_MOST_REPORTED]:
        print(f"{kind}\n    --seed {seed} {example}")
    seen = ", ".join(f"{count} {kind}" for kind, count in findings.counts.most_common())
    print(f"{findings.calls} calls, seed {seed}: {seen or 'nothing found'}")
    is_wrong = any(_severity(kind) < len(_WORST) for kind in findings.first)
    sys.exit(1 if is_wrong or findings.counts["unnamed"] * _RARE > findings.calls else 0)


def _severity(kind: str) -> int:
    name = kind.split(":")[0]
    return _WORST.index(name) if name in _WORST else len(_WORST)


def _random(seed: int, index: int) -> random.Random:
    return random.Random(f"{seed} {index}")


def _work(prepare: Callable[[], Callable[[random.Random], Case]], options) -> None:
    said = os.dup(1)  # what the calls print goes nowhere
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it
    make = prepare()
    # What would take the machine's memory is refused instead.
    with open("/proc/self/statm") as sizes:
        most = int(sizes.read().split()[0]) * resource.getpagesize() + _MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for index in range(options.first, options.calls):
        case = make(_random(options.seed, index))
        _say(said, "~" if case.may_last else ">", index, case.text)
        _say(said, "<", index, case.run())


def _say(stream: int, mark: str, index: int, text: str) -> None:
    line = f"{mark} {index} {text}".encode("utf-8", "backslashreplace").replace(b"\n", b" ")
    os.write(stream, line[:4000] + b"\n")


def _watch(seed: int, options) -> Findings:
    findings, end = Findings(), time.monotonic() + options.seconds
    first = 0
    while first < options.calls and time.monotonic() < end:
        last = min(options.calls, first + _CALLS_OF_A_WORKER)
        with tempfile.TemporaryDirectory() as folder:  # for the files that the calls write
            command = [sys.executable, os.path.abspath(sys.argv[0]), "--worker"]
            command += ["--seed", str(seed), "--first", str(first), "--calls", str(last)]
            environment = {**os.environ, "CUOP_CACHE_DIR": f"{folder}/cache"}
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, cwd=folder, env=environment, process_group=0
            ) as worker:
                first = _listen(worker, first, end, findings)
                _kill(worker)
    return findings


def _listen(worker: subprocess.Popen, first: int, end: float, findings: Findings) -> int:
    """Take what a worker says until it has ended; answers the call to go on with."""
    index, text, is_running, unread = first, "", False, b""
    may_last, is_interrupted = False, False
    selector = selectors.DefaultSelector()
    selector.register(worker.stdout, selectors.EVENT_READ)
    since = time.monotonic()
    while time.monotonic() < end or is_running:
        is_ready = bool(selector.select(0.2))
        if not is_ready:
            if is_running and time.monotonic() - since > _LONGEST_CALL:
                if may_last and not is_interrupted:
                    findings.add(f"long: {_head(text)}", index, text)
                    worker.send_signal(signal.SIGINT)
                    is_interrupted = True
                    since += _LONGEST_INTERRUPT
                    continue
                findings.calls += 1
                findings.add(f"hang: {_head(text)}", index, text)
                return index + 1
            continue
        part = os.read(worker.stdout.fileno(), 1 << 16)
        if not part:
            if not is_running:
                return index
            findings.calls += 1
            code = worker.wait()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            findings.add(f"crash: {name} {_head(text)}", index, text)
            return index + 1
        *lines, unread = (unread + part).split(b"\n")
        for line in lines:
            mark, number, said = line.decode("utf-8", "replace").split(" ", 2)
            since = time.monotonic()
            is_running, may_last, is_interrupted = mark in ">~", mark == "~", False
            if is_running:
                index, text = int(number), said
                continue
            findings.calls += 1
            if said:
                findings.add(said, index, text)
            index += 1
    return index


def _kill(worker: subprocess.Popen) -> None:
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _head(text: str) -> str:
    return text.split("(", 1)[0]
