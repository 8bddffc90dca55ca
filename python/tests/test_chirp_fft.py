"""One line of prime length that is larger than the limit, beside SciPy's in longer numbers."""

import numpy as np
import pytest
from exact_fft import KINDS, exact, given

from cuop import dist
from distributed_gpu import MPIManager
from distributed_gpu.auto_executor import AutoExecutor

GIB = 2**30
#: Prime, twice a prime and with a factor that is too large.
LENGTHS = [1009, 2 * 1009, 6 * 997, 60013, 2 * 30011, 1_000_003]


def error_of(made, wide):
    return float(np.linalg.norm(np.asarray(made) - wide) / np.linalg.norm(wide))


def transformed(kind, x, n, limit, ranks=1):
    def work(comm):
        auto = AutoExecutor(MPIManager(comm), verbose=False, max_per_gpu_gb=limit / GIB)
        made = getattr(auto, kind)(x if auto.is_master else None, n=n)
        return made, auto.last_report

    return dist.run_ranks(work, ranks)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_below_eps_log2_n(kind, dtype):
    """The bound that docs/distributed.md gives, of the 2-norm."""
    for n in LENGTHS:
        x = given(kind, n, dtype)
        limit = 1500 * (n / 1009) ** 0.5 * np.dtype(dtype).itemsize
        made, report = transformed(kind, x, n, limit)
        assert report.passes == 4 and report.peak <= limit < x.nbytes + made.nbytes
        wide = exact(kind, x, n)
        assert made.shape == wide.shape and made.dtype == np.result_type(
            dtype, "f4" if kind == "irfft" else "c8"
        )
        assert error_of(made, wide) < np.finfo(dtype).eps * np.log2(n), n


def test_the_largest_element_is_as_good_as_the_norm():
    """An impulse at the end, whose spectrum has one size everywhere."""
    n = 60013
    x = np.zeros(n, "c16")
    x[-1] = 1
    made, _ = transformed("fft", x, n, 100_000)
    expected = np.exp(2j * np.pi * (np.arange(n) / np.longdouble(n)))
    assert np.max(np.abs(np.asarray(made) - expected)) < 50 * np.finfo("f8").eps


@pytest.mark.parametrize("ranks", [3, 4])
def test_there_and_back_over_ranks(ranks):
    x = given("fft", 10_007, "float64")
    spectrum, report = transformed("fft", x, None, 40_000, ranks)
    assert report.passes == 4
    back, report = transformed("ifft", np.asarray(spectrum), None, 40_000, ranks)
    assert report.passes == 4
    np.testing.assert_allclose(back, x, atol=1e-13)
    half, _ = transformed("rfft", x.real.copy(), None, 40_000, ranks)
    back, report = transformed("irfft", np.asarray(half), 10_007, 40_000, ranks)
    assert report.passes == 4
    np.testing.assert_allclose(back, x.real, atol=1e-13)
