"""cuOP: tensors, operators and distributed algorithms from a laptop's CPU to a cluster of GPUs."""

from cuop import dist, errors, jit, safetensors  # noqa: F401
from cuop._core import *  # noqa: F403
from cuop._core import bool_ as bool  # noqa: F401
from cuop.device import *  # noqa: F403
from cuop.errors import *  # noqa: F403
from cuop.fusion import *  # noqa: F403
from cuop.measure import *  # noqa: F403
from cuop.memory import *  # noqa: F403
from cuop.npy import load, save  # noqa: F401
from cuop.sparse import *  # noqa: F403
from cuop.system import *  # noqa: F403
from cuop.tensors import *  # noqa: F403

__version__ = "0.1.0"
__all__ = [name for name in dir() if not name.startswith("_")]
