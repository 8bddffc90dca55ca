"""The files a command reads, mapped on rank 0."""

from pathlib import Path

from cuop.array_files import ArrayFile
from cuop.cli.operations import LAPLACIAN, Options
from cuop.cli.tile_operations import TILE_CALLS
from cuop.errors import DTypeError, Error
from cuop.files import check_writable


def open_inputs(comm, inputs: list[ArrayFile], output: Path, name: str, options: Options) -> list:
    """The mapped files on rank 0, None elsewhere; an error on rank 0 is one on every rank."""
    arrays, problem = [None] * len(inputs), None
    if comm.rank == 0:
        try:
            check_writable(output, "save")
            arrays = [each.open() for each in inputs]
            _check_result(name, options, arrays)
        except Error as error:
            problem = error
    problem = comm.broadcast(problem)
    if problem is not None:
        raise problem
    return arrays


def check_whole(arrays: list, inputs: list[ArrayFile]) -> None:
    """FileError when another program has cut off one of the files since it was opened."""
    for array, file in zip(arrays, inputs, strict=True):
        file.check_whole(array)


def _check_result(name: str, options: Options, arrays: list) -> None:
    """DTypeError, before any work, for results that no .npy file holds."""
    from cuop import executor

    dtypes = [str(array.dtype) for array in arrays]
    if "bfloat16" not in dtypes:
        return
    shapes = [array.shape for array in arrays]
    if name == "stencil" and len(arrays) == 1:
        shapes, dtypes = [*shapes, LAPLACIAN.shape], [*dtypes, "float64"]
    _, dtype = executor.result_of(TILE_CALLS[name].make(options), shapes, dtypes)
    if dtype == "bfloat16":
        raise DTypeError(
            f"run: the result of {name} is bfloat16, which a .npy file cannot hold; it is another "
            "dtype where an input is"
        )
