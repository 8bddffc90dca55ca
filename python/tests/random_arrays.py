"""Random arrays of every dtype."""

import numpy as np

import cuop

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def random_array(rng, shape, dtype):
    """Fractions of both signs, integers of the whole range, or booleans.

    Values of bfloat16, which NumPy lacks, come as float32.
    """
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(shape)
    return rounded(values, dtype)


def rounded(values, dtype):
    """What the dtype has for these values."""
    if dtype == "bfloat16":
        return cuop.tensor(values, "bfloat16").to("float32").to_numpy()
    return values.astype(dtype)
