"""One long transform over all ranks, beside SciPy's in longer numbers."""

import numpy as np
import pytest
from default_device import on_the_host
from exact_fft import KINDS, exact, given

from cuop import dist
from distributed_gpu import MPIManager
from distributed_gpu.algorithms import fft as page

#: Lengths of each way.
LENGTHS = {
    "four_step": [4, 60, 1001, 4096, 3**9, 50 * 1009, 1 << 17],
    "chirp": [5, 101, 1009, 2 * 10007, 60013, 131071],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", LENGTHS)
def test_errors_are_a_few_units_in_the_last_place(strategy, kind, dtype):
    lengths = LENGTHS[strategy]

    def work(comm):
        errors = {}
        for n in lengths:
            x = given(kind, n, dtype)
            call = getattr(dist, f"{kind}_from_root")
            made = call(comm, x if comm.rank == 0 else None, n, strategy=strategy)
            if comm.rank == 0:
                wide, made = exact(kind, x, n), np.asarray(made)
                assert made.shape == wide.shape
                errors[n] = float(np.linalg.norm(made - wide) / np.linalg.norm(wide))
        return errors

    for n, error in dist.run_ranks(work, 2)[0].items():
        assert error < 5 * np.finfo(dtype).eps * np.log2(n), n


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("n, strategy", [(3000, "four_step"), (3001, "chirp")])
def test_there_and_back_of_parts(n, strategy, ranks):
    def work(comm):
        x = np.random.default_rng(0).standard_normal(n)
        everywhere = dist.Sharding.replicated(dist.Mesh.line(comm.size))
        line = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        parts = dist.DistTensor.from_root(comm, x if comm.rank == 0 else None).redistribute(line)
        half = dist.rfft(parts, norm="ortho", strategy=strategy)
        assert half.shape == (1501,) and half.sharding.spec == dist.P("r")
        np.testing.assert_allclose(half.gather_all(), np.fft.rfft(x, norm="ortho"), atol=1e-12)
        back = dist.irfft(half, n, norm="ortho", strategy=strategy, output=line)
        np.testing.assert_allclose(back.redistribute(everywhere).local, x, atol=1e-13)

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_fewer_lines_than_ranks(ranks):
    random = np.random.default_rng(ranks)
    cases = []
    for kind in KINDS:
        n, lines, axis = int(random.choice([101, 1009, 2 * 499])), random.integers(1, ranks), -1
        x = np.stack([given(kind, n, "float64") * (line + 1) for line in range(lines)])
        if random.random() < 0.5:
            x, axis = x.T, 0
        cases.append((kind, n, axis, x))

    def work(comm):
        for kind, n, axis, x in cases:
            mine = x if comm.rank == 0 else None
            made = getattr(dist, f"{kind}_from_root")(comm, mine, n, axis, strategy="chirp")
            parts = dist.DistTensor.from_root(comm, mine)
            whole = getattr(dist, kind)(parts, n, axis, strategy="chirp").gather_all()
            wide = np.moveaxis(
                [exact(kind, line, n) for line in np.moveaxis(x, axis, -1)], -1, axis
            )
            for each in [whole] if made is None else [made, whole]:
                assert each.shape == wide.shape
                error = np.linalg.norm(np.asarray(each) - wide) / np.linalg.norm(wide)
                assert error < 5 * np.finfo("f8").eps * np.log2(n)

    dist.run_ranks(work, ranks)


@on_the_host("one GPU is faster alone at these lengths")
def test_the_documented_functions_choose_it():
    # Long enough to be worth two ranks, short enough that plans go by assumed figures.
    arrays = {
        kind: np.random.default_rng(0).standard_normal(n)
        for kind, n in (("fft", 1 << 19), ("ifft", 1 << 19), ("rfft", 1 << 20))
    }

    def work(comm):
        mpi = MPIManager()
        chosen = {}
        for kind, x in arrays.items():
            array = x if comm.rank == 0 else None
            made = getattr(page, f"distributed_{kind}")(array, mpi, None)
            if comm.rank == 0:
                np.testing.assert_allclose(made, getattr(np.fft, kind)(x), atol=1e-9)
                chosen[kind] = dist.last_report().plan.strategy
        return chosen

    assert set(dist.run_ranks(work, 2)[0].values()) == {"four_step"}


def test_a_short_length_without_factors_stays_on_one_rank():
    def work(comm):
        line = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x = np.arange(101.0)
        parts = dist.DistTensor.from_root(comm, x if comm.rank == 0 else None).redistribute(line)
        np.testing.assert_allclose(dist.fft(parts).gather_all(), np.fft.fft(x), atol=1e-10)
        return dist.last_report().plan.explain()

    assert "101 has no factors" in dist.run_ranks(work, 2)[0]
