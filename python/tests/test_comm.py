"""Ranks: threads of this process here, MPI processes through mpirun."""

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from in_threads import in_threads

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.algorithms.matrix_ops import distributed_matmul


@pytest.fixture(params=[1, 2, 3, 5])
def ranks(request):
    return request.param


def test_an_exception_says_on_which_rank_it_was_raised():
    def work(comm):
        if comm.rank == 1:
            raise ValueError("boom")
        comm.barrier()

    with pytest.raises(ValueError, match="boom") as caught:
        dist.run_ranks(work, 3)
    assert caught.value.__notes__ == ["raised on rank 1 of 3"]


@pytest.mark.parametrize("call", [dist.matmul_from_root, distributed_matmul])
def test_what_is_raised_is_not_what_other_ranks_heard_of_it(call):
    def work(comm):
        a = [[1.0, 2.0]] if comm.rank == 0 else None
        try:
            if call is distributed_matmul:
                call(a, a, MPIManager(comm), None)
            else:
                call(comm, a, a)
        finally:
            if comm.rank == 0:
                time.sleep(0.1)  # the others raise before

    with pytest.raises((cuop.ShapeError, MPIError)) as caught:
        dist.run_ranks(work, 3)
    assert caught.value.__notes__ == ["raised on rank 0 of 3"]


def test_results_come_in_rank_order(ranks):
    assert dist.run_ranks(lambda comm: (comm.rank, comm.size), ranks) == [
        (rank, ranks) for rank in range(ranks)
    ]


def test_world_is_the_thread_rank(ranks):
    def work(comm):
        world = dist.world()
        assert (world.rank, world.kind) == (comm.rank, "thread")
        return threading.get_ident()

    assert len(set(dist.run_ranks(work, ranks))) == ranks
    assert dist.world().kind == "self"


def test_objects_travel(ranks):
    def work(comm):
        last = comm.size - 1
        said = comm.broadcast({"from": comm.rank} if comm.rank == last else None, root=last)
        part = comm.scatter([f"for {r}" for r in range(comm.size)] if comm.rank == 0 else None)
        gathered = comm.gather(part * comm.rank, root=last)
        everything = comm.all_gather([comm.rank] * comm.rank)
        around = comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
        comm.barrier()
        return said, part, gathered, everything, around

    for rank, (said, part, gathered, everything, around) in enumerate(dist.run_ranks(work, ranks)):
        assert said == {"from": ranks - 1}
        assert part == f"for {rank}"
        expected = [f"for {r}" * r for r in range(ranks)]
        assert gathered == (expected if rank == ranks - 1 else None)
        assert everything == [[r] * r for r in range(ranks)]
        assert around == (rank - 1) % ranks


def test_send_and_recv():
    def work(comm):
        if comm.rank == 0:
            comm.send("first", 1, tag=5)
            comm.send(b"x" * 1_000_000, 1, tag=6)
            return None
        big = comm.recv(0, tag=6)
        return len(big), comm.recv(0, tag=5)

    def in_order(comm):
        if comm.rank == 0:
            comm.send("first", 1, tag=5)
            comm.send(b"x" * 1_000_000, 1, tag=6)
            return None
        return comm.recv(0, tag=5), len(comm.recv(0, tag=6))

    assert dist.run_ranks(in_order, 2)[1] == ("first", 1_000_000)
    assert dist.run_ranks(work, 2)[1] == (1_000_000, "first")


def test_split():
    def work(comm):
        half = comm.split(comm.rank % 2, -comm.rank)
        alone = comm.split(0 if comm.rank == 0 else -1)
        return half.all_gather(comm.rank), alone is None

    results = dist.run_ranks(work, 5)
    assert [r[0] for r in results] == [[4, 2, 0], [3, 1], [4, 2, 0], [3, 1], [4, 2, 0]]
    assert [r[1] for r in results] == [False, True, True, True, True]


def test_the_first_exception_is_raised_and_wakes_the_others():
    woken = []

    def work(comm):
        if comm.rank == 1:
            raise KeyError("lost")
        try:
            comm.barrier()
        except cuop.CommunicationError as error:
            woken.append((error.rank, str(error)))
            raise

    with pytest.raises(KeyError, match="lost"):
        dist.run_ranks(work, 3)
    assert len(woken) == 2
    for rank, text in woken:
        assert rank == 1
        assert "KeyError" in text and "lost" in text


def test_an_unpicklable_object_raises_on_all_ranks():
    def work(comm):
        with pytest.raises(Exception) as caught:
            comm.all_gather(threading.Lock() if comm.rank == 1 else comm.rank)
        return type(caught.value), str(caught.value), comm.all_gather(comm.rank)

    results = dist.run_ranks(work, 3)
    assert results[1][0] is cuop.DTypeError
    for rank in (0, 2):
        assert results[rank][0] is cuop.CommunicationError
        assert "rank 1 of 3 failed" in results[rank][1]
    assert all(result[2] == [0, 1, 2] for result in results)  # and they go on


