"""Distributed algorithms with input and result on rank 0: the documented face of cuop.dist.

    mpi = MPIManager()
    distributor = TensorDistributor(mpi)
    C = distributed_matmul(A, B, mpi, distributor)   # A, B on rank 0, None elsewhere

Runs under mpirun, srun or torchrun, on ranks that are threads (cuop.dist.run_ranks), or alone.
"""

from distributed_gpu.mpi_manager import MPIError, MPIManager
from distributed_gpu.tensor_distributor import TensorDistributor

__all__ = ["MPIError", "MPIManager", "TensorDistributor"]
