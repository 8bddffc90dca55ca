"""cuop.dist: shardings, distributed tensors and plans from Python."""

import json
import re

import numpy as np
import pytest

import cuop
from cuop import dist

RANKS = [1, 2, 3, 4, 7]


def rows_of(comm):
    return dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None))


@pytest.mark.parametrize("ranks", RANKS)
def test_expressions_stay_in_parts(ranks):
    a, b = np.random.default_rng(0).standard_normal((2, 9, 5))

    def work(comm):
        root = comm.rank == 0
        x = dist.DistTensor.from_root(comm, a if root else None).redistribute(rows_of(comm))
        y = dist.DistTensor.from_root(comm, b if root else None).redistribute(rows_of(comm))
        assert x.shape == (9, 5) and x.dtype == "float64" and x.ndim == 2
        assert x.local.shape == tuple(high - low for low, high in x.box)
        np.testing.assert_array_equal((x + y - x * y).gather_all(), a + b - a * b)
        assert (x + y).sharding == x.sharding
        assert dist.last_report().plan.bytes == 0
        product = x @ y.T
        np.testing.assert_allclose(product.gather_all(), a @ b.T, atol=1e-14)
        total = dist.sum(product, mode="exact")
        np.testing.assert_allclose(total.gather_all(), (a @ b.T).sum())
        np.testing.assert_allclose(dist.mean(x, 1).gather_all(), a.mean(1))
        spectrum = dist.fft2d_pencil(x)
        assert spectrum.sharding.spec == dist.P(None, "r")
        back = dist.ifft2d_pencil(spectrum, output=x.sharding)
        np.testing.assert_allclose(back.gather_all(), a, atol=1e-14)
        return x.gather()

    results = dist.run_ranks(work, ranks)
    np.testing.assert_array_equal(results[0], a)
    assert all(result is None for result in results[1:])


def test_parts_convolve_sweep_and_solve():
    rng = np.random.default_rng(0)
    image, grid = rng.standard_normal((1, 1, 12, 6)), rng.standard_normal((12, 6))
    kernel = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])

    def work(comm):
        mesh = dist.Mesh.line(comm.size)
        everywhere = dist.Sharding.replicated(mesh)

        def place(array, sharding):
            mine = array if comm.rank == 0 else None
            return dist.DistTensor.from_root(comm, mine).redistribute(sharding)

        x = place(image, dist.Sharding(mesh, dist.P(None, None, "r")))
        w = place(kernel[None, None], everywhere)
        by_conv = dist.conv(x, w, padding=1, strategy="row").gather_all()
        u = place(grid, rows_of(comm))
        rhs = dist.stencil_2d(u, place(kernel, everywhere))
        solved, info = dist.poisson_2d(u, rhs)
        assert info.residual_norm < 1e-10
        swept, info = dist.jacobi_2d(u, rhs, iterations=3, tol=0.0)
        assert info.sweeps == 3 and swept.sharding == u.sharding
        return by_conv, rhs.gather_all(), solved.gather_all()

    for by_conv, by_stencil, solved in dist.run_ranks(work, 3):
        expected = cuop.conv2d(image, kernel[None, None], padding=1)
        np.testing.assert_allclose(by_conv, expected, atol=1e-13)
        np.testing.assert_allclose(by_stencil, cuop.stencil2d(grid, kernel), atol=1e-13)
        np.testing.assert_allclose(solved, grid, atol=1e-12)


def test_parts_of_different_size_and_conversion():
    def work(comm):
        local = np.full((comm.rank, 2), comm.rank, np.float32)
        x = dist.DistTensor.from_parts(comm, local)
        wide = x.astype("float64")
        assert wide.dtype == "float64" and x.sharding == wide.sharding
        return wide.gather_all()

    for result in dist.run_ranks(work, 4):
        np.testing.assert_array_equal(result, np.repeat([1.0, 2, 2, 3, 3, 3], 2).reshape(6, 2))


def test_sizes_are_not_negative():
    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        with pytest.raises(cuop.ShapeError, match="sizes must not be negative"):
            dist.DistTensor(comm, rows, (-4, 9), "float64", cuop.ones((0, 9)))
        with pytest.raises(cuop.ShapeError, match="owner_box: sizes must not be negative"):
            rows.owner_box((-4, 9), 0)

    dist.run_ranks(work, 2)


