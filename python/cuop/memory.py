"""The memory that tensors lie in: figures, limits, callbacks, debugging, snapshots.

Every function takes a device ('cpu', 'cuda:1'); without one it is the current device.
"""

import atexit
import inspect
import numbers
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from cuop import _core
from cuop._arguments import as_integer, check_callable, file_path, integer, refused, switch
from cuop.errors import FileError, MemoryError

__all__ = [
    "MemoryEvent",
    "MemoryPool",
    "check_memory",
    "enable_memory_debugging",
    "max_memory_allocated",
    "memory_allocated",
    "memory_leaks",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_cache_size",
    "set_memory_callback",
    "set_memory_fraction",
    "set_memory_limit",
]


@dataclass(frozen=True)
class MemoryEvent:
    """What a memory callback is told; sizes in bytes."""

    kind: str  # 'threshold', or 'out_of_memory' before a request is refused
    device: _core.Device
    threshold: float  # the part of the capacity that was crossed
    requested: int  # of the request that is about to fail
    allocated: int
    reserved: int
    capacity: int  # the limit, or the device's memory without one


def _device(device):
    return _core.current_device() if device is None else device


def _number(value, who, name):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise refused(value, who, name, "a number")
    return float(value)


def _bytes(size, who):
    if size is None:
        return None
    if isinstance(size, str):
        return _core.parse_bytes(size, who)
    needed = "a size: bytes, or a number with a unit as '512MB' or '2GB'"
    return as_integer(size, lambda: refused(size, who, "size", needed))


def memory_stats(device=None):
    """The figures of the device's memory, sizes in bytes.

    `allocated cached reserved free fragmentation peak_allocated` and others by name, and the same
    under the dotted names that PyTorch uses ('allocated_bytes.all.current', ...). `fragmentation`
    is 1 - largest idle block / all idle bytes; `free` is what the device could still give.
    """
    device = _device(device)
    core = _core.memory_statistics(device)
    free, total = _core.memory_info(device)
    stats = {name.removesuffix("_bytes"): value for name, value in core.items()}
    stats |= {"free": free, "total": total}
    stats |= {
        "allocated_bytes.all.current": core["allocated_bytes"],
        "allocated_bytes.all.peak": core["peak_allocated_bytes"],
        "reserved_bytes.all.current": core["reserved_bytes"],
        "reserved_bytes.all.peak": core["peak_reserved_bytes"],
        "active_bytes.all.current": core["allocated_bytes"] + core["pending_bytes"],
        "active_bytes.all.peak": core["peak_active_bytes"],
        "inactive_split_bytes.all.current": core["cached_bytes"],
        "allocation.all.allocated": core["allocation_count"],
        "allocation.all.freed": core["free_count"],
        "allocation.all.current": core["allocation_count"] - core["free_count"],
        "num_alloc_retries": core["waits_for_pending"],
        "num_ooms": core["out_of_memory_count"],
        "num_device_alloc": core["map_count"],
        "num_device_free": core["unmap_count"],
    }
    return stats


def memory_allocated(device=None):
    """Bytes of live tensors."""
    return _core.memory_statistics(_device(device))["allocated_bytes"]


def memory_reserved(device=None):
    """Bytes held from the system, live or idle."""
    return _core.memory_statistics(_device(device))["reserved_bytes"]


def max_memory_allocated(device=None):
    """Most bytes of live tensors since the last reset."""
    return _core.memory_statistics(_device(device))["peak_allocated_bytes"]


def reset_peak_memory_stats(device=None):
    """Makes the present use the peak."""
    _core.reset_peak_memory(_device(device))


def memory_summary(device=None):
    """The figures as a table."""
    lines = []
    for name, value in memory_stats(device).items():
        if "." not in name:
            text = f"{value:>20,d}" if isinstance(value, int) else f"{value:>20.4f}"
            lines.append(f"{name:<20}{text}")
    return "\n".join(lines)


def set_memory_limit(size, device=None):
    """Most memory that may be held from the device, live or idle: bytes or '2GB'; None for all.

    Idle memory above it is returned at once; live tensors stay, and nothing grows.
    """
    _core.set_memory_limit(_device(device), _bytes(size, "set_memory_limit"))


def set_memory_fraction(fraction, device=None):
    """The limit as a part of the device's memory, above 0 and up to 1."""
    _core.set_memory_fraction(_device(device), _number(fraction, "set_memory_fraction", "fraction"))


def set_cache_size(size, device=None):
    """Most idle memory that is kept for reuse: bytes or '2GB'; None for no bound."""
    _core.set_cache_size(_device(device), _bytes(size, "set_cache_size"))


