"""Plans of AutoExecutor and ResourcePlanner, and that calls follow them."""

import re

import numpy as np
import pytest
from default_device import DEVICES, ON_GPU

from cuop import Error, dist, executor
from distributed_gpu import MPIError, MPIManager, _tiled
from distributed_gpu.auto_executor import AutoExecutor
from distributed_gpu.resource_planner import ExecutionPlan, GPUStatus, ResourcePlanner

KIB = 2.0**-20  # GiB


def test_status(capsys):
    planner = ResourcePlanner(MPIManager())
    statuses = planner.scan_all_gpus()
    numbers = [(status.gpu_id, status.rank) for status in statuses]
    assert numbers == ([(i, i) for i in range(DEVICES)] if ON_GPU else [(-1, 0)])
    for status in statuses:
        assert isinstance(status, GPUStatus)
        assert 0 < status.usable_memory_gb < status.free_memory_gb <= status.total_memory_gb
    status = statuses[0]
    assert planner.get_usable_memory() == [each.usable_memory_gb for each in statuses]
    planner.SAFETY_MARGIN = 0.5
    assert planner.get_usable_memory()[0] < 0.8 * status.usable_memory_gb
    limited = ResourcePlanner(MPIManager(), max_per_gpu_gb=0.25)
    assert limited.get_usable_memory() == [0.25] * DEVICES
    limited.print_gpu_status()
    line = rf"{'GPU 0' if ON_GPU else 'host'} \(Rank  0\): \[[█░]{{30}}\] .* usable 256\.0 MiB"
    assert re.search(line, capsys.readouterr().out)


def test_ranks_share_the_host():
    def work(comm):
        planner = ResourcePlanner(MPIManager(comm))
        return planner.scan_all_gpus()

    statuses = dist.run_ranks(work, 4)
    assert all(each == statuses[0] for each in statuses)
    for status in statuses[0]:
        assert status.usable_memory_gb <= status.free_memory_gb / (4 // min(4, DEVICES))


def test_plans(capsys):
    planner = ResourcePlanner(MPIManager(), max_per_gpu_gb=0.5)
    plan = planner.plan_matmul(M=50000, K=10000, N=50000)
    assert isinstance(plan, ExecutionPlan)
    assert plan.feasible
    assert plan.num_batches > 1
    assert plan.per_gpu_memory_gb <= 0.5
    assert plan.total_data_memory_gb == pytest.approx(4 * (2 * 5e8 + 2.5e9) / 2**30)
    assert 0 < plan.floor_ms <= plan.predicted_time_ms
    lengths = {0: 50000, 1: 50000, -1: 10000}
    assert sum(plan.batch_sizes) == lengths[plan.batch_dim]
    tiny = ResourcePlanner(MPIManager(), max_per_gpu_gb=1e-9)
    plan = tiny.plan_operation("fft", [(1000, 1000)])
    assert not plan.feasible
    assert plan.smallest_memory_gb > 1e-9
    assert "not feasible" in plan.description
    roomy = ResourcePlanner(MPIManager(), plan.smallest_memory_gb * 1.001)
    assert roomy.plan_operation("fft", [(1000, 1000)]).feasible
    executor_ = AutoExecutor(verbose=False)
    info = executor_.plan_info("einsum", "ij,jk->ik", (50, 60), (60, 70), dtype="float64")
    assert info.total_data_memory_gb == pytest.approx(8 * (3000 + 4200 + 3500) / 2**30)
    small = AutoExecutor(verbose=False, max_per_gpu_gb=64 * KIB)
    small.plan_info("matmul", (300, 400), (400, 500))
    text = capsys.readouterr().out
    worker, place = ("GPU", "GPU") if ON_GPU else ("rank", "host")
    usable = "64.0 KiB" if DEVICES == 1 else r"\d.*"
    assert re.search(rf"usable {place} memory: {usable} \(least of a {worker} 64.0 KiB\)", text)
    assert re.search(rf"batches x \d+ {worker}s \| .* \| [\d.]+ KiB a {worker}", text)
    assert ("GPU" in text) == ON_GPU
    assert "[AutoExecutor] ━━━ plan ━━━" in text
    assert "predicted" in text


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("batch_matmul", [(4, 5, 6), (4, 6, 7)]),
        ("rfft", [(30, 40)]),
        ("irfft", [(30, 40)]),
        ("fft2d", [(3, 30, 40)]),
        ("fft2d_pencil", [(30, 40)]),
        ("conv2d", [(2, 3, 9, 9), (4, 3, 3, 3)]),
        ("mean_kahan", [(30, 40)]),
        ("transpose", [(30, 40)]),
        ("add", [(30, 40), (40,)]),
        ("stencil_2d", [(30, 40), (3, 3)]),
        ("jacobi_2d", [(30, 40), (30, 40)]),
        ("tensordot", [(30, 4, 5), (4, 5, 2)]),
        ("matmul_sparse_aware", [(30, 4), (4, 5)]),
    ],
)
def test_every_operation_is_planned(op, shapes):
    plan = ResourcePlanner(MPIManager()).plan_operation(op, shapes)
    assert plan.feasible
    assert plan.operation == op and 1 <= plan.num_gpus_active <= DEVICES


