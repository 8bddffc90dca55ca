"""The parts of distributed_gpu around its algorithms: forms on the wire, costs, pipelines, devices."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu.algorithms.matrix_ops import (
    distributed_matmul,
    distributed_matmul_mixed_precision,
    distributed_matmul_sparse_aware,
)
from distributed_gpu.cost_model import ClusterConfig, CostModel, SplitPlan, SplitStrategy
from distributed_gpu.gpu_manager import GPUManager
from distributed_gpu.pipeline_optimizer import PipelineConfig, PipelineOptimizer
from distributed_gpu.utils.profiler import Profiler

RANKS = [1, 2, 3, 4, 7]
SETTINGS = settings(max_examples=10, deadline=None)


def noise(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def on_ranks(ranks, work):
    """work(mpi, distributor) on every rank; the results."""

    def run(comm):
        mpi = MPIManager(comm)
        return work(mpi, TensorDistributor(mpi))

    return dist.run_ranks(run, ranks)


def from_root(ranks, function, *arrays, **options):
    """The result on rank 0 of a function of arrays there, None on all others."""

    def work(mpi, distributor):
        mine = arrays if mpi.is_master_process() else [None] * len(arrays)
        return function(*mine, mpi, distributor, **options)

    first, *others = on_ranks(ranks, work)
    assert all(result is None for result in others)
    return first


def bound(a, b, epsilon):
    """c epsilon sqrt(K) |A| |B| with c = 2."""
    return 2 * epsilon * np.sqrt(a.shape[1]) * np.linalg.norm(a) * np.linalg.norm(b)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("comm_dtype", "epsilon"), [("float16", 2**-11), (np.float16, 2**-11), ("bfloat16", 2**-8)]
)
def test_mixed_precision_keeps_its_bound(ranks, comm_dtype, epsilon):
    for scale in (1.0, 1e18, 1e-25):
        a, b = noise(1, 60, 30) * np.float32(scale), noise(2, 30, 50) / np.float32(scale)
        c = from_root(ranks, distributed_matmul_mixed_precision, a, b, comm_dtype=comm_dtype)
        assert (type(c), c.dtype) == (np.ndarray, np.float32)
        exact = a.astype(np.float64) @ b
        assert np.linalg.norm(c - exact) <= bound(a.astype("f8"), b.astype("f8"), epsilon)


def test_mixed_precision_passes_what_is_not_finite():
    def forced(mpi, _):
        a = noise(1, 40, 30)
        a[3, 4], a[20, 1], a[35, 2] = np.inf, np.nan, 1e38
        b = noise(2, 30, 8)
        wire = dist.Wire.narrow("float16")
        root = mpi.is_master_process()
        arguments = (a, b) if root else (None, None)
        c = dist.matmul_from_root(mpi.comm, *arguments, strategy="row", wire=wire)
        if root:
            with np.errstate(invalid="ignore"):
                exact = a.astype("f8") @ b
            c = np.asarray(c)
            assert np.array_equal(np.isfinite(c), np.isfinite(exact))
            np.testing.assert_allclose(c[35], exact[35], rtol=1e-2)

    on_ranks(4, forced)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.8, 0.99, 1.0])
def test_sparse_aware_products_are_dense_ones(ranks, zeros):
    for dtype in (np.float32, np.float64, np.int32):
        a, b = ((noise(seed, 31, 31) * 50).astype(dtype) for seed in (1, 2))
        a[np.random.default_rng(3).random(a.shape) < zeros] = 0
        for threshold in (0.0, 0.5, 1.0):
            c = from_root(
                ranks, distributed_matmul_sparse_aware, a, b, sparsity_threshold=threshold
            )
            np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("ranks", RANKS)
def test_arrays_travel_compressed(ranks):
    whole = noise(5, 23, 40)

    def work(mpi, distributor):
        root = mpi.is_master_process()
        mine = distributor.distribute_compressed(whole if root else None)
        begin, end = distributor.get_local_range(23)
        np.testing.assert_allclose(mine, whole[begin:end], rtol=2**-11)
        if root:
            np.testing.assert_array_equal(mine, whole[begin:end])
        back = distributor.gather_compressed(whole[begin:end])
        everywhere = distributor.broadcast_compressed(
            whole if root else None, comm_dtype="bfloat16"
        )
        np.testing.assert_allclose(everywhere, whole, rtol=2**-8)
        return back

    back, *others = on_ranks(ranks, work)
    np.testing.assert_allclose(back, whole, rtol=2**-11)
    assert all(result is None for result in others)


def test_compressed_arrays_are_half_as_long():
    whole = noise(5, 512, 512)

    def sent(wire):
        def work(mpi, _):
            before = mpi.comm.bytes_sent
            mpi.broadcast_tensor(whole if mpi.is_master_process() else None, wire=wire)
            return mpi.comm.bytes_sent - before

        return sum(on_ranks(3, work))

    plain = sent(None)
    assert sent(dist.Wire.narrow()) < 0.51 * plain
    assert sent(dist.Wire.sparse(0.5)) < 1.01 * plain
    assert sent(dist.Wire.sparse()) == plain


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m, d: distributed_matmul_mixed_precision(None, None, m, d, "float32"), "float32"),
        (lambda m, d: distributed_matmul_mixed_precision(None, None, m, d, "no"), "no"),
        (lambda m, d: distributed_matmul_sparse_aware(None, None, m, d, 1.5), "1.5"),
        (lambda m, d: distributed_matmul_sparse_aware(None, None, m, d, "x"), "threshold"),
        (
            lambda m, d: d.gather_compressed(np.zeros(3), comm_dtype="int8"),
            "gather_compressed: comm_dtype: elements cannot travel as int8",
        ),
    ],
)
def test_forms_that_nothing_travels_in(call, text):
    def work(mpi, distributor):
        with pytest.raises(cuop.errors.Error, match=re.escape(text)):
            call(mpi, distributor)

    work(MPIManager(), TensorDistributor(MPIManager()))


def test_integers_do_not_travel_as_floats():
    def work(mpi, distributor):
        with pytest.raises(MPIError, match="int64 cannot travel as float16"):
            distributor.distribute_compressed(np.arange(6) if mpi.is_master_process() else None)
        return distributor.distribute(np.arange(6) if mpi.is_master_process() else None)

    assert [part.tolist() for part in on_ranks(2, work)] == [[0, 1, 2], [3, 4, 5]]


# Costs.


def cluster(nodes=4, **figures):
    return ClusterConfig(
        **{
            "num_nodes": nodes,
            "gpu_memory_gb": 16.0,
            "gpu_tflops": 10.0,
            "intra_node_bandwidth": 100.0,
            "network_latency_ms": 0.01,
            **figures,
        }
    )


def test_the_figures_of_a_cluster():
    config = cluster(3, gpu_memory_gb=[16, 32, 8], gpu_tflops=(1, 2, 3))
    assert (config.total_memory_gb, config.min_memory_gb, config.total_tflops) == (56, 8, 6)
    assert config.planned_machine().flops == 1e12
    assert config.planned_machine().memory == 8 * 2**30
    spread = cluster(8, nodes_per_host=4, inter_node_bandwidth=10.0)
    assert spread.planned_machine().link_bandwidth == 10e9
    assert (
        cluster(4, nodes_per_host=4, inter_node_bandwidth=10.0).planned_machine().link_bandwidth
        == 100e9
    )
    here = ClusterConfig.from_auto_detect(num_nodes=4)
    assert here.num_nodes == 4
    assert here.min_memory_gb > 0.1
    assert ClusterConfig.from_auto_detect().num_nodes == 1


def test_ranks_measure_their_figures_together():
    configs = on_ranks(2, lambda mpi, _: ClusterConfig.from_auto_detect(mpi=mpi))
    assert configs[0].num_nodes == 2
    assert configs[0].gpu_tflops == configs[1].gpu_tflops > 0


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"num_nodes": 0}, "num_nodes is 0"),
        ({"num_nodes": 2, "gpu_memory_gb": [1, 2, 3]}, "3 values, needed is one number or 2"),
        ({"num_nodes": 2, "gpu_tflops": 0}, "gpu_tflops is 0"),
        ({"num_nodes": 2, "gpu_tflops": "fast"}, "gpu_tflops: needed is a number"),
        ({"num_nodes": 2, "intra_node_bandwidth": float("nan")}, "intra_node_bandwidth is nan"),
        ({"num_nodes": 2, "nodes_per_host": 0}, "nodes_per_host is 0"),
        (
            {"num_nodes": 2, "gpu_memory_gb": 1e300},
            "gpu_memory_gb is 1e+300; it must be from 1e-12",
        ),
        ({"num_nodes": 2, "memory_bandwidth": 1e-320}, "memory_bandwidth is 9.99989e-321; it must"),
    ],
)
def test_figures_that_no_cluster_has(figures, text):
    with pytest.raises(cuop.errors.Error, match=re.escape(text)):
        ClusterConfig(**figures)


@pytest.mark.parametrize("figure", [1e-12, 1e9])
@pytest.mark.parametrize(
    "name", ["gpu_memory_gb", "gpu_tflops", "intra_node_bandwidth", "memory_bandwidth"]
)
def test_costs_of_any_figures_are_numbers(name, figure):
    model = CostModel(cluster(**{name: figure}))
    for size in (1, 2**20):
        cost = model.find_optimal_strategy(size, size, size).cost
        assert np.isfinite([cost.total_time_ms, cost.compute_time_ms, cost.comm_time_ms]).all()
        assert np.isfinite([cost.speedup, cost.efficiency, cost.floor_ms]).all()
        assert cost.feasible or (name, figure) == ("gpu_memory_gb", 1e-12) or size > 1


def test_costs_are_those_of_the_planner():
    model = CostModel(cluster())
    n = 8192
    cost = model.estimate_matmul_cost(n, n, n, SplitStrategy.ROW_SPLIT)
    memory = model.config.memory_bandwidth * 1e9
    touched = 4 * n * n * (0.25 + 1 + 0.25) / memory * 1e3  # of A, B and C
    assert cost.compute_time_ms == pytest.approx(2 * n**3 / 4 / 10e12 * 1e3 + touched)
    # Rank 0 sends all of B and its parts of A, and gets C back.
    assert cost.bytes_moved == 4 * n * n * (3 + 0.75 + 0.75)
    assert cost.total_time_ms == pytest.approx(cost.compute_time_ms + cost.comm_time_ms)
    assert cost.feasible
    alone = 2 * n**3 / 10e12 * 1e3 + 4 * 3 * n * n / memory * 1e3
    assert cost.speedup == pytest.approx(alone / cost.total_time_ms)
    assert cost.efficiency == pytest.approx(cost.speedup / 4)
    assert 0 < cost.floor_ms <= cost.total_time_ms
    assert model.estimate_matmul_cost(n, n, n, "batch") == cost
    half = model.estimate_matmul_cost(n, n, n, SplitStrategy.ROW_SPLIT, dtype_bytes=2)
    assert half.bytes_moved == cost.bytes_moved / 2
    assert half.memory_gb == pytest.approx(cost.memory_gb / 2)


@given(
    m=st.integers(0, 5000),
    k=st.integers(0, 5000),
    n=st.integers(0, 5000),
    nodes=st.sampled_from([1, 2, 4, 6, 7]),
)
@SETTINGS
def test_the_best_strategy_is_the_least_of_all(m, k, n, nodes):
    model = CostModel(cluster(nodes))
    plan = model.find_optimal_strategy(M=m, K=k, N=n)
    assert isinstance(plan, SplitPlan)
    for split in (SplitStrategy.ROW_SPLIT, SplitStrategy.COLUMN_SPLIT, SplitStrategy.BLOCK_2D):
        cost = model.estimate_matmul_cost(m, k, n, split)
        assert plan.cost.total_time_ms <= cost.total_time_ms
        assert cost.floor_ms <= cost.total_time_ms * (1 + 1e-9)
    assert sum(plan.chunk_sizes) == (n if plan.split_dim == 1 else m)
    assert plan.grid_rows * plan.grid_cols <= nodes


def test_what_does_not_fit_is_not_feasible():
    model = CostModel(cluster(gpu_memory_gb=0.01))
    cost = model.estimate_matmul_cost(4096, 4096, 4096, SplitStrategy.ROW_SPLIT)
    assert not cost.feasible
    assert cost.memory_gb > 0.01
    assert model.estimate_memory_requirement(4096, 4096, 4096) > 0.01
    assert not model.should_use_distributed(4096, 4096, 4096)


def test_small_products_stay_on_one_rank(capsys):
    model = CostModel(cluster())
    assert not model.should_use_distributed(64, 64, 64)
    assert model.should_use_distributed(16384, 16384, 16384)
    model.print_analysis(64, 64, 64)
    text = capsys.readouterr().out
    assert "one rank is faster" in text
    for name in ("root", "row", "column", "block_2d", "floor"):
        assert name in text
    model.clear_cache()
    assert model.estimate_matmul_cost(64, 64, 64, SplitStrategy.BLOCK_2D).feasible


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: CostModel({}), "a ClusterConfig"),
        (lambda: CostModel(cluster()).find_optimal_strategy(-1, 2, 3), "M is -1"),
        (lambda: CostModel(cluster()).find_optimal_strategy(1, 2.5, 3), "K: needed is an integer"),
        (lambda: CostModel(cluster()).estimate_matmul_cost(1, 2, 3, "row", 3), "dtype_bytes is 3"),
        (lambda: CostModel(cluster()).estimate_matmul_cost(1, 2, 3, "diagonal"), "diagonal"),
    ],
)
def test_costs_of_nothing(call, text):
    with pytest.raises(cuop.errors.Error, match=re.escape(text)):
        call()


def test_a_cost_model_chooses_for_a_product():
    a, b = noise(1, 20, 10), noise(2, 10, 30)
    model = CostModel(ClusterConfig.from_auto_detect(3))
    c = from_root(3, distributed_matmul, a, b, cost_model=model)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


# Pipelines.


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("overlap", [True, False])
def test_pipelined_products(ranks, overlap):
    a, b = noise(1, 37, 11, dtype="f8"), noise(2, 11, 13, dtype="f8")

    def work(mpi, _):
        pipeline = PipelineOptimizer(mpi, PipelineConfig(3, overlap, 2))
        mine = (a, b) if mpi.is_master_process() else (None, None)
        results = [pipeline.pipelined_matmul(*mine, num_chunks=n) for n in (None, 0, 1, 5, 99)]
        return [*results, pipeline.baseline_matmul(*mine)]

    first, *others = on_ranks(ranks, work)
    for result in first:
        np.testing.assert_allclose(result, a @ b, rtol=1e-12, atol=1e-12)
    assert all(result is None for results in others for result in results)


@pytest.mark.parametrize("ranks", RANKS)
def test_pipelined_sums_have_the_bits_of_others(ranks):
    def work(mpi, _):
        mine = noise(mpi.get_rank(), 40, 25)
        pipeline = PipelineOptimizer(mpi)
        plain = mpi.allreduce_tensor(mine)
        for chunks in (None, 1, 3):
            np.testing.assert_array_equal(pipeline.pipelined_allreduce(mine, chunks), plain)

    on_ranks(ranks, work)


def test_ranks_without_an_array_add_nothing_to_a_sum():
    whole = noise(1, 64, 128)

    def work(mpi, _):
        pipeline = PipelineOptimizer(mpi)
        mine = whole if mpi.get_rank() in (1, 2) else None
        with pytest.raises(MPIError, match="no rank gave an array"):
            pipeline.pipelined_allreduce(None)
        return pipeline.pipelined_allreduce(mine, num_chunks=4)

    for result in on_ranks(4, work):
        np.testing.assert_array_equal(result, 2 * whole)


def test_statistics_of_a_pipeline(capsys):
    pipeline = PipelineOptimizer(MPIManager())
    pipeline.pipelined_matmul(noise(1, 4, 4), noise(2, 4, 4))
    pipeline.print_stats()
    assert "pipelined_matmul: 1 calls" in capsys.readouterr().out
    pipeline.reset_stats()
    pipeline.print_stats()
    assert capsys.readouterr().out == ""


def test_what_overlap_gains():
    pipeline = PipelineOptimizer(MPIManager())
    benefit = pipeline.estimate_overlap_benefit(
        compute_time_ms=10.0, comm_time_ms=5.0, num_chunks=4
    )
    assert benefit["sequential_time_ms"] == 15.0
    assert benefit["pipelined_time_ms"] == 11.25
    assert benefit["speedup"] == pytest.approx(15 / 11.25)
    assert benefit["time_saved_ms"] == 3.75
    assert pipeline.compute_optimal_chunk_count(0, 1.0, 10.0) == 1
    # 100 MB at 10 GB/s are 10 ms, as long as the arithmetic: sqrt(10 / 0.1) = 10 chunks.
    assert pipeline.compute_optimal_chunk_count(10**8, 1.0, 10.0, latency_ms=0.1) == 10
    assert pipeline.compute_optimal_chunk_count(10**8, 1.0, 10.0, latency_ms=0) == 64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: PipelineConfig(num_chunks=-1), "num_chunks is -1"),
        (lambda p: PipelineConfig(prefetch_count=0), "prefetch_count is 0"),
        (lambda p: PipelineOptimizer(p.mpi, 4), "a PipelineConfig or None"),
        (lambda p: PipelineOptimizer(None), "an MPIManager"),
        (lambda p: p.pipelined_matmul(np.ones((2, 2)), np.ones((2, 2)), -1), "num_chunks is -1"),
        (lambda p: p.pipelined_allreduce(np.ones(3), 0), "num_chunks is 0"),
        (lambda p: p.estimate_overlap_benefit(1.0, -1.0, 4), "comm_time_ms is -1.0"),
        (lambda p: p.compute_optimal_chunk_count(10, 1.0, 0.0), "bandwidth_gbps is 0"),
        (lambda p: p.compute_optimal_chunk_count(10**400, 1.0, 1.0), "bytes is a number of 1329"),
    ],
)
def test_pipelines_of_nothing(call, text):
    pipeline = PipelineOptimizer(MPIManager())
    with pytest.raises(cuop.errors.Error, match=re.escape(text)):
        call(pipeline)


# Devices and times.


def test_the_host_as_a_device(capsys):
    host = GPUManager(-1)
    info = host.get_memory_info()
    assert 0 < info["free_gb"] <= info["total_gb"]
    assert info["used_gb"] == pytest.approx(info["total_gb"] - info["free_gb"])
    assert str(host.get_device()) == "cpu"
    host.print_info()
    host.print_memory_info()
    text = capsys.readouterr().out
    assert text.count("host: ") == 2
    assert host.estimate_memory_requirement((1024, 1024), (512, 1024), dtype="float64") == 12 / 1024
    assert host.can_fit((10, 10))
    assert not host.can_fit((2**40,))
    assert not host.can_fit((int(info["total_gb"] * 2**28),), safety_margin=0.5)
    x = np.ones(3)
    assert host.to_device(x) is x
    assert host.empty_cache() >= 0
    host.synchronize()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: GPUManager(999), "gpu_id 999 is out of range"),
        (lambda: GPUManager(-2), "gpu_id is -2"),
        (lambda: GPUManager("cuda:0"), "gpu_id: needed is an integer"),
        (lambda: GPUManager(-1).can_fit((3,), safety_margin=1), "safety_margin is 1"),
        (lambda: GPUManager(-1).can_fit((-3,)), "size is -3"),
        (
            lambda: GPUManager(-1).can_fit((3,), safety_margin="x"),
            "safety_margin: needed is a number",
        ),
        (
            lambda: GPUManager(-1).can_fit((2**40,) * 30),
            "the number of elements is a number of 1201",
        ),
    ],
)
def test_devices_that_are_not_there(call, text):
    with pytest.raises(cuop.errors.Error, match=re.escape(text)):
        call()


def test_a_profiler_tells_sections_apart(capsys):
    profiler = Profiler()
    for _ in range(2):
        profiler.start("outer")
        profiler.start("inner")
        assert profiler.end("inner") >= 0
        assert profiler.end("outer") >= 0
    assert profiler.get_total("outer") >= profiler.get_total("inner") >= 0
    assert profiler.get_average("outer") == pytest.approx(profiler.get_total("outer") / 2)
    assert profiler.get_average("never") == profiler.get_total("never") == 0.0
    profiler.record_memory("end")
    profiler.print_summary()
    text = capsys.readouterr().out
    assert re.search(r"outer +2 ", text)
    assert "memory end: " in text
    with pytest.raises(cuop.ExecutionError, match="'never' was not started"):
        profiler.end("never")
    profiler.start("again")
    with pytest.raises(cuop.ExecutionError, match="'again' runs already"):
        profiler.start("again")
    for call in (profiler.start, profiler.end, profiler.get_total, profiler.record_memory):
        with pytest.raises(cuop.DTypeError, match=f"{call.__name__}: .*needed is a text"):
            call([1])
    profiler.reset()
    assert profiler.get_total("outer") == 0.0


def test_a_profiler_that_is_not_enabled(capsys):
    profiler = Profiler(enabled=False)
    profiler.start("x")
    assert profiler.end("x") is None
    profiler.end("never started")
    profiler.print_summary()
    assert capsys.readouterr().out == ""
