"""The ranks of a benchmark: the processes of mpirun, or threads of this one."""

from cuop import dist


def on_ranks(work, threads, script):
    """work(comm) on every rank; rank 0's result, and the beginning of the command that ran it. None, "" on
    processes of other ranks.
    """
    world = dist.world()
    if world.size == 1:
        return dist.run_ranks(work, threads)[0], f"python benchmarks/{script} --ranks {threads}"
    result = work(world)
    if world.rank != 0:
        return None, ""
    return result, f"mpirun --bind-to none -np {world.size} python benchmarks/{script}"