#: Arrays, options, KiB of a device and the passes of calls whose result is not made at once; a name
#: begins with the method's.
IN_PASSES = {
    "fft": ([np.ones(4000, "c16")], {}, 32, 2),
    "ifft": ([np.ones(3000, "c16")], {"n": 4000, "norm": "ortho"}, 32, 2),
    "rfft": ([np.ones(8000)], {}, 32, 2),
    "irfft": ([np.ones(4001, "c16")], {}, 40, 2),
    "fft of a prime line": ([np.ones(4001, "c16")], {}, 32, 4),
    "rfft of a prime line": ([np.ones(8009)], {"norm": "ortho"}, 32, 4),
    "irfft of a prime line": ([np.ones(4001, "c16")], {"n": 8009}, 32, 4),
    "fft2d": ([np.ones((60, 50))], {}, 16, 2),
    "fft2d_pencil": ([np.ones((60, 50))], {"norm": "forward"}, 16, 2),
    "stencil_2d": ([np.ones((90, 50)), np.ones((3, 3))], {"iterations": 70}, 32, None),
    "jacobi_2d": ([np.ones((90, 50))] * 2, {"iterations": 70, "tol": 0.0}, 32, None),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("op", IN_PASSES)
def test_calls_in_passes_follow_their_plans(op, ranks):
    arrays, options, limit, passes = IN_PASSES[op]
    op = op.split()[0]
    shapes, dtype = [x.shape for x in arrays], arrays[0].dtype

    def work(comm):
        auto = AutoExecutor(MPIManager(comm), verbose=False, max_per_gpu_gb=limit * KIB)
        plan = auto.planner.plan_operation(op, shapes, dtype, **options)
        getattr(auto, op)(*(arrays if auto.is_master else [None] * len(arrays)), **options)
        return plan, auto.last_report

    for plan, report in dist.run_ranks(work, ranks):
        assert plan.feasible
        assert plan.num_passes > 1 and plan.num_passes == (passes or plan.num_passes)
        assert report.passes == plan.num_passes
        assert report.plan.memory == plan.per_gpu_memory_gb * 2**30 <= limit * 1024
        assert report.peak <= report.plan.memory
        assert plan.num_batches >= plan.num_passes
        assert ranks <= plan.num_gpus_active <= max(ranks, DEVICES)
        assert plan.scratch_memory_gb > 0 or op.startswith("fft2d")
        assert 0 < plan.floor_ms <= plan.predicted_time_ms


@pytest.mark.parametrize("op", [*IN_PASSES, "matmul"])
def test_plans_on_paper_are_those_of_ranks(op):
    product = [np.ones((90, 50)), np.ones((50, 90))], {}, 8, 1
    arrays, options, limit, _ = IN_PASSES.get(op, product)
    op = op.split()[0]
    planner = ResourcePlanner(MPIManager(), limit * KIB)
    plan, shapes = _tiled.planned(op, [x.shape for x in arrays], **options)
    for bytes_ in (limit << 10, 10, 10**9):
        paper = plan(shapes, arrays[0].dtype, executor.TileMachine.of(memory=bytes_))
        limits = {**planner.limits(), "memory_limit": bytes_}
        real = plan(shapes, arrays[0].dtype, executor.RankDevices.of(dist.world(), **limits))
        assert (paper.smallest, paper.feasible, paper.limit) == (
            real.smallest,
            real.feasible,
            bytes_,
        )
        assert paper.way == real.way
        assert len(paper.passes) == len(real.passes)


def test_what_fits_is_planned_and_done_at_once():
    auto = AutoExecutor(verbose=False)
    plan = auto.planner.plan_operation("rfft", [(8000,)])
    assert (plan.num_passes, plan.num_batches, plan.batch_sizes) == (1, 1, [4001])
    auto.rfft(np.ones(8000, "f4"))
    assert auto.last_report.passes == 1
    plan = auto.planner.plan_operation("stencil_2d", [(60, 50)], iterations=9)
    assert (plan.num_passes, plan.batch_sizes, plan.feasible) == (0, [60], True)
    assert "swept whole" in plan.description
    assert plan.per_gpu_memory_gb == executor.whole_grid_bytes((60, 50), "float32") / 2**30
    auto.stencil_2d(np.ones((60, 50), "f4"), iterations=9)
    assert auto.last_report is None


@pytest.mark.parametrize(
    ("op", "shapes", "options", "words"),
    [
        ("rfft", [(30,), (30,)], {}, "rfft: 2 shapes were given, needed are 1"),
        ("fft", [(30,)], {"dim": 1}, "axis 1 is out of range"),
        ("fft", [(30,)], {"n": 0}, "must be 1 or more"),
        ("fft2d", [(30,)], {}, "fft2d"),
        ("stencil_2d", [(30, 30), (2, 2)], {}, "odd size"),
        ("stencil_2d", [(30, 30)], {"iterations": 0}, "0 sweeps were given"),
        ("jacobi_2d", [(30, 30)], {}, "jacobi_2d: 1 shapes were given, needed are 2"),
        ("jacobi_2d", [(30, 30), (30, 31)], {}, "jacobi_2d: grid (30, 30) and rhs (30, 31)"),
        ("matmul", [(3, 4), (3, 4)], {}, "do not fit"),
        ("matmul", [(3, 4)], {}, "b was not given"),
    ],
)
def test_what_cannot_be_planned(op, shapes, options, words):
    with pytest.raises((MPIError, Error), match=re.escape(words)):
        ResourcePlanner(MPIManager()).plan_operation(op, shapes, "float64", **options)
