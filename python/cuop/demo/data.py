"""Real input that packages ship: nothing is downloaded."""

import numpy as np


def photograph() -> np.ndarray:
    """A grey photograph from scikit-image, 512 by 512, float64 from 0 to 1."""
    from skimage import data

    return data.camera().astype(np.float64) / 255.0


def digits() -> np.ndarray:
    """The handwritten digits of scikit-learn: 1797 rows of 8 x 8 pixels, float64 from 0 to 1."""
    from sklearn.datasets import load_digits

    return load_digits().data / 16.0


def hard_series(count: int = 1_000_000) -> np.ndarray:
    """A series whose terms cancel: its sum is near 1 while its terms reach 1e16.

    Every large term meets its negative somewhere in a fixed random order.
    """
    random = np.random.default_rng(20)
    half = random.normal(size=count // 2) * 10.0 ** random.uniform(-8, 16, size=count // 2)
    series = np.concatenate([half, -half, [1.0]])
    random.shuffle(series)
    return series
