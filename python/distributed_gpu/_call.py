"""The frame of every distributed call: errors as MPIError, results as the kind of the first input."""

import contextlib
import functools

import cuop
from cuop import dist
from cuop._arguments import refused
from distributed_gpu._arrays import kind_of, root_tensor, to_kind

_Tensor = cuop.Tensor


class MPIError(cuop.errors.Error, RuntimeError):
    """A failure of a distributed call, raised on every rank.

    Attributes:
        rank: the rank that failed, counted among all that were started together; -1 when it is
            not known.
        operation: the call between ranks in which it was raised, as "all_reduce"; "" when it was
            raised in none.
        sequence: the number of that collective call, the same on all ranks; -1 when not known.
        original: the exception of that rank on that rank itself, what reached this rank elsewhere.
    """

    def __init__(self, message, rank=-1, original=None):
        super().__init__(message)
        self.rank = rank
        self.operation = getattr(original, "operation", "")
        self.sequence = getattr(original, "sequence", -1)
        self.original = original


def is_manager(mpi):
    """Whether `mpi` is an MPIManager or has what makes one."""
    return hasattr(mpi, "comm") and hasattr(mpi, "get_rank")


def check_manager(mpi, who):
    """Raises DTypeError unless `mpi` is an MPIManager or has what makes one."""
    if not is_manager(mpi):
        raise refused(mpi, who, "mpi", "an MPIManager")


@contextlib.contextmanager
def mpi_errors(comm):
    """Turns errors of cuop into MPIError; those that are no CommunicationError name this rank."""
    try:
        yield
    except MPIError:
        raise
    except cuop.errors.Error as error:
        raise _as_mpi_error(error, comm) from error


def _as_mpi_error(error, comm, before=""):
    is_shared = isinstance(error, cuop.errors.CommunicationError)
    failed = error.rank if is_shared else comm.in_world(comm.rank)
    return MPIError(before + text_of(error), failed, error)


def text_of(error):
    """What is said of an error: cuop's say all themselves."""
    if isinstance(error, cuop.errors.Error):
        return str(error)
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of an exception that cannot be printed; the one that is told of counts
        return f"{type(error).__name__}, whose str() raises"


def from_root(function, mpi, arrays, *args, **kwargs):
    """Calls function(comm, *arrays, *args, **kwargs) of cuop.dist's rank-0 forms.

    `arrays` has the arrays by the names of the caller's arguments. Returns the result as the kind of
    the first array on rank 0, None elsewhere.
    """
    # Written out: generators, context managers and the function's name take as long as all else here.
    if not is_manager(mpi):
        check_manager(mpi, _who(function.__name__))
    comm = mpi.comm
    inputs = list(arrays.values())
    first = inputs[0] if inputs else None  # of a rank that gives none
    for each in inputs:
        if type(each) is not _Tensor:
            inputs = _root_tensors(function, mpi, arrays)
            break
    try:
        result = function(comm, *inputs, *args, **kwargs)
    except cuop.errors.Error as error:
        raise _as_mpi_error(error, comm) from error
    if result is None or type(first) is _Tensor:
        return result
    return to_kind(result, kind_of(first))


@functools.cache
def _who(call):
    """What users call a form of cuop.dist."""
    return f"distributed_{call.removesuffix('_from_root')}"


def _root_tensors(function, mpi, arrays):
    """The arrays as tensors, None where this rank has none; all ranks hear of an error."""
    who = _who(function.__name__)
    with told(mpi, function.__name__):
        inputs = [
            None if array is None else root_tensor(array, who, name)
            for name, array in arrays.items()
        ]
        if any(each is None for each in inputs) and mpi.get_rank() == 0:
            missing = [name for name, array in arrays.items() if array is None and name != "bias"]
            if missing:
                raise refused(None, who, missing[0], "an array on rank 0")
    return inputs


class told:
    """Tells all ranks of an exception that this one meets before it can make its collective call, and
    raises it as MPIError here; `before` begins what is said of it. A class, as a generator takes as
    long as a short call.
    """

    __slots__ = ("_before", "_call", "_mpi")

    def __init__(self, mpi, call, before=""):
        self._mpi, self._call, self._before = mpi, call, before

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        is_known = isinstance(error, MPIError)  # to the others
        if is_known or not isinstance(error, Exception):
            return False
        with contextlib.suppress(cuop.errors.Error):
            dist.fail_together(self._mpi.comm, self._call, self._before + text_of(error))
        raise _as_mpi_error(error, self._mpi.comm, self._before) from error
