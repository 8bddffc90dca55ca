"""`cuop run --memory-limit`: results in tiles, written to their file as they are made."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import cuop
from cuop import executor
from cuop.array_files import ArrayFile
from cuop.cli import console
from cuop.cli.inputs import check_whole, open_inputs
from cuop.cli.operations import LAPLACIAN, Options
from cuop.cli.partial_output import PartialOutput
from cuop.cli.ranks import on_ranks
from cuop.cli.tile_operations import LINES, TILE_CALLS


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
        self._log = PartialOutput(output, self._call, resume)

    def run(self, ranks: int | None) -> None:
        """Makes the output; what is there under its name is complete."""
        try:
            on_ranks(self._run_rank, ranks)
        except KeyboardInterrupt:
            self._say_how_to_go_on()
            raise

    def _say_how_to_go_on(self) -> None:
        if self._log.path is None:  # nothing had begun, or not by this process
            return
        if self._log.has_progress():
            words = f"what is done of {self.output} is kept: the same command goes on with it"
        elif self.resume:
            words = "nothing was done yet"
        else:
            words = "nothing is kept; a run with --resume is gone on with by the same command"
        console.errors.print(f"cuop: run: cut off; {words}", markup=False)

    def _run_rank(self, comm) -> None:
        arrays = open_inputs(comm, self.inputs, self.output, self.name, self.options)
        if comm.rank != 0:
            self._make(comm, arrays, None)
            return
        try:
            with console.stages(1) as bar:
                bar.begin(f"{self.name} on {comm.size} ranks")
                result = self._make(comm, arrays, lambda done, total: bar.at(done / total))
                check_whole(arrays, self.inputs)
            self._log.finish(result)
        except BaseException:
            self._log.leave()
            raise
        console.console.print(f"{self.output}: {tuple(result.shape)} {result.dtype}", markup=False)

    def _make(self, comm, arrays, on_progress: Callable | None) -> cuop.Tensor | None:
        """The result on rank 0: the log's last array, or one in memory that was small enough."""
        chosen = self.options
        settings = {"log": self._log, "on_progress": on_progress, **self.limits}
        if self.name == "fft2d":
            result, _ = executor.fft2d_grid(comm, *arrays, chosen.norm, **settings)
        elif self.name in LINES:
            axis = -1 if chosen.axis is None else chosen.axis
            result, _ = executor.fft_line(
                comm, *arrays, None, axis, chosen.norm, self.name, **settings
            )
        elif self.name == "stencil":
            grid, *given = arrays
            kernel = given[0] if given else LAPLACIAN
            result, _ = executor.stencil_2d(
                comm, grid, kernel, chosen.boundary, chosen.iterations, **settings
            )
        elif self.name == "jacobi":
            result, _, _ = executor.jacobi_2d(
                comm, *arrays, chosen.dx, chosen.boundary, chosen.iterations, chosen.tol, False,
                **settings,
            )  # fmt: skip
        else:
            operation = TILE_CALLS[self.name].make(chosen)
            result, _ = executor.run(comm, operation, arrays, **settings)
        return result

    def _call(self) -> dict:
        """What must be the same for tiles to be of the same result."""
        files = [(file.text, file.path.stat()) for file in self.inputs]
        return {
            "operation": {"name": self.name, **asdict(self.options)},
            "inputs": [[text, status.st_size, status.st_mtime_ns] for text, status in files],
        }
