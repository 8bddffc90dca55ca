"""Arrays that may be larger than memory: operations in tiles, on all ranks and their devices.

    result, report = executor.run(comm, executor.matmul(), [a, b], memory_limit=2 << 30)

Arrays lie on rank 0's host: NumPy's (np.memmap too), tensors of the host, of PyTorch and others. The
others pass None. Every rank makes the same call, tiles are made on the ranks' GPUs, or on the host where
a rank has none, and the result is on rank 0's host. Each tile's inputs come while the tile before is
computed; where memory turns out short, tiles are halved and the work goes on.

`distributed_gpu.auto_executor` is the documented face of it.
"""

from cuop._core import _executor
from cuop._core._executor import *  # noqa: F403

__all__ = [name for name in dir(_executor) if not name.startswith("_")]
