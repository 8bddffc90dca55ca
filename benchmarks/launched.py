"""Benchmarks on ranks: the processes of mpirun, or threads of this one, each with a device of its own."""

import argparse
import statistics
import time
from pathlib import Path

import cuop
from cuop import dist


def arguments(description):
    """A parser with the options that all of them have."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2, help="threads, without mpirun")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--table", type=Path)
    return parser


def on_ranks(work, options, script):
    """work(comm, device) on every rank; rank 0's result, and the beginning of the command that ran it. None, ""
    on processes of other ranks.
    """

    def on_device(comm):
        device = f"cuda:{comm.rank}" if options.device == "cuda" else "cpu"  # one host's
        cuop.set_current_device(device)
        return work(comm, device)

    world = dist.world()
    end = f"--device {options.device}"
    if world.size == 1:
        command = f"python benchmarks/{script} --ranks {options.ranks} {end}"
        return dist.run_ranks(on_device, options.ranks)[0], command
    result = on_device(world)
    if world.rank != 0:
        return None, ""
    return result, f"mpirun --bind-to none -np {world.size} python benchmarks/{script} {end}"


def slowest(comm, seconds):
    """Of several times that each rank has measured those of the slowest rank, on all."""
    mine = cuop.tensor(seconds, dtype="float64", device="cpu")
    return dist.all_reduce(comm, mine, "max").tolist()


def alone_and_in_a_row(comm, call, times, *, wait=cuop.synchronize, rows=5, in_a_row=10):
    """Seconds of a call and its wait, the median of so many `times`, and of a call among those that follow each
    other, the shortest of some rows; of the slowest rank, all starting together.
    """

    def seconds_of(count):
        wait()
        comm.barrier()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        return (time.perf_counter() - begin) / count

    seconds_of(3)
    found = [seconds_of(1) for _ in range(times)] + [seconds_of(in_a_row) for _ in range(rows)]
    found = slowest(comm, found)
    return statistics.median(found[:times]), min(found[times:])


def origin(command):
    """The lines that a table begins with."""
    return [f"- command: {command}", f"- date: {time.strftime('%Y-%m-%d')}"]


def tell(heading, lines, table):
    """The lines, also as a file."""
    print("\n".join(lines))
    if table:
        table.write_text(f"# {heading}\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
