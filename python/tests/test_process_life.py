"""Forks, handlers of signals and the interpreter's end amid cuOP's work: nothing waits for ever."""

import shutil
import sys
import textwrap

import pytest
from fresh_process import run, run_with

from cuop import dist

pytestmark = pytest.mark.cpu


def output_of(program, timeout=60, **variables):
    """What it prints; fails unless it ends well in time."""
    done = run_with(variables, textwrap.dedent(program), timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_child_of_multiprocessing_convolves():
    program = """
        import multiprocessing
        import cuop
        cuop.set_device("cpu")
        a, w = cuop.ones((1, 8, 32, 32)), cuop.ones((4, 8, 3, 3))  # by oneDNN where it is there
        def convolve():
            assert cuop.conv2d(a, w).sum() == 4 * 30 * 30 * 72
        convolve()
        child = multiprocessing.get_context("fork").Process(target=convolve)
        child.start()
        child.join(20)
        print(child.exitcode)
        child.kill()
    """
    assert output_of(program, CUOP_THREADS="2") == "0\n"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_forks_while_its_threads_multiply(threads):
    program = f"""
        import os, threading, time
        import cuop
        x = cuop.ones((300, 300))
        count = [0] * {threads}
        def multiply(i):
            while True:
                cuop.matmul(x, x)
                count[i] += 1
        for i in range({threads}):
            threading.Thread(target=multiply, args=(i,), daemon=True).start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            before = list(count)
            while any(a == b for a, b in zip(before, count)):
                time.sleep(0.001)
        print("held")
    """
    assert output_of(program) == "held\n"


def test_the_profile_is_the_parents():
    program = """
        import os, sys
        import cuop
        cuop.enable_profiling(True)
        cuop.add(cuop.ones(3), cuop.ones(3))
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    assert output_of(program).count("\noperation") == 1


def test_a_fork_under_mpirun_ends():
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(
            f"NO MPI HERE, forks under mpirun are untested: {dist.mpi_unavailable_reason()}"
        )
    program = """
        import os, sys
        from cuop import dist
        comm = dist.world()
        child = os.fork()
        if child == 0:
            sys.exit(0)  # by Python's usual way
        assert os.waitpid(child, 0)[1] == 0
        assert comm.all_gather(comm.rank) == [0, 1]
    """
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable, "-c"]
    done = run([*command, textwrap.dedent(program)], {"CUOP_COMM_TIMEOUT": "30"}, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


CALLS = {
    "measures": "cuop.measured_roof('float64')",
    "times": "cuop.benchmark(cuop.matmul, x, x)",
    "normalises": "bn.set_running_mean(cuop.zeros(64)); bn.forward(images, y)",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_handler_of_a_signal_asks_for_what_it_interrupts(call, tmp_path):
    program = f"""
        import signal
        import cuop
        x, images = cuop.ones((500, 500)), cuop.ones((256, 64, 64, 64))
        y = cuop.empty_like(images)
        bn = cuop.BatchNormFloat()
        def work():
            {CALLS[call]}
        heard = []
        def handler(number, frame):
            heard.append(number)
            work()
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        work()
        while not heard:
            pass
        print("held")
    """
    assert output_of(program, CUOP_CACHE_DIR=str(tmp_path), CUOP_DEVICE="cpu") == "held\n"


def test_a_step_amid_a_step_is_refused():
    program = """
        import signal
        import cuop
        images = cuop.ones((256, 64, 64, 64))
        y = cuop.empty_like(images)
        bn = cuop.BatchNormFloat()
        bn.train(True)
        heard = []
        def handler(number, frame):
            try:
                bn.forward(images, y)
            except cuop.ExecutionError as error:
                heard.append(str(error))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        while not heard:
            bn.forward(images, y)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(heard[0])
    """
    refusal = "BatchNormFloat: forward of a training step: called again amid the same work"
    assert output_of(program).startswith(refusal)


@pytest.mark.parametrize("way", ["d.me = d", "pass"])
def test_ranks_of_a_finalizer_are_refused_when_python_ends(way):
    program = f"""
        import cuop
        class Late:
            def __del__(self, cuop=cuop):
                try:
                    cuop.dist.run_ranks(lambda comm: comm.rank, 2)
                except cuop.ExecutionError as error:
                    print(error, flush=True)
        d = Late()
        {way}
    """
    assert output_of(program) == "run_ranks: Python is ending\n"