def test_shardings_say_who_holds_what():
    mesh = dist.Mesh((2, 3), ("r", "c"))
    assert mesh.size == 6 and mesh.shape == (2, 3) and mesh.coordinates(4) == (1, 1)
    blocks = dist.Sharding(mesh, dist.P("r", "c"))
    assert blocks.owner_box((5, 7), 5) == [(3, 5), (5, 7)]
    assert repr(blocks) == 'P("r", "c") on Mesh(r=2, c=3)'
    with_idle = dist.Mesh((2, 3), ("r", "c"), idle=1)
    assert (with_idle.size, with_idle.idle) == (7, 1)
    assert repr(with_idle) == "Mesh(r=2, c=3, 1 idle)"
    assert dist.Sharding(with_idle, dist.P("r")).owner_box((5, 7), 6) == [(0, 0), (0, 0)]
    with pytest.raises(cuop.errors.IndexError, match="rank 6 has no coordinates"):
        with_idle.coordinates(6)
    joined = dist.Sharding(mesh, dist.P(("r", "c")))
    assert joined.owner_box((6,), 3) == [(3, 4)]
    uneven = dist.Sharding(dist.Mesh.line(2), dist.P("r")).with_blocks(0, [4, 1])
    assert uneven.owner_box((5,), 1) == [(4, 5)]
    assert dist.Sharding.replicated(mesh).is_replicated
    assert dist.Sharding.on_rank(mesh, 2).single_rank == 2
    for wrong in [
        lambda: dist.Sharding(mesh, dist.P("r", "r")),
        lambda: dist.P(3),
        lambda: dist.Mesh((2, 0), ("a", "b")),
        lambda: dist.Mesh((2,), ("a",), idle=-1),
        lambda: uneven.owner_box((6,), 0),
    ]:
        with pytest.raises(cuop.errors.ShapeError):
            wrong()


def test_plans_of_a_pretended_machine():
    rows = dist.Sharding(dist.Mesh.line(64), dist.P("r"))
    machine = dist.Machine()
    machine.flops, machine.link_bandwidth = 5e13, 2e11
    plan = dist.plan_matmul(1 << 20, 64, 64, rows, rows, machine=machine)
    assert plan.ranks == 64 and plan.strategy == "row"
    assert plan.bytes == 64 * 64 * 4 * 63
    assert sum(step.bytes for step in plan.steps) == plan.bytes
    assert min(c.seconds for c in plan.candidates) == plan.seconds
    assert json.loads(plan.to_json())["strategy"] == "row"
    assert "considered" in plan.explain()
    machine.memory = 1000
    with pytest.raises(cuop.errors.MemoryError, match="no plan fits"):
        dist.plan_matmul(1 << 20, 64, 64, rows, rows, machine=machine)
    with pytest.raises(cuop.errors.ExecutionError, match="block_2d"):
        dist.plan_matmul(8, 8, 8, rows, rows, strategy="spiral")


def test_plans_of_moves_and_their_floors():
    line = dist.Mesh.line(4)
    rows, columns = dist.Sharding(line, dist.P("r", None)), dist.Sharding(line, dist.P(None, "r"))
    plan = dist.plan_redistribute((1000, 2000), rows, columns)
    assert plan.bytes == 6_000_000 and plan.floor_link_bytes == 1_500_000
    assert plan.floor_flops == plan.floor_memory_bytes == 0
    assert 1_500_000 / 4e9 < plan.floor <= plan.seconds
    wire = dist.Wire.narrow("float16")
    machine = dist.Machine()
    machine.link_bandwidth = 1e6
    narrow = dist.plan_redistribute((1000, 2000), rows, columns, "float64", machine, wire)
    assert narrow.bytes == 3_000_000 and 0.75 < narrow.floor <= narrow.seconds
    with pytest.raises(cuop.errors.DTypeError, match="int32 cannot travel as float16"):
        dist.plan_redistribute((4, 4), rows, columns, dtype="int32", wire=wire)


def test_memory_limits_and_reports():
    a = np.random.default_rng(0).standard_normal((64, 64))

    def work(comm):
        x = dist.DistTensor.from_root(comm, a if comm.rank == 0 else None)
        x = x.redistribute(rows_of(comm))
        dist.matmul(x, x, strategy="row")
        need = dist.last_report().plan.memory_per_rank
        product = dist.matmul(x, x, strategy="row", memory_limit=need - 16384)
        report = dist.last_report()
        assert report.plan.settings["panels"] > 1
        assert report.plan.memory_per_rank <= need - 16384
        assert report.seconds > 0 and report.bytes_sent > 0
        return product.gather_all()

    for product in dist.run_ranks(work, 3):
        np.testing.assert_allclose(product, a @ a, atol=1e-12)


