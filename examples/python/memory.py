"""How much memory there is, who holds it, limits, and going on after it was not enough."""

import tempfile
from pathlib import Path

import numpy as np

import cuop
import genesis

device = cuop.current_device()
free, total = cuop.get_memory_info()
print(f"{device}: {free >> 20} of {total >> 20} MiB are free")

before = cuop.memory_allocated()
with cuop.memory_context():
    scratch = cuop.empty((1 << 20,))
    assert cuop.memory_allocated() >= before + scratch.nbytes
    del scratch
assert cuop.memory_allocated() == before

kept = cuop.arange(1000, dtype="float32")
cuop.empty_cache()  # returns idle memory and never touches live tensors
assert kept.to_numpy().sum() == 499500.0

# A limit is a typed error that says who holds what; the program goes on.
cuop.set_memory_limit(256 << 20)
try:
    cuop.zeros((1 << 28,))
    raise AssertionError("1 GiB within a limit of 256 MiB")
except cuop.MemoryError as error:
    assert isinstance(error, MemoryError)
    print("as expected:", str(error).splitlines()[0])
finally:
    cuop.set_memory_limit(None)
assert (kept + 1).to_numpy()[-1] == 1000.0

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "memory.json"
    cuop.memory_snapshot(str(path))
    assert path.stat().st_size > 0

# The same engine under Genesis's names.
print("CUDA:", genesis.cuda.is_available(), genesis.cuda.device_count())
t = genesis.tensor([[1, 2], [3, 4]])
np.testing.assert_array_equal(genesis.matmul(t, t).to_numpy(), [[7, 10], [15, 22]])
try:
    genesis.device("cuda:0")
except cuop.DeviceError as error:
    print("as expected:", error)
print("memory: all checks hold")
