"""One rank's device: what it is, how much memory it has, and arrays on it."""

import math
import sys

import cuop
from cuop._arguments import MOST_SIZE, integer, number
from cuop.errors import DeviceError, ExecutionError
from cuop.report.page import format_bytes
from distributed_gpu._arrays import kind_of, plain, to_kind

__all__ = ["GPUManager"]

_GIB = 2**30


class GPUManager:
    """The GPU of this number, or the host for -1, which is `MPIManager.get_gpu_id()` on CPU ranks.

    Memory is what the driver (the system) reports, other processes' use included. DeviceError for a
    number that no GPU has.
    """

    def __init__(self, gpu_id):
        gpu_id = integer(gpu_id, "GPUManager", "gpu_id", least=-1)
        count = cuop.device_count("cuda")
        if gpu_id >= count:
            raise DeviceError(
                f"GPUManager: gpu_id {gpu_id} is out of range; there are {count} GPUs, -1 is the host"
            )
        self.gpu_id = gpu_id
        self._device = cuop.Device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")

    def get_device(self):
        """The device: a torch.device in programs that have imported PyTorch, else a cuop.Device."""
        torch = sys.modules.get("torch")
        return self._device if torch is None else torch.device(str(self._device))

    def get_memory_info(self):
        """GiB as a dict: total_gb, free_gb, used_gb (by anybody), allocated_gb and reserved_gb (by cuop)."""
        free, total = cuop.get_memory_info(self._device)
        return {
            "total_gb": total / _GIB,
            "free_gb": free / _GIB,
            "used_gb": (total - free) / _GIB,
            "allocated_gb": cuop.memory_allocated(self._device) / _GIB,
            "reserved_gb": cuop.memory_reserved(self._device) / _GIB,
        }

    def print_info(self):
        """Prints the device's number, name and memory."""
        _, total = cuop.get_memory_info(self._device)
        print(f"{self._name()}: {cuop.device_description(self._device)}, {format_bytes(total)}")

    def print_memory_info(self):
        """Prints what of its memory is used and free."""
        free, total = cuop.get_memory_info(self._device)
        by_tensors, held = cuop.memory_allocated(self._device), cuop.memory_reserved(self._device)
        print(
            f"{self._name()}: {format_bytes(total - free)} of {format_bytes(total)} used "
            f"({format_bytes(by_tensors)} by tensors, {format_bytes(held)} held), "
            f"{format_bytes(free)} free"
        )

    def _name(self):
        return "host" if self.gpu_id < 0 else f"GPU {self.gpu_id}"

    def to_device(self, array):
        """The array on this device, of the same library; itself where it is there already.

        NumPy's arrays live in host memory: on a GPU they become cuop tensors.
        """
        tensor = cuop.asarray(plain(array))
        if tensor.device == self._device:
            return array
        kind = kind_of(array)
        moved = tensor.to(self._device)
        return moved if kind == "numpy" and self.gpu_id >= 0 else to_kind(moved, kind)

    def empty_cache(self):
        """Gives idle memory of cuop back to the system; the bytes."""
        return cuop.empty_cache(self._device)

    def synchronize(self):
        """Waits for all work of the device."""
        cuop.synchronize(self._device)

    def estimate_memory_requirement(self, *shapes, dtype="float32"):
        """GiB of arrays of these shapes together."""
        return sum(_elements(shape) for shape in shapes) * cuop.dtype(dtype).itemsize / _GIB

    def can_fit(self, *shapes, dtype="float32", safety_margin=0.1):
        """Whether arrays of these shapes fit into what is free, a part `safety_margin` of it left."""
        safety_margin = number(safety_margin, "can_fit", "safety_margin")
        if not 0 <= safety_margin < 1:
            raise ExecutionError(
                f"can_fit: safety_margin is {safety_margin}; it must be at least 0 and below 1"
            )
        needed = self.estimate_memory_requirement(*shapes, dtype=dtype)
        return needed <= self.get_memory_info()["free_gb"] * (1 - safety_margin)


def _elements(shape):
    who = "estimate_memory_requirement"
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    count = math.prod(integer(size, who, "size", least=0) for size in sizes)
    return integer(count, who, "the number of elements", least=0, most=MOST_SIZE)
