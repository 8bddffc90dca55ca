"""Names of arrays in files: `x.npy`, or a tensor of a .safetensors file, `model.safetensors:name`."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuop import npy, safetensors
from cuop._arguments import file_path
from cuop._core import Tensor
from cuop.errors import FileError
from cuop.mapped import check_whole

__all__ = ["ArrayFile", "array_file"]

_SUFFIX = ".safetensors"
_MOST_NAMED = 10


@dataclass(frozen=True)
class ArrayFile:
    """A file, and the name of the array in it; of a .npy file, which holds one, "" """

    path: Path
    name: str = ""

    def open(self) -> np.ndarray | Tensor:
        """The elements, read-only, of a large file as its pages: an array of .npy, else a tensor.

        FileError for what the file is not or has not, DTypeError for numbers that cuop has not.
        """
        if self.path.suffix != _SUFFIX:
            return npy.open_npy(self.path)
        tensors = safetensors.open(self.path)
        if self.name not in tensors:
            there = ", ".join(repr(name) for name in list(tensors)[:_MOST_NAMED])
            more = f", ... ({len(tensors)} in all)" if len(tensors) > _MOST_NAMED else ""
            what = f"has no tensor {self.name!r}" if self.name else "holds tensors by name"
            raise FileError(
                f"load: {self.path} {what}; one is given as {self.path.name}:NAME, there are "
                f"{there or 'none'}{more}"
            )
        return tensors[self.name]

    def check_whole(self, array: np.ndarray | Tensor) -> None:
        """FileError when another program has cut the file off since `array` was opened."""
        check_whole(array, self.path)

    @property
    def text(self) -> str:
        """The name by which `array_file` finds it, whatever the working directory."""
        resolved = str(self.path.resolve())
        return f"{resolved}:{self.name}" if self.path.suffix == _SUFFIX else resolved


def array_file(name: str | os.PathLike) -> ArrayFile:
    """What a name stands for: the text behind the first `.safetensors:` names a tensor."""
    file_path(name, "load")
    text = os.fsdecode(name)
    before, mark, tensor = text.partition(f"{_SUFFIX}:")
    return ArrayFile(Path(before + _SUFFIX), tensor) if mark else ArrayFile(Path(text))
