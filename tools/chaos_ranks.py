#!/usr/bin/env python3
"""Runs ranks, lets something happen to one of them, and looks at what the others make of it.

    tools/chaos_ranks.py --runs 100                      every fault over every transport
    tools/chaos_ranks.py --transport mpi --fault stop --first 17 --runs 1 --verbose
    tools/simulated_gpu.sh build/ci tools/chaos_ranks.py --mixed 200       some of all, at random

Every survivor must raise within two seconds of the time-out or of the limit of heartbeats, whichever
is shorter, and name the rank that it happened to. Where the fault leaves all ranks alive, some of the
runs recover: all ranks must meet and go on. In others the survivors shrink: they must go on without
that rank, and what they compute is checked. Prints a line for each fault and transport with the
longest times; exit code 1 when a run was not as it must be. A case follows from its fault, its
transport and its number alone, which are printed with what was wrong.

Faults: kill (SIGKILL), stop (SIGSTOP), exit (sys.exit in the middle), abort (Communicator.abort),
raise (an exception that nobody catches). Over threads, which cannot be killed or stopped one by one,
kill is an exception and stop a sleep.
Transports: mpi, mpi+recovery (mpirun --enable-recovery, which lets ranks live on without the one
that died), socket, socket+hosts (whose ranks take each other to be on two hosts), thread.

Behind tools/simulated_gpu.sh there are also thread+gpu, socket+gpu and mpi+gpu (with recovery), whose
ranks compute on GPUs of their own. kill and stop strike there in the middle of a GPU's work, and three
more faults are the GPU's: memory (there is none left), refused (its driver refuses calls), lost (an
illegal address ends the GPU's use). The victim must raise what its GPU said.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rank_ports import reserved_ports

FAULTS = ["kill", "stop", "exit", "abort", "raise"]
GPU_FAULTS = ["memory", "refused", "lost"]
TRANSPORTS = ["mpi", "mpi+recovery", "socket", "socket+hosts", "thread"]
GPU_TRANSPORTS = ["mpi+gpu", "socket+gpu", "thread+gpu"]
PROGRAM = Path(__file__).with_name("chaos_program.py")
GRACE_SECONDS = 2.0
HEARTBEAT_SECONDS = 1.5
ORDERED_SECONDS = 10.0  # in which a simulated GPU comes to the work that ends its process
PATIENCE_SECONDS = 60.0  # of this program, for processes to start or to end


class Case:
    """One run; what happens in it follows from the first three arguments."""

    def __init__(
        self, transport: str, fault: str, number: int, timeout: float, ranks: int = 4
    ) -> None:
        self.name, self.fault, self.number = transport, fault, number
        self.gpu = transport.endswith("+gpu")
        self.has_hosts = transport.endswith("+hosts")
        self.transport = transport.removesuffix("+gpu").removesuffix("+hosts")
        if self.gpu and self.transport == "mpi":
            self.transport = "mpi+recovery"
        self.timeout, self.ranks = timeout, ranks
        rng = random.Random(f"{transport} {fault} {number}")
        self.victim = rng.randrange(ranks)
        self.moment = rng.uniform(0.05, 0.6)  # seconds after the ranks have met
        self.seed = rng.randrange(1 << 30)
        transport = self.transport
        lives = fault in ("stop", "abort", "memory", "refused")
        self.recover = lives and transport != "mpi" and rng.random() < 0.5
        # mpirun alone ends the other ranks when one has not ended as it should; a thread that sleeps
        # comes to the others' shrink.
        can_shrink = transport != "mpi" and (transport, fault) != ("thread", "stop")
        can_shrink = can_shrink and fault not in ("memory", "refused")
        self.shrink = not self.recover and can_shrink and rng.random() < 0.75
        self.rethrow = not self.shrink and (fault in ("abort", "raise") or rng.random() < 0.5)
        # mpirun ends the other ranks itself when one was killed.
        self.is_ended_by_launcher = transport == "mpi" and fault == "kill"
        # Of a process that is dead or stopped the heartbeat tells, of the others they themselves.
        self.limit = min(timeout, HEARTBEAT_SECONDS) if transport != "thread" else timeout
        is_signal = fault in ("kill", "stop") and transport != "thread"
        if self.gpu and is_signal:
            self.limit += ORDERED_SECONDS
        self.raised = 0.0  # seconds, the longest of all survivors
        self.shrunk = 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.fault} run {self.number}, victim {self.victim}"

    def arguments(self, folder: str) -> list[str]:
        given = {
            "fault": self.fault,
            "folder": folder,
            "seed": self.seed,
            "victim": self.victim,
            "moment": self.moment,
            "timeout": self.timeout,
            "threads": self.ranks if self.transport == "thread" else 0,
        }
        names = ("gpu", "recover", "rethrow", "shrink")
        flags = [f"--{name}" for name in names if getattr(self, name)]
        return [
            sys.executable,
            str(PROGRAM),
            *(f"--{name}={value}" for name, value in given.items()),
            *flags,
        ]


@contextlib.contextmanager
def started(
    case: Case, port: str, folder: str, log: int
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes of a case, each at the head of a group that is killed in the end."""
    commands = [case.arguments(folder)]
    environment = dict(
        os.environ,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        CUOP_HEARTBEAT_TIMEOUT=str(HEARTBEAT_SECONDS),
    )
    if case.gpu:
        environment |= {"CUOP_DEVICE": "cuda", "SIM_DEVICES": str(case.ranks), "SIM_DELAY_US": "50"}
    environments = [environment]
    if case.transport.startswith("mpi"):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(case.ranks)]
        if case.transport == "mpi+recovery":
            launcher.append("--enable-recovery")
        commands = [[*launcher, *commands[0]]]
    elif case.transport == "socket":
        commands *= case.ranks
        environments = [
            dict(
                environment,
                RANK=str(rank),
                WORLD_SIZE=str(case.ranks),
                LOCAL_RANK=str(rank),
                LOCAL_WORLD_SIZE=str(case.ranks),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                CUOP_HOST_NAME=f"host {rank % 2}" if case.has_hosts else "",
            )
            for rank in range(case.ranks)
        ]
    processes = [
        subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        for command, environment in zip(commands, environments, strict=True)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            for pid in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def descendants(pid: int) -> list[int]:
    """The process and all that it started, as far as they are there."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        listed = ""
    return [each for child in listed.split() for each in descendants(int(child))] + [pid]


def read_all(folder: str, name: str) -> dict[int, dict]:
    return {
        int(path.suffix[1:]): json.loads(path.read_text())
        for path in Path(folder).glob(f"{name}.*")
    }


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def findings(case: Case, folder: str, processes: list[subprocess.Popen[bytes]]) -> list[str]:
    """What was wrong with a run."""
    survivors = set(range(case.ranks)) - {case.victim}

    def have_ended() -> bool:
        return all(process.poll() is not None for process in processes)

    if not wait_for(lambda: read_all(folder, "fault") or have_ended(), PATIENCE_SECONDS):
        return ["the fault did not come"]
    if not read_all(folder, "fault"):
        return [f"ended before the fault: {read_all(folder, 'seen')}"]
    struck = next(iter(read_all(folder, "fault").values()))["time"]
    limit = case.limit + GRACE_SECONDS
    if (
        case.fault in GPU_FAULTS
    ):  # it comes some work after it was ordered, and the victim says when
        if not wait_for(lambda: case.victim in read_all(folder, "raised"), PATIENCE_SECONDS):
            return [f"the victim saw {read_all(folder, 'seen').get(case.victim)}"]
        struck = read_all(folder, "raised")[case.victim]["time"]

    def have_seen() -> bool:
        return survivors <= set(read_all(folder, "seen"))

    if case.is_ended_by_launcher:
        wait_for(lambda: have_seen() or have_ended(), limit + GRACE_SECONDS)
        if not have_seen() and not have_ended():
            return [f"{survivors - set(read_all(folder, 'seen'))} neither raised nor ended"]
    else:
        wait_for(have_seen, limit + GRACE_SECONDS)
    seen = read_all(folder, "seen")
    wrong = []
    for rank in sorted(survivors):
        if rank not in seen:
            if not case.is_ended_by_launcher:
                wrong.append(f"rank {rank} did not raise")
            continue
        after = seen[rank]["time"] - struck
        case.raised = max(case.raised, after)
        if after > limit:
            # On a machine that has no core for it a rank is late whatever it does.
            queued = seen[rank]["queued"]
            wrong.append(
                f"rank {rank} raised {after:.1f} s after the fault, "
                f"a thread of it waited {queued:.1f} s for a core"
            )
        if seen[rank]["named"] != case.victim:
            wrong.append(f"rank {rank} named {seen[rank]['named']}: {seen[rank]['text']}")
    if case.recover and not wrong:
        wrong += recovery_findings(case, folder, processes)
    if case.shrink and not wrong:
        wrong += shrink_findings(case, folder, survivors, processes)
    return wrong


def shrink_findings(
    case: Case, folder: str, survivors: set[int], processes: list[subprocess.Popen[bytes]]
) -> list[str]:
    def have_shrunk() -> bool:
        return survivors <= set(read_all(folder, "shrunk"))

    if not wait_for(have_shrunk, PATIENCE_SECONDS):
        return [f"only {sorted(read_all(folder, 'shrunk'))} of {sorted(survivors)} shrunk"]
    case.shrunk = max(each["seconds"] for each in read_all(folder, "shrunk").values())
    if case.fault == "stop":
        wake(processes)
        if not wait_for(lambda: case.victim in read_all(folder, "left_out"), PATIENCE_SECONDS):
            return ["the stopped rank was not told that it was left out"]
    if not wait_for(lambda: all(each.poll() is not None for each in processes), PATIENCE_SECONDS):
        return ["did not end after the shrink"]
    return []


def wake(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        for pid in descendants(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def recovery_findings(
    case: Case, folder: str, processes: list[subprocess.Popen[bytes]]
) -> list[str]:
    if case.fault == "stop" and case.transport != "thread":
        wake(processes)

    def have_recovered() -> bool:
        return len(read_all(folder, "recovered")) == case.ranks

    if not wait_for(have_recovered, PATIENCE_SECONDS):
        return [f"only {sorted(read_all(folder, 'recovered'))} recovered"]
    if not wait_for(lambda: all(each.poll() is not None for each in processes), PATIENCE_SECONDS):
        return ["did not end after the recovery"]
    codes = [each.returncode for each in processes]
    return [f"ended with {codes}"] if any(codes) else []


def run(case: Case, is_verbose: bool) -> list[str]:
    folder = tempfile.mkdtemp(prefix="chaos")
    with tempfile.TemporaryFile() as log:
        with reserved_ports() as port, started(case, str(port), folder, log.fileno()) as processes:
            wrong = findings(case, folder, processes)
        if is_verbose or wrong:
            log.seek(0)
            print(f"--- {case}", *wrong, sep="\n    ")
            print(log.read().decode(errors="replace")[-6000:])
    shutil.rmtree(folder)
    return wrong


def faults_of(transport: str) -> list[str]:
    return FAULTS + (GPU_FAULTS if transport.endswith("+gpu") else [])


def has_simulated_gpu() -> bool:
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "simOrderFaults")
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transport", choices=TRANSPORTS + GPU_TRANSPORTS, action="append")
    parser.add_argument("--fault", choices=FAULTS + GPU_FAULTS, action="append")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument(
        "--mixed", type=int, help="so many runs, of faults and transports at random"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--verbose", action="store_true", help="what the ranks print, of each run")
    options = parser.parse_args()
    transports = options.transport or TRANSPORTS + (GPU_TRANSPORTS if has_simulated_gpu() else [])
    cases = [
        Case(transport, fault, number, options.timeout, options.ranks)
        for transport in transports
        for fault in options.fault or faults_of(transport)
        for number in range(options.first, options.first + (options.mixed or options.runs))
        if fault in faults_of(transport)
    ]
    if options.mixed is not None:
        cases = random.Random(options.first).sample(cases, options.mixed)
        cases.sort(key=lambda case: (case.name, case.fault))
    failed = 0
    for (transport, fault), group in itertools.groupby(cases, lambda case: (case.name, case.fault)):
        begin = time.monotonic()
        runs = list(group)
        bad = sum(bool(run(case, options.verbose)) for case in runs)
        seconds = time.monotonic() - begin
        print(
            f"{transport:13} {fault:7} {len(runs) - bad} of {len(runs)} as they must be, "
            f"{seconds:.0f} s; raised within {max(case.raised for case in runs):.2f} s; "
            f"{sum(case.shrink for case in runs)} shrunk, "
            f"within {max(case.shrunk for case in runs):.2f} s",
            flush=True,
        )
        failed += bad
    print(f"{len(cases) - failed} of {len(cases)} as they must be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
