"""Ranks with tensors on GPUs: worked on there, each rank on its own, given back where they came from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu._call import from_root
from distributed_gpu.algorithms.matrix_ops import distributed_matmul
from distributed_gpu.algorithms.reduction import distributed_sum
from distributed_gpu.algorithms.stencil import distributed_stencil_2d

RANKS = 3
A, B = np.random.default_rng(1).random((2, 12, 12))


def on_root(function, *arrays, current="cuda", **options):
    """The result on rank 0 of a rank-0 function of `distributed_gpu`, on ranks of a current device."""

    def work(comm):
        cuop.set_current_device(current)
        mpi = MPIManager(comm)
        given = arrays if comm.rank == 0 else [None] * len(arrays)
        return function(*given, mpi, TensorDistributor(mpi), **options)

    results = dist.run_ranks(work, RANKS)
    assert results[1:] == [None] * (RANKS - 1)
    return results[0]


def there(array):
    return cuop.tensor(array, device="cuda")


@pytest.mark.parametrize("current", ["cpu", "cuda"])
def test_results_come_back_to_the_device_of_the_first_input(current):
    for first, second, device in [
        (there(A), there(B), "cuda:0"),
        (there(A), B, "cuda:0"),
        (cuop.tensor(A, device="cpu"), there(B), "cpu"),
    ]:
        result = on_root(distributed_matmul, first, second, current=current, strategy="row")
        assert result.device == device
        np.testing.assert_allclose(result.to_numpy(), A @ B, rtol=1e-12)


@pytest.mark.parametrize("current", ["cpu", "cuda"])
def test_arrays_of_numpy_give_arrays_of_numpy(current):
    result = on_root(distributed_matmul, A, B, current=current)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, A @ B, rtol=1e-12)
    assert type(on_root(distributed_matmul, A, there(B), current=current)) is np.ndarray


@pytest.mark.parametrize("given", [A.tolist(), tuple(A[0]), 2, 0.5, 1j, np.float64(3), A])
def test_what_has_no_gpu_memory_stays_on_the_host(given):
    seen = []

    def spy_from_root(comm, x):
        seen.append(str(x.device))
        return x

    cuop.set_current_device("cuda")
    mpi = MPIManager()
    assert type(from_root(spy_from_root, mpi, {"x": given})) is np.ndarray
    mpi.place_tensor(given, lambda x: seen.append(str(x.local.device)) or x.local)
    assert seen == ["cpu", "cpu"]


def test_other_algorithms_take_tensors_of_a_gpu():
    total = on_root(distributed_sum, there(A), dim=0)
    assert total.device == "cuda:0"
    np.testing.assert_allclose(total.to_numpy(), A.sum(0), rtol=1e-12)
    swept = on_root(distributed_stencil_2d, there(A), iterations=2)
    assert swept.device == "cuda:0"
    np.testing.assert_array_equal(
        swept.to_numpy(), on_root(distributed_stencil_2d, A, iterations=2)
    )


def test_parts_lie_on_the_ranks_gpus():
    cuop.set_current_device("cuda:0")
    count = cuop.get_device_count()

    def work(comm):
        mine = cuop.current_device()
        whole = dist.DistTensor.from_root(comm, there(A) if comm.rank == 0 else None)
        rows = whole.redistribute(dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None)))
        again = dist.DistTensor.from_parts(comm, rows.local, 0)
        made = dist.DistTensor(comm, rows.sharding, (12, 12), "float64", rows.local)
        devices = {str(x.local.device) for x in (whole, rows, again, made)}
        return mine, devices, (again @ made.T).gather(), again.gather_all()

    for rank, (mine, devices, product, whole) in enumerate(dist.run_ranks(work, RANKS)):
        assert mine == f"cuda:{rank % count}"
        assert devices == {str(mine)}
        assert whole.device == mine
        np.testing.assert_array_equal(whole.to_numpy(), A)
        if rank == 0:
            assert product.device == mine
            np.testing.assert_allclose(product.to_numpy(), A @ A.T, rtol=1e-12)


def test_the_manager_knows_its_gpu_and_clears_page_locked_memory():
    cuop.set_current_device("cuda:0")

    def work(comm):
        mpi = MPIManager(comm)
        mpi.synchronize()
        return mpi.get_gpu_id(), mpi.clear_pinned_pool()

    count = cuop.get_device_count()
    for rank, (gpu, freed) in enumerate(dist.run_ranks(work, RANKS)):
        assert gpu == rank % count
        assert freed >= 0


def test_reductions_between_ranks_answer_on_the_device_of_each_ranks_tensor():
    def work(comm):
        mine = cuop.tensor(A * (comm.rank + 1), device="cuda" if comm.rank else "cpu")
        return mine, dist.all_reduce(comm, mine), dist.reduce_to(comm, mine, "max", root=1)

    for rank, (mine, total, most) in enumerate(dist.run_ranks(work, RANKS)):
        assert total.device == mine.device
        np.testing.assert_allclose(total.to_numpy(), 6 * A, rtol=1e-15)
        np.testing.assert_array_equal(mine.to_numpy(), A * (rank + 1))
        if rank == 1:
            assert most.device == "cuda:0"
            np.testing.assert_array_equal(most.to_numpy(), 3 * A)


def test_tensors_that_ranks_exchange_stay_on_gpus():
    def work(comm):
        mpi = MPIManager(comm)
        distributor = TensorDistributor(mpi)
        root = there(A) if comm.rank == 0 else None
        block = mpi.scatter_tensor(root)
        joined = mpi.allgather_tensor(block)
        return (
            block,
            joined,
            mpi.broadcast_tensor(root),
            mpi.gather_tensor(block),
            mpi.allreduce_tensor(block[:4]),
            distributor.reduce_sum(block[:4]),
            mpi.scatter_tensor(A if comm.rank == 0 else None),
        )

    results = dist.run_ranks(work, RANKS)
    for rank, (block, joined, whole, gathered, total, summed, plain) in enumerate(results):
        assert {str(t.device) for t in (block, joined, whole, total)} == {"cuda:0"}
        np.testing.assert_array_equal(block.to_numpy(), A[4 * rank : 4 * rank + 4])
        np.testing.assert_array_equal(joined.to_numpy(), A)
        np.testing.assert_array_equal(whole.to_numpy(), A)
        wanted = A[:4] + A[4:8] + A[8:]
        np.testing.assert_allclose(total.to_numpy(), wanted, rtol=1e-15)
        assert type(plain) is np.ndarray
        assert (gathered is None) == (summed is None) == (rank > 0)
        if rank == 0:
            assert gathered.device == summed.device == "cuda:0"
            np.testing.assert_array_equal(gathered.to_numpy(), A)
            np.testing.assert_allclose(summed.to_numpy(), wanted, rtol=1e-15)


def test_a_plain_process_works_on_all_its_gpus():
    mpi = MPIManager()
    product = distributed_matmul(there(A), there(B), mpi, TensorDistributor(mpi), strategy="row")
    assert product.device == "cuda:0"
    np.testing.assert_allclose(product.to_numpy(), A @ B, rtol=1e-12)
    assert dist.last_report().plan.ranks == cuop.get_device_count()
    with pytest.raises(MPIError, match="do not fit"):
        distributed_matmul(there(A), there(B[:5]), mpi, TensorDistributor(mpi), strategy="row")


SCRIPT = Path(__file__).parent.parent / "ranks_script.py"
CHAIN = Path(__file__).parents[3] / "examples" / "python" / "ranks.py"


def passed(processes):
    outputs = [process.communicate(timeout=300) for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output
    return sorted(line for output in outputs for line in output[0].splitlines())


def start(command, **variables):
    variables = {"CUOP_COMM_TIMEOUT": "100", "CUOP_DEVICE": "auto", **variables}
    environment = dict(os.environ, **variables)
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_processes_of_mpirun_work_on_gpus_of_their_own():
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS)]
    process = start([*command, sys.executable, str(SCRIPT), "cuda"])
    assert passed([process]) == [f"[rank {rank}] passed" for rank in range(RANKS)]


@pytest.mark.parametrize("launcher", [[], ["mpirun"]])
def test_the_chain_that_also_runs_on_the_cpu(launcher):
    if launcher and (shutil.which("mpirun") is None or dist.mpi_unavailable_reason()):
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")
    if launcher:
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(RANKS)]
    process = start([*launcher, sys.executable, str(CHAIN)], CUOP_DEVICE="cuda")
    assert passed([process]) == ["ranks: all checks hold"]


def test_processes_of_torchrun_work_on_gpus_of_their_own(master_port):
    processes = [
        start(
            [sys.executable, str(SCRIPT), "cuda"],
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(RANKS),
            LOCAL_WORLD_SIZE=str(RANKS),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=master_port,
            CUOP_JOB_SECRET="known to these ranks alone",
        )
        for rank in range(RANKS)
    ]
    assert passed(processes) == [f"[rank {rank}] passed" for rank in range(RANKS)]
