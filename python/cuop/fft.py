"""Discrete Fourier transforms, with the names of the Array API and NumPy's arguments."""

from cuop._core.fft import *  # noqa: F403