def test_scatter_needs_one_object_per_rank():
    def work(comm):
        with pytest.raises((cuop.ShapeError, cuop.CommunicationError), match="2 objects"):
            comm.scatter([1, 2] if comm.rank == 0 else None)

    dist.run_ranks(work, 3)


def test_timeout_and_recovery():
    def work(comm):
        comm.timeout = 0.2
        if comm.rank == 2:
            wait_until(lambda: comm.failure != "", 60)
        # On a busy machine others may be late too.
        with pytest.raises(cuop.CommunicationError, match=r"waited 0.2 s for (rank|ranks \d,) 2"):
            comm.barrier()
        assert "waited" in comm.failure
        comm.timeout = 20
        comm.recover()
        return comm.failure, comm.all_gather(comm.rank)

    assert dist.run_ranks(work, 3) == [("", [0, 1, 2])] * 3


def test_wrong_arguments():
    comm = dist.world()
    with pytest.raises(cuop.IndexError, match="rank 1 is out of range for 1 ranks"):
        comm.broadcast(1, root=1)
    for tag in (65536, -1, 2**40):
        for call in (
            lambda tag=tag: comm.send(1, 0, tag=tag),
            lambda tag=tag: comm.recv(0, tag),
            lambda tag=tag: comm.sendrecv(1, 0, 0, tag=tag),
        ):
            with pytest.raises(cuop.ExecutionError, match=f"tag {tag} .* tags are 0 to 65535"):
                call()
    for call in (
        lambda: comm.send(1, 2**40),
        lambda: comm.recv(2**40),
        lambda: comm.sendrecv(1, 0, 2**40),
        lambda: comm.broadcast(1, 2**40),
        lambda: comm.gather(1, 2**40),
        lambda: comm.scatter([1], 2**40),
        lambda: comm.in_world(2**40),
        lambda: dist.DistTensor.from_parts(comm, [1.0]).gather(2**40),
    ):
        with pytest.raises(cuop.IndexError, match=f"rank {2**40} is out of range for 1 ranks"):
            call()
    for seconds in (-1, float("nan")):
        with pytest.raises(cuop.ExecutionError, match="timeout: .* needed are seconds, 0 or more"):
            comm.timeout = seconds
    with pytest.raises(cuop.ExecutionError, match="0 ranks"):
        dist.run_ranks(print, 0)
    comm.barrier()


def test_a_second_thread_of_a_rank_is_refused():
    def work(comm):
        comm.timeout = 600
        errors = []

        def all_gather():
            try:
                while not errors:  # one thread alone may go on: the ranks recover together
                    comm.all_gather(comm.rank)
            except cuop.errors.Error as error:
                errors.append(error)

        in_threads(all_gather, all_gather)
        return errors

    for _ in range(20):
        for errors in dist.run_ranks(work, 3):
            assert any("another thread of rank" in str(error) for error in errors), errors


def test_threads_use_the_only_rank_together():
    comm = dist.world()

    def work():
        for _ in range(200):
            assert comm.all_gather(1) == [1]
            comm.send(2, 0, tag=threading.get_native_id() % 60000)
            assert comm.recv(0, tag=threading.get_native_id() % 60000) == 2
            assert distributed_matmul([[2.0]], [[3.0]], MPIManager(comm), None) == 6

    in_threads(*[work] * 4)


def test_launcher_of_a_plain_process():
    assert dist.launcher() == {
        "launcher": "none",
        "rank": 0,
        "size": 1,
        "local_rank": 0,
        "local_size": 1,
    }


def run_program(program, command, **environment):
    return subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=180,
        env=mpi_environment(**environment),
    )


def mpi_environment(**more):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **more,
    }


MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "3"]
needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or dist.mpi_unavailable_reason() != "",
    reason="no mpirun, or " + dist.mpi_unavailable_reason(),
)


@needs_mpi
def test_world_under_mpirun(tmp_path):
    program = f"""
        import pathlib
        from cuop import dist
        comm = dist.world()
        assert comm.kind == "mpi" and dist.launcher()["launcher"] == "openmpi"
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        pathlib.Path({str(tmp_path)!r}, str(comm.rank)).touch()
    """
    done = run_program(program, MPIRUN)
    assert done.returncode == 0, done.stderr
    # Files and not prints: mpirun may lose or join what ranks print just before they end.
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1", "2"]


