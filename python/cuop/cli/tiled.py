"""`cuop run --memory-limit`: results in tiles, written to their file as they are made."""

from pathlib import Path

import numpy as np

import cuop
from cuop import executor, npy
from cuop.array_files import ArrayFile
from cuop.cli import console
from cuop.cli.inputs import check_whole, open_inputs
from cuop.cli.operations import LAPLACIAN, Options
from cuop.cli.partial_output import PartialOutput, open_shared
from cuop.cli.ranks import on_ranks
from cuop.cli.tile_operations import IN_PASSES, TILE_CALLS
from cuop.errors import ExecutionError


class Tiled:
    """One run of an operation on files that may be larger than memory."""

    def __init__(
        self,
        name: str,
        inputs: list[ArrayFile],
        output: Path,
        options: Options,
        limit: int | None,
        resume: bool,
    ):
        self.name, self.inputs, self.output = name, inputs, output
        self.options, self.resume = options, resume
        self.limits = {} if limit is None else {"memory_limit": limit}

    def run(self, ranks: int | None) -> None:
        """Makes the output; what is there under its name is complete."""
        if self.resume and self.name in IN_PASSES:
            raise ExecutionError(
                f"run: --resume is for results made tile by tile: not for {', '.join(IN_PASSES)}"
            )
        on_ranks(self._run_rank, ranks)

    def _run_rank(self, comm) -> None:
        arrays = open_inputs(comm, self.inputs, self.output, self.name, self.options)
        if self.name in IN_PASSES:
            result = self._in_passes(comm, arrays)
            if comm.rank == 0:
                check_whole(arrays, self.inputs)
                npy.save(self.output, result)
                self._tell(result.shape, result.dtype)
            return
        operation = TILE_CALLS[self.name].make(self.options)
        shapes, dtypes = comm.broadcast(
            ([array.shape for array in arrays], [str(array.dtype) for array in arrays])
            if comm.rank == 0
            else None
        )
        plan = executor.plan(comm, operation, shapes, dtypes, **self.limits)
        if comm.rank == 0:
            self._to_file(comm, operation, arrays, plan)
        else:
            self._beside_root(comm, operation, arrays, plan)

    def _to_file(self, comm, operation, arrays, plan) -> None:
        dtype = np.dtype(plan.dtype.name)
        output = self._output = PartialOutput(self.output, self._call(operation), plan.shape, dtype)
        if self.resume and output.resume():
            console.console.print(f"going on behind {len(output.done)} tiles", markup=False)
        try:
            with output.opened() as array, console.stages(1) as bar:
                bar.begin(f"{self.name} on {comm.size} ranks")
                is_process = comm.kind != "thread" and comm.size > 1
                comm.broadcast((output.done, output.place() if is_process else None))
                executor.run(
                    comm, operation, arrays, out=cuop.asarray(array), done=output.done,
                    on_tile=self._tile, on_progress=lambda done, total: bar.at(done / total),
                    **self.limits,
                )  # fmt: skip
                check_whole(arrays, self.inputs)
            output.finish()
        except BaseException:
            if not self.resume:
                output.discard()
            raise
        self._tell(plan.shape, dtype)

    def _beside_root(self, comm, operation, arrays, plan) -> None:
        """Threads share rank 0's output, processes of its host write to its file."""
        done, place = comm.broadcast(None)
        if place is None:
            executor.run(comm, operation, arrays, done=done, on_tile=self._tile, **self.limits)
            return
        shared = open_shared(place, plan.shape, np.dtype(plan.dtype.name))
        out = None
        if shared is not None:
            self._output, out = shared, cuop.asarray(shared.array)
        try:
            executor.run(
                comm, operation, arrays, out=out, done=done, on_tile=self._tile, **self.limits
            )
        finally:
            if shared is not None:
                shared.close()

    def _tile(self, low, high) -> None:
        """Of any rank, when the tile is in the file."""
        if self.resume:
            self._output.add(low, high)

    def _call(self, operation) -> dict:
        """What must be the same for tiles to be of the same result."""
        files = [(file.text, file.path.stat()) for file in self.inputs]
        return {
            "operation": operation.text,
            "inputs": [[text, status.st_size, status.st_mtime_ns] for text, status in files],
        }

    def _in_passes(self, comm, arrays):
        chosen = self.options
        if self.name == "fft2d":
            result = executor.fft2d_grid(comm, *arrays, chosen.norm, **self.limits)
        elif self.name == "stencil":
            grid, *given = arrays
            kernel = given[0] if given else LAPLACIAN
            result = executor.stencil_2d(
                comm, grid, kernel, chosen.boundary, chosen.iterations, **self.limits
            )
        else:
            result, _ = executor.jacobi_2d(
                comm, *arrays, chosen.dx, chosen.boundary, chosen.iterations, chosen.tol,
                **self.limits,
            )  # fmt: skip
        return None if result is None else np.asarray(result)

    def _tell(self, shape, dtype) -> None:
        console.console.print(f"{self.output}: {tuple(shape)} {dtype}", markup=False)
