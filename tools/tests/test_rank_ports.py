"""Ports of ranks: processes that start at the same one never share a range."""

import itertools
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import rank_ports
from rank_ports import reserved_ports

_PROGRAM = f"""
import contextlib, itertools, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import rank_ports
rank_ports._next = itertools.count(500)
with contextlib.ExitStack() as held:
    print([held.enter_context(rank_ports.reserved_ports()) for _ in range(5)], flush=True)
    sys.stdin.read()
"""


def test_no_two_processes_have_the_same():
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    ports = [port for each in processes for port in eval(each.stdout.readline())]
    for each in processes:
        each.communicate()
    assert len(set(ports)) == 40
    assert all(12000 <= port < 32000 and port % 20 == 0 for port in ports)


@pytest.fixture
def small_ranges(monkeypatch):
    """Three ranges of six ports, all in one that nobody else uses meanwhile; the first port."""
    with reserved_ports() as outer:
        monkeypatch.setattr(rank_ports, "_LOWEST", outer + 1)
        monkeypatch.setattr(rank_ports, "_APART", 6)
        monkeypatch.setattr(rank_ports, "_RANGES", 3)
        monkeypatch.setattr(rank_ports, "_next", itertools.count(0))
        yield outer + 1


def test_each_takes_another_one_and_all_are_free_again(small_ranges):
    for _ in range(2):
        with reserved_ports() as one, reserved_ports() as two, reserved_ports() as three:
            assert [one, two, three] == [small_ranges, small_ranges + 6, small_ranges + 12]
            with pytest.raises(OSError, match="none of the 3 ranges of ports"), reserved_ports():
                pass


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_a_range_that_somebody_uses_is_passed_over(small_ranges, offset):
    with socket.create_server(("127.0.0.1", small_ranges + offset)), reserved_ports() as port:
        assert port == small_ranges + 6