@needs_mpi
@pytest.mark.parametrize("how", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"])
def test_a_lost_process_never_hangs_the_others(how, tmp_path):
    program = f"""
        import os, pathlib
        from cuop import dist
        comm = dist.world()
        comm.timeout = 1
        pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()
        comm.barrier()
        if comm.rank == 1:
            {how}
        comm.barrier()
    """
    # The ranks are watched, not mpirun: some versions of it hang in their own end after a rank that
    # left without MPI_Finalize.
    launcher = subprocess.Popen(
        [*MPIRUN, sys.executable, "-c", textwrap.dedent(program)],
        stderr=subprocess.DEVNULL,
        env=mpi_environment(),
    )
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 3, 60)
        ranks = [int(file.name) for file in tmp_path.iterdir()]
        wait_until(lambda: not any(is_running(pid) for pid in ranks), 60)
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert launcher.wait(timeout=5) != 0
    finally:
        launcher.kill()
        launcher.wait()


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def is_running(pid):
    """Whether the process exists and is more than an entry that its parent has not read."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@needs_mpi
def test_an_exception_on_one_mpi_rank_reaches_all():
    program = """
        import cuop
        from cuop import dist
        comm = dist.world()
        try:
            comm.barrier()  # none is in world() any more
            if comm.rank == 2:
                raise ValueError("bad luck")
            comm.barrier()
        except ValueError as error:
            comm.abort(str(error))
        except cuop.CommunicationError as error:
            assert error.rank == 2 and "bad luck" in str(error), error
        comm.recover()
        assert comm.all_gather(comm.rank) == [0, 1, 2]
    """
    done = run_program(program, MPIRUN)
    assert done.returncode == 0, done.stderr


# A wait that is not ended would last longer than the run may take.
RAISES_ON_RANK_1 = """
    from cuop import dist
    comm = dist.world()
    comm.timeout = 600
    if comm.rank == 1:
        raise ValueError("no such file on this rank")
    comm.barrier()
"""


def told_of_rank_1(errors):
    """The lines in which other ranks say what ended their waits."""
    assert "ValueError: no such file on this rank" in errors
    told = [line for line in errors.splitlines() if "CommunicationError" in line]
    return [line for line in told if "rank 1" in line and "no such file" in line]


@needs_mpi
def test_an_uncaught_exception_ends_the_waits_of_other_processes():
    done = run_program(RAISES_ON_RANK_1, MPIRUN)
    assert done.returncode != 0
    assert told_of_rank_1(done.stderr)  # mpirun may end the others before both have spoken


def torchrun_like(program, ranks, port, **more):
    """Starts ranks with the variables that torchrun sets; (return code, stderr) of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                **more,
            },
        )
        for rank in range(ranks)
    ]
    errors = [process.communicate(timeout=180)[1] for process in processes]
    return [(process.returncode, error) for process, error in zip(processes, errors, strict=True)]


def test_world_under_torchrun(master_port):
    program = """
        from cuop import dist
        comm = dist.world()
        assert comm.kind == "socket" and dist.launcher()["launcher"] == "torchrun"
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        assert comm.split(comm.rank % 2).all_gather(comm.rank) in ([0, 2], [1])
    """
    for code, error in torchrun_like(program, 3, master_port):
        assert code == 0, error


def test_a_killed_process_is_named_under_torchrun(master_port):
    program = """
        import os
        import cuop
        from cuop import dist
        comm = dist.world()
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getpid(), 9)
        try:
            while True:
                comm.barrier()
        except cuop.CommunicationError as error:
            assert error.rank == 1, error
    """
    results = torchrun_like(program, 3, master_port)
    assert [code for code, _ in results] == [0, -9, 0], results


def test_an_uncaught_exception_reaches_other_processes_under_torchrun(master_port):
    results = torchrun_like(RAISES_ON_RANK_1, 3, master_port)
    assert [code for code, _ in results] == [1, 1, 1]
    assert len(told_of_rank_1("\n".join(error for _, error in results))) == 2


def test_ranks_that_do_not_come_are_named(master_port):
    program = """
        import cuop
        from cuop import dist
        try:
            dist.world()
        except cuop.CommunicationError as error:
            assert "ranks 1, 2" in str(error), error
        else:
            raise AssertionError("met nobody")
    """
    given = {"WORLD_SIZE": "3", "CUOP_COMM_TIMEOUT": "0.5"}
    (code, error), *_ = torchrun_like(program, 1, master_port, **given)
    assert code == 0, error


def test_ctrl_c_ends_a_wait():
    program = """
        import os, signal, threading
        from cuop import dist
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        try:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            dist.run_ranks(lambda comm: comm.barrier() if comm.rank else comm.recv(1), 3)
        except KeyboardInterrupt:
            raise SystemExit(7)
    """
    start = time.monotonic()
    assert run_program(program, []).returncode == 7
    assert time.monotonic() - start < 20
