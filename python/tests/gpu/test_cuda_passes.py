"""Calls in passes on all GPUs of the process: a run that was cut off, and one that goes on with it."""

import numpy as np
import pytest

from cuop import dist, executor
from cuop.cli.partial_output import PartialOutput


class CutOff(PartialOutput):
    """Ends when its fourth pass begins."""

    def begin(self, state):
        if state[0] == 3:
            raise InterruptedError
        return super().begin(state)


def test_passes_on_gpus_are_gone_on_with(tmp_path):
    out, comm = tmp_path / "out.npy", dist.world()
    grid, rhs = np.zeros((60, 40)), np.random.default_rng(1).standard_normal((60, 40))

    def solve(**settings):
        u, info, report = executor.jacobi_2d(comm, grid, rhs, 0.5, "zero", 40, 0.4, **settings)
        return np.asarray(u).copy(), info, report

    whole, expected, _ = solve()
    assert 10 < expected.sweeps < 40
    cut = CutOff(out, lambda: {}, True)
    with pytest.raises(InterruptedError):
        solve(memory_limit=20_000, log=cut)
    cut.leave()
    log = PartialOutput(out, lambda: {}, True)
    u, info, report = solve(memory_limit=20_000, log=log)
    np.testing.assert_allclose(u, whole, rtol=1e-9, atol=1e-9)
    assert info.sweeps == expected.sweeps
    assert report.device.type == "cuda"
    log.finish(u)
    assert [file.name for file in tmp_path.iterdir()] == ["out.npy"]


def test_lines_larger_than_a_gpu():
    x = np.random.default_rng(2).standard_normal(6000)
    for kind, oracle in [("fft", np.fft.fft), ("ifft", np.fft.ifft), ("rfft", np.fft.rfft)]:
        check_line(kind, x, oracle(x))
    half = np.fft.rfft(x)
    check_line("irfft", half, x)


def check_line(kind, x, expected):
    made, report = executor.fft_line(dist.world(), x, kind=kind, memory_limit=30_000)
    np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-10, atol=1e-10)
    assert report.passes == 2
    assert report.peak <= 30_000
