"""One chain of operations on any number of ranks, written once: threads, MPI processes, GPUs.

python ranks.py                          threads of this process, 1 to 7 ranks
mpirun -np 3 python ranks.py             processes
CUOP_DEVICE=cuda python ranks.py         threads with a GPU each, or processes under mpirun
"""

import numpy as np

import cuop
from cuop import dist


def chain(comm, image, weights):
    """Scatter, matmul, add a number, relu, fft2d, slice, sum, gather: on rank 0, None elsewhere.

    Inside strict() nothing is brought together but what says so.
    """
    line = dist.Mesh.line(comm.size)
    in_rows, everywhere = dist.Sharding(line, dist.P("r", None)), dist.Sharding.replicated(line)
    with dist.strict():
        x = dist.DistTensor.from_root(comm, image).redistribute(in_rows)
        w = dist.DistTensor.from_root(comm, weights).redistribute(everywhere)
        hidden = cuop.relu(x @ w + 0.5)  # rows stay on their ranks
        spectrum = hidden.fft2d()  # one all-to-all; the result lies in columns
        low = spectrum[1:6, ::2]  # parts of parts, nothing moves
        power = (abs(low) ** 2).sum(axis=0, mode="exact")
        return power.gather()


def expected(image, weights):
    hidden = np.maximum(image @ weights + 0.5, 0)
    return (abs(np.fft.fft2(hidden)[1:6, ::2]) ** 2).sum(axis=0)


def work(comm):
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((11, 8)), rng.standard_normal((8, 7))
    is_root = comm.rank == 0
    given = [cuop.tensor(array) if is_root else None for array in (image, weights)]
    power = chain(comm, *given)
    assert (power is None) != is_root
    if is_root:
        assert power.device == given[0].device
        np.testing.assert_allclose(power.to_numpy(), expected(image, weights), rtol=1e-12)


def main():
    world = dist.world()
    if world.size > 1:
        work(world)
    else:
        for ranks in (1, 2, 3, 4, 7):
            dist.run_ranks(work, ranks)
    if world.rank == 0:
        print("ranks: all checks hold")


if __name__ == "__main__":
    main()
