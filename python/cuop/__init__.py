"""cuOP: tensors, operators and distributed algorithms from a laptop's CPU to a cluster of GPUs."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

try:
    from cuop import _core
except ImportError as error:  # so the extension passes on what ends its start, as Ctrl-C does
    if error.__cause__ is None or isinstance(error.__cause__, Exception):
        raise
    raise error.__cause__ from None

from cuop import dist, errors, jit, safetensors  # noqa: F401
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
