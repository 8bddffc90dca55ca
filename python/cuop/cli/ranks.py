"""Running one function on all ranks, whoever started them."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from typing import NoReturn

from cuop.errors import Error, ExecutionError

_GOODBYE_SECONDS = 5.0


def is_launched() -> bool:
    """True when mpirun, srun or torchrun has started this process as one of several ranks."""
    from cuop import dist

    return dist.launcher()["size"] > 1


def on_ranks(function: Callable, ranks: int | None):
    """function(comm) on every rank; the result of rank 0, or of this process's rank.

    Under a launcher the ranks are its processes and `ranks` must be absent or equal to their
    number; otherwise they are `ranks` threads of this process.
    """
    from cuop import dist

    if not is_launched():
        return dist.run_ranks(function, ranks or 1)[0]
    comm = dist.world()
    try:
        if ranks not in (None, comm.size):
            raise ExecutionError(
                f"ranks: --ranks {ranks} was given, but {dist.launcher()['launcher']} has started "
                f"{comm.size} ranks; leave the option out"
            )
        return function(comm)
    except Error as error:
        _leave_together(comm, error)


def _leave_together(comm, error: Error) -> NoReturn:
    """Every rank has failed: rank 0 says why, and nobody ends before it has been said.

    A launcher kills the remaining ranks as soon as one ends with an error.
    """
    if comm.rank == 0:
        print(f"cuop: error: {error}", file=sys.stderr, flush=True)
    comm.timeout = _GOODBYE_SECONDS
    with contextlib.suppress(Error):
        comm.barrier() if not comm.failure else comm.recover()
    sys.exit(1)


def exec_under_mpirun(ranks: int, arguments: list[str]) -> None:
    """Replace this process by mpirun with `ranks` ranks of the same command; return if there is none."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        return
    environment = dict(os.environ)
    if os.geteuid() == 0:  # a container's user; Open MPI asks to be told that this is meant
        environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    # Ranks write to a terminal of mpirun's own making; what matters is ours, and its width.
    environment.setdefault("TTY_COMPATIBLE", "1" if sys.stdout.isatty() else "0")
    environment.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    command = [mpirun, "--oversubscribe", "-np", str(ranks), sys.executable, "-m", "cuop.cli.main"]
    sys.stdout.flush()
    os.execvpe(mpirun, command + arguments, environment)
