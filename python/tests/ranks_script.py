"""What runs under mpirun: the same calls as on thread ranks, with "cuda" on tensors of GPUs."""

import sys

import numpy as np

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu.algorithms import convolution, fft, matrix_ops, reduction, stencil

ON_GPUS = sys.argv[1:] == ["cuda"]


def placed(array):
    return cuop.tensor(array, device=cuop.current_device()) if ON_GPUS else array


def main():
    mpi = MPIManager()
    has_gpu = ON_GPUS or cuop.current_device().type == "cuda"
    assert mpi.get_gpu_id() == (mpi.get_rank() % cuop.get_device_count() if has_gpu else -1)
    distributor = TensorDistributor(mpi)
    root = mpi.is_master_process()
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.standard_normal((11, 7)),
        rng.standard_normal((7, 5)),
        rng.standard_normal((11, 7)),
    )
    image, weight = rng.standard_normal((3, 2, 9, 8)), rng.standard_normal((4, 2, 3, 3))

    def check(function, arrays, expected, **options):
        given = [placed(array) if root else None for array in arrays]
        result = function(*given, mpi, distributor, **options)
        assert (result is None) != root
        if root:
            if ON_GPUS:
                assert result.device == given[0].device
                result = result.to_numpy()
            np.testing.assert_allclose(result, expected, atol=1e-11)

    for strategy in ["row", "column", "block_2d", "k_split", None]:
        check(matrix_ops.distributed_matmul, [a, b], a @ b, strategy=strategy)
    rows, matrix = rng.standard_normal((2, 8, 4)), rng.standard_normal((8, 5))
    check(matrix_ops.distributed_batch_matmul, [image[0], rows], image[0] @ rows)
    check(matrix_ops.distributed_batch_matmul, [image[0], matrix], image[0] @ matrix)
    check(matrix_ops.distributed_transpose, [image], np.swapaxes(image, 1, 3), dim0=1, dim1=3)
    check(matrix_ops.distributed_add, [a, c], a + c)
    check(reduction.distributed_sum, [image], image.sum((0, 2)), dim=(0, 2))
    check(reduction.distributed_mean_kahan, [a], a.mean())
    check(reduction.distributed_max, [a], a.max(0), dim=0)
    check(fft.distributed_fft2d_pencil, [a], np.fft.fft2(a))
    check(fft.distributed_rfft, [a], np.fft.rfft(a))
    u = rng.standard_normal((13, 6))
    rhs = stencil.distributed_stencil_2d(u if root else None, mpi, distributor)
    check(stencil.distributed_stencil_2d, [u], rhs)
    check(stencil.distributed_jacobi_2d, [u, rhs], u, method="direct")
    info = stencil.distributed_jacobi_2d(
        u if root else None, rhs, mpi, distributor, iterations=5, tol=0.0, return_info=True
    )[1]
    assert info["sweeps"] == 5
    ones = convolution.distributed_conv2d(
        image if root else None, weight if root else None, mpi, distributor, padding=(1, 1)
    )
    if root:
        assert ones.shape == (3, 4, 9, 8)

    # A DistTensor across processes, then a failure on the last rank that all must hear of.
    mesh = dist.Mesh.line(mpi.get_size())
    x = dist.DistTensor.from_root(mpi.comm, placed(a) if root else None)
    x = x.redistribute(dist.Sharding(mesh, dist.P("r", None)))
    with cuop.profile() as recording:
        product = x @ x.T
    assert {event["rank"] for event in recording.events} == {mpi.get_rank()}
    np.testing.assert_allclose(product.gather_all().to_numpy(), a @ a.T, atol=1e-13)
    assert ON_GPUS == (product.local.device.type == "cuda")
    last = mpi.get_size() - 1
    if last > 0:
        try:
            mpi.allreduce_tensor(np.ones(3) if mpi.get_rank() == last else np.ones(2))
            raise SystemExit("the mismatch was not noticed")
        except MPIError as error:
            assert error.rank == last and "(3,)" in str(error)
    mpi.print_all("passed")


if __name__ == "__main__":
    main()
