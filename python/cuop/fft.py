"""Discrete Fourier transforms, with the names of the Array API and NumPy's arguments."""

from cuop import _core

_functions = {name: value for name, value in vars(_core.fft).items() if not name.startswith("_")}
globals().update(_functions)
__all__ = sorted(_functions)
