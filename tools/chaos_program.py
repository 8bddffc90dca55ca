"""What each rank of tools/chaos_ranks.py does: collectives and splits until something happens to one.

All ranks draw the same steps from the case's seed. One of them, the victim, dies, stops, ends or
aborts at a random moment, or its GPU fails. What the others see is written to a folder, a file for
each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import chaos_gpu
import cuop
from cuop import dist

RECOVERY_SECONDS = 30.0


class Ended(Exception):
    """The victim ends by an exception that is not a CommunicationError."""


def queued() -> dict[str, float]:
    """Seconds that each thread of this process has waited for a core of a busy machine so far."""
    waited = {}
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            waited[path.parent.name] = int(path.read_text().split()[1]) * 1e-9
    return waited


class Rank:
    """One rank of a case: its communicators, its part in the fault, what it saw."""

    def __init__(self, world: Any, case: argparse.Namespace) -> None:
        self.world = world
        self.case = case
        self.is_victim = world.rank == case.victim
        self.is_due = threading.Event()
        self.queued: dict[str, float] = {}  # when the ranks had met
        # (communicator, ranks of the world that are in it)
        self.parts: list[tuple[Any, list[int]]] = [(world, list(range(world.size)))]

    def write(self, name: str, **values: Any) -> None:
        path = Path(self.case.folder, f"{name}.{self.world.rank}")
        part = Path(self.case.folder, f".{path.name}")
        part.write_text(json.dumps(values))
        part.rename(path)  # complete or not there

    def arm(self) -> None:
        """Starts the victim's clock."""
        self.queued = queued()
        if self.is_victim:
            clock = threading.Timer(self.case.moment, self.strike)
            clock.daemon = True
            clock.start()

    def strike(self) -> None:
        """The fault, where it is one that can come at any instruction; else the next step has it."""
        by_signal = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}.get(self.case.fault)
        if by_signal is None or self.world.kind == "thread" or self.case.gpu:
            self.is_due.set()
            return
        self.write("fault", time=time.monotonic())
        os.kill(os.getpid(), by_signal)

    def fault(self, rng: random.Random) -> None:
        """The fault between two steps."""
        self.write("fault", time=time.monotonic())
        is_signal = self.case.fault in ("kill", "stop")
        is_ordered = self.case.fault in chaos_gpu.FAULTS and not (
            is_signal and self.world.kind == "thread"
        )
        if self.case.gpu and is_ordered:
            self.is_due.clear()
            chaos_gpu.order_fault(self.case.fault, rng)
        elif self.case.fault == "stop":  # a thread cannot be stopped from outside
            time.sleep(self.case.timeout + 3.0)
            self.is_due.clear()
        elif self.case.fault == "kill":
            raise Ended("this rank has come to its end")
        elif self.case.fault == "exit":
            sys.exit(rng.choice([0, 3]))
        elif self.case.fault == "raise":
            raise ValueError("chaos")
        else:
            # Who is in another part hears of it when the exception ends this rank.
            comm = self.world if self.case.recover else rng.choice(self.parts)[0]
            comm.abort("chaos")
            raise Ended("this rank has aborted")

    def step(self, rng: random.Random) -> None:
        """One step that all ranks draw alike; each rank of a part makes it."""
        part = rng.randrange(len(self.parts))
        kinds = ["barrier", "broadcast", "gather", "all_gather", "ring", "split", "drop"]
        if self.case.gpu:
            kinds += 2 * chaos_gpu.KINDS
        kind = rng.choice(kinds)
        length = rng.choice([10, 10, 3_000, 50_000, 700_000])
        seed = rng.randrange(1 << 30)
        if kind == "split":
            # By colours and keys at random, the world or a part: all ranks know the groups.
            comm, members = self.parts[part]
            draw = random.Random(seed)
            colors = [draw.randrange(3 if part == 0 else 2) for _ in range(self.world.size)]
            keys = [draw.randrange(3) for _ in range(self.world.size)]
            made = comm.split(colors[self.world.rank], keys[self.world.rank])
            made.timeout = self.case.timeout
            own = [rank for rank in members if colors[rank] == colors[self.world.rank]]
            own.sort(key=lambda rank: keys[rank])  # of equal keys as in what was split
            self.parts.append((made, own))
            return
        if kind == "drop":
            del self.parts[1 + rng.randrange(4) :]
            return
        comm, members = self.parts[part]
        if kind in chaos_gpu.KINDS:
            chaos_gpu.step(comm, kind, seed)
            return
        root = seed % comm.size
        mine = np.full(length // 8 + 1, members[comm.rank], np.int64)
        if kind == "barrier":
            comm.barrier()
        elif kind == "broadcast":
            assert (comm.broadcast(mine, root=root) == members[root]).all()
        elif kind == "ring":
            came = comm.sendrecv(mine, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
            assert (came == members[comm.rank - 1]).all()
        else:
            came = comm.gather(mine, root) if kind == "gather" else comm.all_gather(mine)
            if came is not None:
                assert [int(each[-1]) for each in came] == members

    def live(self, seed: int, steps: int | None) -> None:
        """Steps until the end or until something is raised."""
        rng = random.Random(seed)
        own = random.Random(seed + self.world.rank)
        while steps is None or steps > 0:
            if own.random() < 0.1:
                time.sleep(own.random() * 0.01)
            if self.is_due.is_set():
                self.fault(own)
            self.step(rng)
            steps = None if steps is None else steps - 1

    def fail(self, error: cuop.Error) -> None:
        """What an error of this rank's own is to the others."""
        # Who reads what waited for another thread's GPU may be the first to see that it has failed.
        if not self.is_victim:
            try:
                while True:
                    self.world.barrier()
            except cuop.CommunicationError as told:
                self.report(told)
            return
        chaos_gpu.withdraw_faults()
        self.write("raised", time=time.monotonic(), text=str(error))
        self.world.abort(str(error))  # also to those that are in another part

    def report(self, error: cuop.CommunicationError) -> None:
        now = time.monotonic()
        waited = [seconds - self.queued.get(thread, 0.0) for thread, seconds in queued().items()]
        longest = max(waited, default=0.0)
        self.write("seen", time=now, named=error.rank, text=str(error), queued=longest)

    def shrink(self) -> None:
        """Goes on with the ranks that are left, and checks what they compute together."""
        survivors = [rank for rank in range(self.world.size) if rank != self.case.victim]
        if self.is_victim and self.case.fault == "lost":
            return
        if self.is_victim:  # it was stopped and runs again
            self.world.timeout = RECOVERY_SECONDS
            try:
                self.world.shrink()
            except cuop.CommunicationError:
                self.write("left_out", time=time.monotonic())
            return
        begin = time.monotonic()
        self.world.timeout = RECOVERY_SECONDS
        left = self.world.shrink()
        left.timeout = RECOVERY_SECONDS
        came = left.all_gather(self.world.rank)
        assert came == survivors, (came, survivors)
        mine = np.full(100_000, float(self.world.rank))
        total = np.asarray(dist.all_reduce(left, mine))
        assert (total == sum(survivors)).all()
        half = left.split(left.rank % 2)
        assert half.all_gather(left.rank) == list(range(left.rank % 2, left.size, 2))
        assert half.split(half.rank).all_gather(left.rank) == [left.rank]
        self.write("shrunk", time=time.monotonic(), seconds=time.monotonic() - begin)
        left.barrier()

    def run(self) -> None:
        case = self.case
        self.world.timeout = RECOVERY_SECONDS
        self.world.barrier()
        if case.gpu:  # kernels are compiled before anything counts
            for kind in chaos_gpu.KINDS:
                chaos_gpu.step(self.world, kind, case.seed)
        self.world.timeout = case.timeout
        self.world.barrier()
        self.arm()
        try:
            self.live(case.seed, None)
        except cuop.Error as error:
            if isinstance(error, cuop.CommunicationError):
                self.report(error)
            else:
                self.fail(error)
            if case.shrink:
                self.shrink()
                return
            if not case.recover:
                if case.rethrow:
                    raise
                return
        except Ended:
            if not case.recover:
                raise
        self.world.timeout = RECOVERY_SECONDS
        self.world.recover()
        self.is_due.clear()
        del self.parts[1:]
        self.live(case.seed + 1, 40)
        self.write("recovered", time=time.monotonic())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--victim", type=int, required=True)
    parser.add_argument("--moment", type=float, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--recover", action="store_true")
    parser.add_argument("--rethrow", action="store_true")
    parser.add_argument("--shrink", action="store_true")
    case = parser.parse_args()
    if case.threads == 0:
        Rank(dist.world(), case).run()
    else:
        dist.run_ranks(lambda comm: Rank(comm, case).run(), case.threads)


if __name__ == "__main__":
    main()
