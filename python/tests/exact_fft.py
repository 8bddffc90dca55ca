"""Input of one-dimensional transforms, and SciPy's transform of it in longer numbers."""

import numpy as np
import scipy.fft

KINDS = ["fft", "ifft", "rfft", "irfft"]


def given(kind, n, dtype):
    """What a transform of `n` elements takes: half a spectrum for irfft."""
    random = np.random.default_rng(n)
    count = n // 2 + 1 if kind == "irfft" else n
    x = random.standard_normal(count)
    if kind != "rfft":
        x = x + 1j * random.standard_normal(count)
    return x.astype(dtype if kind == "rfft" else np.result_type(dtype, np.complex64))


def exact(kind, x, n):
    """SciPy's transform in numbers of 64 bits of precision or more."""
    wide = x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)
    if kind == "irfft":  # whose ends are real
        wide[0] = wide[0].real
        if n % 2 == 0:
            wide[-1] = wide[-1].real
    return getattr(scipy.fft, kind)(wide, n)
