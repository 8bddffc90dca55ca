"""Exceptions of cuOP. Each message says who, what was wrong, what was given and what is allowed."""

import builtins

__all__ = [
    "CommunicationError",
    "CompilationError",
    "DTypeError",
    "DeviceError",
    "Error",
    "ExecutionError",
    "FileError",
    "GatherError",
    "IndexError",
    "MemoryError",
    "NoEffectWarning",
    "NotImplementedError",
    "OverflowError",
    "ShapeError",
]


class Error(Exception):
    """Base of every error that cuOP raises on purpose."""


class MemoryError(Error, builtins.MemoryError):
    """An allocation that cannot be served. All figures are bytes at the moment of failure."""

    requested = 0
    live = 0
    reserved = 0
    largest_hole = 0


class ExecutionError(Error, RuntimeError):
    """An operator that cannot run as asked."""


class NotImplementedError(ExecutionError, builtins.NotImplementedError):
    """No kernel exists for the given device and dtype."""


class GatherError(ExecutionError):
    """A call that would bring a tensor's parts together inside `cuop.dist.strict()`."""


class CompilationError(Error):
    """A kernel that cannot be compiled, or a JIT configuration that cannot be met."""


class NoEffectWarning(UserWarning):
    """A field of a configuration that means nothing to the device, as GPU settings on the CPU."""


class ShapeError(Error, ValueError):
    """Shapes, axes or sizes that do not fit together."""


class DTypeError(Error, TypeError):
    """A dtype that the operator does not support."""


class OverflowError(DTypeError, builtins.OverflowError):
    """A number that the dtype it is meant for cannot hold."""


class DeviceError(Error, RuntimeError):
    """A device that is absent, or tensors on different devices."""


class IndexError(Error, builtins.IndexError):
    """An index outside its axis."""


class FileError(Error, OSError):
    """A file that cannot be read or written."""


class CommunicationError(Error, RuntimeError):
    """A failure between ranks.

    Attributes:
        rank: the one that failed, -1 when unknown.
        operation: the call of the communicator in which it was raised, as "all_reduce"; "" when it
            was raised in none.
        sequence: the number of that collective call, the same on all ranks, counted from 1 since
            the communicator was made or has recovered; of a message, of the collective call before
            it; -1 when unknown.
    """

    rank = -1
    operation = ""
    sequence = -1