def _takes_event(function):
    """Whether a memory callback is given the event, or nothing."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return True
    needed = [
        p
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if len(needed) > 1 or any(p.kind == p.KEYWORD_ONLY for p in needed):
        raise refused(
            function,
            "set_memory_callback",
            "function",
            "a function of one MemoryEvent or of nothing",
        )
    return bool(needed) or any(p.kind == p.VAR_POSITIONAL for p in parameters)


def set_memory_callback(function, thresholds=(0.9, 0.95), device=None):
    """Calls `function` when live memory crosses a threshold and before a request is refused.

    Thresholds are parts of the limit, or of the device's memory without one; each is told once
    whenever use rises across it. The function is given a `MemoryEvent` when it has a parameter
    without a default (or `*args`), otherwise nothing. It may query and free memory: a request that
    fails is tried again after it. It runs in the thread that asked for memory, never inside itself;
    what it raises is reported and goes no further. None removes it.
    """
    told = None
    if function is not None:
        check_callable(function, "set_memory_callback", "function")
        takes_event = _takes_event(function)

        def told(event):
            function(MemoryEvent(**event)) if takes_event else function()

    if not isinstance(thresholds, Iterable) or isinstance(thresholds, str):
        raise refused(thresholds, "set_memory_callback", "thresholds", "a sequence of numbers")
    levels = [_number(level, "set_memory_callback", "thresholds") for level in thresholds]
    _core.set_memory_callback(_device(device), told, levels)


_debugged = set()


def _list_leaks():
    for name in sorted(_debugged):
        wrong, leaks = _core.check_memory(name), _core.memory_leaks(name)
        for text in wrong:
            print(f"cuop: {name}: {text}", file=sys.stderr)
        if leaks:
            total = sum(size for size, _, _ in leaks)
            print(
                f"cuop: {name}: {len(leaks)} blocks, {total} bytes, were not freed:",
                file=sys.stderr,
            )
            for size, age, site in leaks[:20]:
                print(
                    f"cuop:   {size} bytes, {age:.1f} s old, {site or 'site unknown'}",
                    file=sys.stderr,
                )


def enable_memory_debugging(is_on=True, device=None):
    """Guards tensors from now on: red zones around them, poison in what is freed.

    Writes outside of tensors, into freed ones, and double frees are reported on stderr when they are
    found: at frees, by `check_memory` and at exit, where tensors that are still alive are listed
    with the places that made them. Slow. False stops guarding new tensors, and gives back what is
    held of the freed ones. The figures are those of tensors, guarded or not.
    """
    device = str(_core.Device(_device(device)))  # 'cuda' with its number
    is_on = switch(is_on, "enable_memory_debugging", "is_on")
    _core.set_memory_debugging(device, is_on)
    if is_on:
        if not _debugged:
            atexit.register(_list_leaks)
        _debugged.add(device)


def check_memory(device=None):
    """Looks at every guarded tensor; a list of what was ever found wrong."""
    return _core.check_memory(_device(device))


def memory_leaks(device=None):
    """Guarded tensors that are alive, largest first: (bytes, age in seconds, place)."""
    return _core.memory_leaks(_device(device))


def memory_snapshot(path, device=None):
    """Writes the state of the memory and its history.

    `path` with .json, for programs, and with .html, a page that needs nothing else: a time line of
    allocated and reserved memory, the segments with their blocks, the largest blocks. Returns both
    names. Raises FileError when they cannot be written.
    """
    return _core.write_memory_snapshot(_device(device), snapshot_name(path))


def snapshot_name(path):
    """The path as text; FileError when it names no file, but a directory."""
    given = file_path(path, "memory_snapshot")
    text = os.fspath(path)
    if text.endswith(os.sep) or given.name in ("", ".."):
        raise FileError(f"memory_snapshot: {text!r} names no file, but a directory")
    return str(given)


class MemoryPool:
    """Raw blocks of a device's memory, by address.

    `allocate` and `deallocate` pair up; what the pool holds counts in the device's figures and goes
    with the pool.
    """

    def __init__(self, device=None):
        self._device = str(_core.Device(_device(device)))
        self._blocks = {}  # by address; the owner goes back to where it came from

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__}: a pool cannot be copied, it owns its blocks")

    def allocate(self, size):
        """Address of a new block of `size` bytes (or '2MB')."""
        size = _bytes(size, "MemoryPool.allocate")
        if size is None or not 0 <= size < 2**63:
            raise MemoryError(f"MemoryPool.allocate: size is {size}; give 0 to 2**63 - 1 bytes")
        address, owner = _core.allocate_memory(self._device, size)
        if address:
            self._blocks[address] = owner
        return address

    def deallocate(self, address):
        """Gives a block back; MemoryError when it is not one of this pool's.

        It serves later work of the stream that was current when it was allocated: work of other
        streams on it must come before that.
        """
        address = integer(address, "MemoryPool.deallocate", "address")
        if address != 0 and self._blocks.pop(address, None) is None:
            raise MemoryError(
                f"MemoryPool.deallocate: {address:#x} is not a live block of this pool"
            )

    def _figure(self, name):
        return _core.memory_statistics(self._device)[name]

    @property
    def allocated_bytes(self):
        """Bytes of live blocks and tensors."""
        return self._figure("allocated_bytes")

    @property
    def cached_bytes(self):
        """Bytes held but idle."""
        return self._figure("cached_bytes")

    @property
    def reserved_bytes(self):
        """Bytes held from the system."""
        return self._figure("reserved_bytes")

    @property
    def free_bytes(self):
        """Bytes that the device could still give."""
        return _core.memory_info(self._device)[0]

    @property
    def fragmentation_ratio(self):
        """1 - largest idle block / all idle bytes."""
        return self._figure("fragmentation")

    @property
    def peak_allocated_bytes(self):
        """Most bytes of live blocks and tensors since the last reset."""
        return self._figure("peak_allocated_bytes")
