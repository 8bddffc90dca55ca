"""The engine of cuOP under the names documented for Genesis.

    >>> import genesis
    >>> x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.matmul(x, x).tolist()
    [[7.0, 10.0], [15.0, 22.0]]

Tensors are `cuop.Tensor`s and every function is cuOP's. Two things differ in what makes tensors
(`tensor`, `asarray`, `zeros`, `random`, ...): they are made on the CPU unless a device is given, and
Python numbers, whole ones too, become float32. A call computes where its tensors lie; one of lists
alone, as `add([1.0], [2.0])`, computes where cuOP's does, on the default device of `CUOP_DEVICE`.
"""

from cuop import *  # noqa: F403
from cuop import Tensor, __version__, errors  # noqa: F401
from genesis import cuda
from genesis.creation import *  # noqa: F403
from genesis.cuda import CUDAMemoryPool, CUDAStorage, enable_lazy_init  # noqa: F401
from genesis.kernels import warm_up_kernels  # noqa: F401

__all__ = [
    name for name in dir() if not name.startswith("_") and name not in ("creation", "kernels")
]
