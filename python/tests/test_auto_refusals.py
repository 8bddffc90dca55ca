"""Wrong options of AutoExecutor and the documented functions: MPIError on all ranks, which go on."""

import numpy as np
import pytest
from test_auto_executor import on_ranks

from cuop.errors import DTypeError
from distributed_gpu import MPIError, TensorDistributor
from distributed_gpu.algorithms import matrix_ops, stencil
from distributed_gpu.auto_executor import AutoExecutor, auto_compute
from distributed_gpu.pipeline_optimizer import PipelineOptimizer
from distributed_gpu.resource_planner import ResourcePlanner

A = np.arange(12.0).reshape(4, 3)
#: An option or argument that rank 1 alone has wrong.
WRONG_ON_RANK_1 = {
    "fft": lambda auto, x, bad: auto.fft(x, norm="big" if bad else "ortho"),
    "ifft": lambda auto, x, bad: auto.ifft(x, n="x" if bad else 3),
    "rfft": lambda auto, x, bad: auto.rfft(x, dim="x" if bad else 0),
    "irfft": lambda auto, x, bad: auto.irfft(x, n=-1 if bad else 3),
    "fft2d": lambda auto, x, bad: auto.fft2d(x, dim=5 if bad else (0, 1)),
    "fft2d without axes": lambda auto, x, bad: auto.fft2d(x, dim=None if bad else (0, 1)),
    "fft2d_pencil": lambda auto, x, bad: auto.fft2d_pencil(x, norm=3 if bad else "ortho"),
    "stencil_2d": lambda auto, x, bad: auto.stencil_2d(x, boundary="open" if bad else "zero"),
    "jacobi_2d": lambda auto, x, bad: auto.jacobi_2d(x, x, tol="x" if bad else 0, iterations=2),
    "sum": lambda auto, x, bad: auto.sum(x, "x" if bad else 0),
    "plan_info": lambda auto, x, bad: auto.plan_info("matmul", (3, 4), "x" if bad else (4, 5)),
    "a dtype": lambda auto, x, bad: auto.plan_info("fft", (8,), dtype="x" if bad else "float32"),
    "a norm": lambda auto, x, bad: auto.plan_info("fft", (8,), norm="x" if bad else "ortho"),
    "an option": lambda auto, x, bad: auto.plan_info("fft", (8,), **({"size": 1} if bad else {})),
    "a name": lambda auto, x, bad: auto_compute("no" if bad else "sum", x, mpi=auto.mpi),
    "an argument": lambda auto, x, bad: auto_compute(
        "sum", x, mpi=auto.mpi, **({"axis": 1} if bad else {})
    ),
    "a size": lambda auto, x, bad: auto.planner.plan_matmul("x" if bad else 1, 1, 1),
    "an operation": lambda auto, x, bad: auto.planner.plan_operation(
        "no" if bad else "fft", [(8,)]
    ),
    "an op": lambda auto, x, bad: auto.mpi.allreduce(1, "xor" if bad else "sum"),
}


def limit_of(auto, x, bad):
    AutoExecutor(auto.mpi, False, "x" if bad else 1.0).sum(x)


def margin_of(auto, x, bad):
    if bad:
        auto.planner.SAFETY_MARGIN = "x"
    try:
        auto.fft(x)
    finally:
        auto.planner.SAFETY_MARGIN = 0.2


WRONG_ON_RANK_1 |= {"a limit": limit_of, "a margin": margin_of}


@pytest.mark.parametrize("name", WRONG_ON_RANK_1)
def test_a_wrong_option_of_one_rank_is_raised_on_all(name):
    call = WRONG_ON_RANK_1[name]

    def work(auto):
        auto.mpi.comm.timeout = 600
        x = A if auto.is_master else None
        with pytest.raises(MPIError) as caught:
            call(auto, x, auto.mpi.get_rank() == 1)
        assert caught.value.rank == 1
        return str(caught.value), auto.sum(x)  # the ranks go on

    (heard, total), (own, _), _ = on_ranks(3, work)
    assert own.split(": ", 1)[-1] in heard
    assert total == A.sum()