def test_failures_reach_every_rank():
    def work(comm):
        x = dist.DistTensor.from_root(comm, np.ones((4, 3)) if comm.rank == 0 else None)
        with pytest.raises((cuop.errors.ShapeError, cuop.errors.CommunicationError)):
            x @ x
        with pytest.raises((cuop.errors.DTypeError, cuop.errors.CommunicationError)):
            dist.DistTensor.from_root(comm, object() if comm.rank == 0 else None)
        other = comm.split(0, -comm.rank)
        y = dist.DistTensor.from_root(other, np.ones((4, 3)) if other.rank == 0 else None)
        with pytest.raises(cuop.errors.ExecutionError, match="another communicator"):
            x + y
        return (x + x).gather_all().tolist()

    assert dist.run_ranks(work, 2) == [np.full((4, 3), 2.0).tolist()] * 2


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_transforms_along_several_dimensions(ranks):
    x = np.random.default_rng(0).standard_normal((6, 5, 8))

    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        shared = dist.DistTensor.from_root(comm, x if comm.rank == 0 else None).redistribute(rows)
        half = dist.rfftn(shared)
        back = dist.irfftn(half, s=x.shape)
        cut = dist.fftn(shared, s=(4, -1), dim=(0, 2), norm="ortho")
        rooted = dist.ifftn_from_root(comm, x if comm.rank == 0 else None, strategy="slab")
        return half.gather_all(), back.gather_all(), cut.gather_all(), rooted

    for rank, (half, back, cut, rooted) in enumerate(dist.run_ranks(work, ranks)):
        np.testing.assert_allclose(half, np.fft.rfftn(x), atol=1e-12)
        np.testing.assert_allclose(back, x, atol=1e-12)
        np.testing.assert_allclose(cut, np.fft.fftn(x, (4, 8), (0, 2), "ortho"), atol=1e-12)
        assert (rooted is None) == (rank > 0)
        if rank == 0:
            np.testing.assert_allclose(rooted, np.fft.ifftn(x), atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_lengths_and_the_real_axis_go_with_the_order_of_axes(ranks, norm):
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    calls = [
        (name, s, axes)
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
        for s, axes in (
            ((7, 2), (2, 0)),
            (None, (2, 1)),
            ((2, 5, 8), (-1, 0, 1)),
            ((-1, 6), (1, 0)),
            (None, (1, 2, 0)),
        )
    ]

    def work(comm):
        mine = x if comm.rank == 0 else None
        shared = dist.DistTensor.from_root(comm, mine)
        rows = shared.redistribute(dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        made = [
            (
                getattr(dist, name)(rows, s, axes, norm).gather(),
                getattr(dist, f"{name}_from_root")(comm, mine, s, axes, norm),
            )
            for name, s, axes in calls
        ]
        pair = dist.fft2d_from_root(comm, mine, (7, 2), (2, 0), norm)
        made.append((pair, pair))
        with pytest.raises(cuop.errors.Error, match=r"an axis is given twice in \(0, -3\)"):
            dist.fftn(rows, None, (0, -3))
        return made

    wanted = [*calls, ("fftn", (7, 2), (2, 0))]
    for (name, s, axes), both in zip(wanted, dist.run_ranks(work, ranks)[0], strict=True):
        if s is not None:
            s = [x.shape[axis] if n == -1 else n for n, axis in zip(s, axes, strict=True)]
        expected = getattr(np.fft, name)(x, s, axes, norm)
        for given in both:
            assert given.shape == expected.shape
            np.testing.assert_allclose(given, expected, atol=1e-12)


@pytest.mark.usefixtures("own_cache")
def test_ranks_find_out_what_they_are():
    def work(comm):
        machine = dist.calibrate(comm, again=True)
        return machine.flops, machine.link_bandwidth, repr(dist.calibrate(comm)), repr(machine)

    found = dist.run_ranks(work, 2)
    assert found[0] == found[1]
    flops, link, kept, measured = found[0]
    assert flops > 0 and link > 0 and kept == measured
    assert re.fullmatch(r"Machine\(.* GFLOP/s, memory .* GB/s, link .* GB/s, latency .* us\)", kept)


def test_products_of_batches_stay_where_the_batch_lies():
    a, b = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(5, 3, 4), (4, 2)]))

    def work(comm):
        batch = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x, y = (dist.DistTensor.from_root(comm, t if comm.rank == 0 else None) for t in (a, b))
        product = x.redistribute(batch) @ y
        forced = dist.batch_matmul(x, y, strategy="row", output=batch)
        return repr(product.sharding), product.gather_all(), forced.gather_all()

    for sharding, product, forced in dist.run_ranks(work, 3):
        assert sharding == 'P("r") on Mesh(r=3)'
        np.testing.assert_allclose(product, a @ b, atol=1e-13)
        np.testing.assert_allclose(forced, a @ b, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_short_lines_have_infinities_where_one_tensor_has_them(n, ranks):
    """A chirp would make NaN of all; of a line this short ranks have no use for it."""
    for kind, line in (("irfft", [np.inf, 1.0]), ("irfft", [np.inf]), ("fft", [np.inf])):
        expected = getattr(cuop.fft, kind)(cuop.tensor(line), n).numpy()

        def work(comm, kind=kind, line=line):
            rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
            given = np.array(line) if comm.rank == 0 else None
            x = dist.DistTensor.from_root(comm, given).redistribute(rows)
            return getattr(x, kind)(n).gather_all().numpy(), dist.last_report().plan.strategy

        for made, strategy in dist.run_ranks(work, ranks):
            assert strategy != "chirp"
            np.testing.assert_array_equal(made, expected)
