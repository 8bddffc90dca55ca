"""Uses the installed package; tools/check_wheel.sh runs it in a fresh environment."""

import ctypes
import importlib.metadata
import sys
from pathlib import Path

import numpy as np

import cuop

package = Path(cuop.__file__).parent
assert sys.prefix in str(package), f"cuop comes from {package}, not from {sys.prefix}"
assert importlib.metadata.version("cuop") == cuop.__version__
for name in ("py.typed", "_core/__init__.pyi", "libcuop.so"):
    assert (package / name).is_file(), f"the wheel lacks cuop/{name}"

x = cuop.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
np.testing.assert_array_equal(np.asarray(x.clone()), np.arange(6).reshape(2, 3))

# The MPI module is part of the wheel where MPI was there to build it against.
mpi = package / "libcuop_mpi.so"
if mpi.is_file():
    ctypes.CDLL(str(mpi))
entry_points = importlib.metadata.entry_points(group="console_scripts", name="cuop")
assert [point.value for point in entry_points] == ["cuop.cli.main:main"]
print(f"cuop {cuop.__version__} works from {package.name}; MPI module: {mpi.is_file()}")