#: Calls whose options are wrong on all ranks.
WRONG_ON_ALL = {
    "no axis": lambda auto, x: auto.sum(x, "x"),
    "a mode": lambda auto, x: auto.sum(x, mode="rough"),
    "a path": lambda auto, x: auto.einsum("ij->ji", x, optimize="bogus"),
    "an equation": lambda auto, x: auto.einsum(5, x),
    "a dimension": lambda auto, x: auto.transpose(x, "x"),
    "a stride": lambda auto, x: auto.conv2d(x, x, stride="x"),
    "a norm": lambda auto, x: auto.fft(x, norm="big"),
    "an axis": lambda auto, x: auto.fft2d(x, dim=3),
    "axes": lambda auto, x: auto.fft2d(x, dim=None),
    "arrays as axes": lambda auto, x: auto.fft2d(x, dim=(np.ones(2), 0)),
    "a wire": lambda auto, x: auto.matmul_mixed_precision(x, x, "int8"),
    "a share": lambda auto, x: auto.matmul_sparse_aware(x, x, 7.0),
    "chunks": lambda auto, x: auto.pipelined_matmul(x, x, 0),
    "an operation": lambda auto, x: auto.plan_info("bogus", (3,)),
    "a name": lambda auto, x: auto_compute("bogus", x, mpi=auto.mpi),
    "an argument": lambda auto, x: auto_compute("sum", x, mpi=auto.mpi, axis=1),
    "a limit": lambda auto, x: auto_compute("sum", x, mpi=auto.mpi, max_per_gpu_gb=1e300),
    "a limit of its own": lambda auto, x: AutoExecutor(auto.mpi, False, 1e300).sum(x),
    "shapes": lambda auto, x: auto.planner.plan_operation("matmul", 5),
    "a size": lambda auto, x: auto.planner.plan_matmul(-1, 1, 1),
    "documented wire": lambda auto, x: matrix_ops.distributed_matmul_mixed_precision(
        x, x, auto.mpi, None, comm_dtype="float64"
    ),
    "documented share": lambda auto, x: matrix_ops.distributed_matmul_sparse_aware(
        x, x, auto.mpi, None, 2.0
    ),
    "documented strategy": lambda auto, x: matrix_ops.distributed_matmul(
        x, None if x is None else x.T, auto.mpi, None, strategy="bogus"
    ),
    "a method": lambda auto, x: stencil.distributed_jacobi_2d(x, x, auto.mpi, None, method="bogus"),
    "a boundary": lambda auto, x: stencil.distributed_jacobi_2d(
        x, x, auto.mpi, None, boundary="bogus"
    ),
    "info": lambda auto, x: stencil.distributed_jacobi_2d(
        x, x, auto.mpi, None, return_info=np.ones(3)
    ),
    "compression": lambda auto, x: TensorDistributor(auto.mpi).distribute_compressed(
        x, comm_dtype="int8"
    ),
    "a grid": lambda auto, x: TensorDistributor(auto.mpi).distribute_2d(x, x, 0, 2),
    "rows": lambda auto, x: TensorDistributor(auto.mpi).gather_2d(A, 0, 2, 4, 3),
    "pipelined chunks": lambda auto, x: PipelineOptimizer(auto.mpi).pipelined_matmul(x, x, -1),
    "an op": lambda auto, x: auto.mpi.reduce(1, "xor"),
}


@pytest.mark.parametrize("name", WRONG_ON_ALL)
def test_wrong_options_raise_mpi_errors(name):
    def work(auto):
        with pytest.raises(MPIError) as caught:
            WRONG_ON_ALL[name](auto, A if auto.is_master else None)
        assert caught.value.rank in (0, auto.mpi.get_rank())  # rank 0 looks at what it has
        assert isinstance(caught.value.original, Exception)
        return auto.sum(A if auto.is_master else None)

    assert on_ranks(2, work)[0] == A.sum()


@pytest.mark.parametrize(
    "who, call",
    [
        ("AutoExecutor", AutoExecutor),
        ("auto_compute", lambda mpi: auto_compute("sum", A, mpi=mpi)),
        ("ResourcePlanner", ResourcePlanner),
        ("PipelineOptimizer", PipelineOptimizer),
        ("TensorDistributor", TensorDistributor),
    ],
)
def test_what_is_no_manager_is_said_by_the_call(who, call):
    with pytest.raises(DTypeError, match=f"^{who}: mpi: needed is an MPIManager, given 7$"):
        call(7)
