"""cuOP: tensors, operators and distributed algorithms from a laptop's CPU to a cluster of GPUs."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from cuop import _core, dist, errors, jit, safetensors  # noqa: F401
from cuop._core import *  # noqa: F403
from cuop.device import *  # noqa: F403
from cuop.errors import *  # noqa: F403
from cuop.fusion import *  # noqa: F403
from cuop.measure import *  # noqa: F403
from cuop.memory import *  # noqa: F403
from cuop.npy import load as load
from cuop.npy import save as save
from cuop.sparse import *  # noqa: F403
from cuop.system import *  # noqa: F403
from cuop.tensors import *  # noqa: F403

bool = _core.bool_
#: In an index a new axis of size 1.
newaxis = None

__version__ = "0.1.0"
__all__ = [name for name in dir() if not name.startswith("_")]
