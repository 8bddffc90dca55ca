"""Signals: one that is handled changes nothing, Ctrl-C ends every wait for ranks at once."""

import os
import subprocess
import sys
import textwrap

import pytest
from fresh_process import run_with

# What the programs below begin with. `seconds()` is the time since the signal was sent.
BEGINNING = """
import os, signal, sys, threading, time
import cuop
from cuop import dist
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
sent = []
def send(number):
    sent.append(time.monotonic())
    os.kill(os.getpid(), number)
begun = threading.Event()  # what the signal is to end
def send_soon(number=signal.SIGINT):
    def send_into_it():
        begun.wait()
        time.sleep(0.5)
        send(number)
    threading.Thread(target=send_into_it, daemon=True).start()
def seconds():
    return time.monotonic() - sent[0]
# A second is promised; a busy machine may take its time with the rest.
PROMISED = 3.0
"""


def run(program, **variables):
    seen = {"PYTHONPATH": os.pathsep.join(sys.path), "MASTER_ADDR": "127.0.0.1"}
    return run_with(seen | variables, BEGINNING + textwrap.dedent(program), timeout=120)


def assert_passes(done):
    assert done.returncode == 0, done.stderr


RANKS = {
    "computing": "for _ in iter(int, 1): pass",
    "sleeping": "time.sleep(60)",
    "waiting": "comm.recv((comm.rank + 1) % comm.size)",
    "in ranks of its own": "dist.run_ranks(lambda inner: inner.recv(1 - inner.rank), 2)",
}


@pytest.mark.parametrize("doing", RANKS)
def test_ctrl_c_ends_run_ranks(doing):
    program = f"""
        def work(comm):
            if comm.rank == 1:
                begun.set()
                {RANKS[doing]}
            comm.barrier()
        send_soon()
        try:
            dist.run_ranks(work, 3)
        except KeyboardInterrupt:
            assert seconds() < PROMISED, seconds()
        else:
            raise AssertionError("nobody was interrupted")
        assert dist.run_ranks(lambda comm: comm.all_gather(1), 2) == [[1, 1]] * 2  # and it goes on
        assert seconds() < PROMISED + 2, seconds()
    """
    done = run(program)
    assert_passes(done)
    assert ("is left to itself" in done.stderr) == (doing == "sleeping")


def test_ranks_in_python_end_with_keyboard_interrupt():
    program = """
        started, ended = [], []
        def work(comm):
            try:
                started.append(comm.rank)
                if len(started) == 3:
                    begun.set()
                while True:
                    pass
            except KeyboardInterrupt:
                ended.append(comm.rank)
                raise
        send_soon()
        try:
            dist.run_ranks(work, 3)
        except KeyboardInterrupt:
            while len(ended) < 3 and seconds() < PROMISED:  # who is late on a busy machine
                time.sleep(0.01)
            assert sorted(ended) == [0, 1, 2], ended
        else:
            raise AssertionError("nobody was interrupted")
    """
    assert_passes(run(program))


def test_the_process_ends_though_a_rank_does_not():
    program = """
        import atexit
        atexit.register(lambda: print(f"ended after {seconds():.1f} s"))
        def work(comm):
            begun.set()
            time.sleep(60)
        send_soon()
        dist.run_ranks(work, 2)
    """
    done = run(program)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert float(done.stdout.split()[2]) < 3.0


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_ends_the_meeting(rank, master_port):
    program = """
        send_soon()
        try:
            begun.set()
            dist.world()
        except KeyboardInterrupt:
            assert seconds() < PROMISED, seconds()
        else:
            raise AssertionError("nobody was interrupted")
    """
    assert_passes(run(program, RANK=str(rank), WORLD_SIZE="2", MASTER_PORT=master_port))


def test_a_handled_signal_does_not_end_the_meeting(master_port):
    program = """
        handled = []
        signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number))
        send_soon(signal.SIGUSR1)
        try:
            begun.set()
            dist.world()
        except cuop.CommunicationError as error:
            assert seconds() > 0.5, "ended by the signal"
            assert "waited for rank 1" in str(error), error
        assert len(handled) == 1
    """
    variables = {"WORLD_SIZE": "2", "MASTER_PORT": master_port}
    assert_passes(run(program, RANK="0", CUOP_COMM_TIMEOUT="4", **variables))


def test_ctrl_c_ends_a_wait_for_another_process(master_port):
    """And tells the other one, which waits too."""
    program = """
        comm = dist.world()
        comm.timeout = 100
        comm.barrier()
        if comm.rank == 0:
            send_soon()
        try:
            begun.set()
            comm.recv(1 - comm.rank)
        except KeyboardInterrupt:
            assert comm.rank == 0 and seconds() < PROMISED, seconds()
        except cuop.CommunicationError as error:
            assert comm.rank == 1 and "interrupted" in str(error), error
        else:
            raise AssertionError("nobody was interrupted")
    """
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": master_port}
    other = subprocess.Popen(
        [sys.executable, "-c", BEGINNING + textwrap.dedent(program)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RANK": "1", **variables},
    )
    done = run(program, RANK="0", **variables)
    error = other.communicate(timeout=120)[1]
    assert_passes(done)
    assert other.returncode == 0, error


@pytest.mark.parametrize("ends", ["KeyboardInterrupt()", "SystemExit(7)"])
def test_what_ends_the_import_is_raised_by_it(ends):
    """Not as the cause of an ImportError. The extension asks for the main thread as it begins."""
    done = run_with(
        {},
        "import threading\n"
        f"def end(): raise {ends}\n"
        "threading.main_thread = end\n"
        "try:\n"
        "    import cuop\n"
        "except BaseException as error:\n"
        "    print(type(error).__name__, error.__cause__)\n",
    )
    assert done.stdout == f"{ends.partition('(')[0]} None\n", done.stderr
