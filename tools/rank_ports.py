"""Ports for ranks that meet by TCP, such that jobs of one machine never take each other's."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator

# The same in tests/dist/socket_ranks.cpp: below 32768, where the system takes ports for connections
# that ask for none.
_LOWEST, _APART, _RANGES, _OF_PROCESS = 12000, 20, 1000, 7
_next = itertools.count(os.getpid() * _OF_PROCESS)


def _listener(port: int) -> socket.socket | None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError:
        listener.close()
        return None
    return listener


def _is_free(port: int) -> bool:
    listener = _listener(port)
    if listener is not None:
        listener.close()
    return listener is not None


@contextlib.contextmanager
def reserved_ports() -> Iterator[int]:
    """A port for MASTER_PORT; the 19 above it, where rank 0 listens, are kept as well meanwhile.

    Whoever uses a range listens at its first port, which cuOP leaves to the launcher.
    """
    for number in itertools.islice(_next, _RANGES):
        first = _LOWEST + number % _RANGES * _APART
        held = _listener(first)
        if held is None:
            continue
        with held:
            if all(_is_free(first + offset) for offset in range(1, _APART)):
                yield first
                return
    raise OSError(f"none of the {_RANGES} ranges of ports from {_LOWEST} on is free")
