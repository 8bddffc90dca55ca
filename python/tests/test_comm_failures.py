"""What ranks hear of one that ends, is stopped or is given a wrong argument."""

import numpy as np
import pytest
from test_comm import MPIRUN, needs_mpi, run_program, torchrun_like

import cuop
from cuop import dist, executor

LAUNCHERS = [pytest.param("mpirun", marks=needs_mpi), "torchrun"]


@pytest.fixture(params=LAUNCHERS)
def run_processes(request, master_port):
    """Runs a program on three ranks that are processes; all must end as they should."""

    def run(program):
        if request.param == "mpirun":
            done = run_program(program, MPIRUN)
            assert done.returncode == 0, done.stderr
            return
        for code, errors in torchrun_like(program, 3, master_port):
            assert code == 0, errors

    return run


# MPI's ranks say goodbye, sockets are closed.
HAS_ENDED = ["it has ended", "has closed the connection"]


@pytest.mark.parametrize("how", ["raise SystemExit(0)", "return"])
def test_a_rank_that_ends_ends_the_waits_for_it(run_processes, how):
    program = f"""
        import time
        import cuop
        from cuop import dist
        comm = dist.world()
        comm.timeout = 600
        part = comm.split(0 if comm.rank < 2 else 1)
        part.timeout = 600
        def work():
            comm.barrier()
            if comm.rank == 1:
                {how}
            start = time.monotonic()
            try:
                (comm if comm.rank == 2 else part).barrier()
                comm.barrier()
            except cuop.CommunicationError as error:
                assert error.rank == 1, error
                assert any(words in str(error) for words in {HAS_ENDED!r}), error
            else:
                raise AssertionError("waited for nobody")
            assert time.monotonic() - start < 15
        work()
    """
    run_processes(program)


@pytest.mark.parametrize("how", ["raise SystemExit(0)", "return"])
def test_who_ends_after_the_recovery_is_not_blamed_in_it(run_processes, how):
    program = f"""
        import cuop
        from cuop import dist
        comm = dist.world()
        comm.timeout = 60
        def work():
            try:
                comm.barrier()  # in which others may still be when rank 2 has left it
                if comm.rank == 2:
                    comm.abort("once")
                while True:
                    comm.barrier()
            except cuop.CommunicationError as error:
                assert error.rank == 2, error
            comm.recover()
            if comm.rank == 1:
                {how}
            try:
                comm.barrier()
            except cuop.CommunicationError as error:
                assert error.rank == 1 and error.operation == "barrier", error
            else:
                raise AssertionError("nobody was missing")
        work()
    """
    run_processes(program)


def test_threads_that_end_after_the_recovery_are_not_blamed_in_it():
    def work(comm):
        comm.timeout = 60
        try:
            if comm.rank == 3:
                comm.abort("once")
            while True:
                comm.barrier()
        except cuop.CommunicationError as error:
            assert error.rank == 3, error
        comm.recover()

    for _ in range(50):
        dist.run_ranks(work, 4)


SOME_SHRINK = {
    "rank 0 shrinks": lambda comm: comm.recover() if comm.rank else comm.shrink(),
    "rank 0 recovers": lambda comm: comm.shrink() if comm.rank else comm.recover(),
}


def some_shrink(comm, how):
    """All raise, long before the time-out, and say what the others have called."""
    comm.timeout = 600
    mine = "recover" if (comm.rank > 0) == (how == "rank 0 shrinks") else "shrink"
    other = "shrink" if mine == "recover" else "recover"
    with pytest.raises(cuop.CommunicationError, match=f"^{mine}: .* called {other}") as caught:
        SOME_SHRINK[how](comm)
    assert caught.value.rank != comm.rank
    assert (caught.value.rank == 0) == (comm.rank > 0)


@pytest.mark.parametrize("how", SOME_SHRINK)
def test_when_some_recover_and_others_shrink_all_raise(run_processes, how):
    program = f"""
        from cuop import dist
        from test_comm_failures import some_shrink
        some_shrink(dist.world(), {how!r})
    """
    run_processes(program)


@pytest.mark.parametrize("how", SOME_SHRINK)
def test_when_some_threads_recover_and_others_shrink_all_raise(how):
    for _ in range(30):
        dist.run_ranks(lambda comm: some_shrink(comm, how), 3)


@needs_mpi
def test_a_rank_that_is_stopped_in_a_split_is_named(tmp_path):
    program = f"""
        import os, pathlib, signal, threading, time
        import cuop
        from cuop import dist
        comm = dist.world()
        comm.barrier()
        comm.timeout = 3
        folder = pathlib.Path({str(tmp_path)!r})
        if comm.rank == 2:
            (folder / "stopped").write_text(str(os.getpid()))
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        start = time.monotonic()
        try:
            while True:
                comm.split(comm.rank % 2).barrier()
        except cuop.CommunicationError as error:
            assert error.rank == 2, error
        (folder / f"raised{{comm.rank}}").touch()
        while comm.rank == 0 and not (folder / "raised1").exists():
            time.sleep(0.02)
        if comm.rank == 0:
            stopped = (folder / "stopped").read_text()
            # One that has not stopped yet would stop behind the signal, for ever.
            while pathlib.Path("/proc", stopped, "stat").read_text().rpartition(") ")[2][0] != "T":
                time.sleep(0.02)
            os.kill(int(stopped), signal.SIGCONT)
        comm.timeout = 30
        comm.recover()
        assert comm.split(0).all_gather(comm.rank) == [0, 1, 2]
    """
    done = run_program(program, MPIRUN)
    assert done.returncode == 0, done.stderr


def on_root(comm, *shape):
    return np.ones(shape) if comm.rank == 0 else None


def in_rows(comm):
    return dist.DistTensor.from_parts(comm, np.ones((1, comm.size)))


def in_columns(comm):
    return dist.Sharding(dist.Mesh.line(comm.size), dist.P(None, "r"))


def assigned(comm, key):
    x = in_rows(comm)
    x[key] = 5
    return x


class Unreadable:
    """Cannot be unpickled on rank 1."""

    def __init__(self, rank):
        self.rank = rank

    def __setstate__(self, state):
        if dist.world().rank == 1:
            raise ValueError("boom")


def over_devices(comm, plan, *arguments, **options):
    return plan(*arguments, machine=executor.RankDevices.of(comm), **options)


OF_EXECUTOR = {
    "inputs of tiles": lambda comm, bad: executor.run(
        comm, executor.add(), "ab" if bad else [on_root(comm, 3)] * 2
    ),
    "an operation": lambda comm, bad: executor.run(
        comm, 5 if bad else executor.sum(), [on_root(comm, 3)]
    ),
    "a log": lambda comm, bad: executor.fft_line(comm, on_root(comm, 3), log=5 if bad else None),
    "a kind": lambda comm, bad: executor.fft_line(
        comm, on_root(comm, 3), kind="wave" if bad else "fft"
    ),
    "a norm": lambda comm, bad: executor.fft2d_grid(
        comm, on_root(comm, 3, 3), "big" if bad else "ortho"
    ),
    "a boundary": lambda comm, bad: executor.stencil_2d(
        comm, on_root(comm, 4, 4), on_root(comm, 3, 3), "open" if bad else "zero"
    ),
    "a tolerance": lambda comm, bad: executor.jacobi_2d(
        comm, on_root(comm, 4, 4), on_root(comm, 4, 4), tol="x" if bad else 0.0
    ),
    "a margin": lambda comm, bad: executor.scan_devices(comm, safety_margin="x" if bad else 0.2),
    "a margin above all": lambda comm, bad: executor.scan_devices(
        comm, safety_margin=2.0 if bad else 0.2
    ),
    "a planned dtype": lambda comm, bad: executor.plan(
        comm, executor.sum(), [(3,)], ["float33" if bad else "float32"]
    ),
    "a dtype for the ranks' devices": lambda comm, bad: over_devices(
        comm, executor.plan_call, executor.sum(), [(3,)], ["float33" if bad else "float32"]
    ),
    "a shape for the ranks' devices": lambda comm, bad: over_devices(
        comm, executor.plan_fft_line, ("x",) if bad else (3,), "float32"
    ),
    "a margin of the ranks' devices": lambda comm, bad: executor.plan_call(
        executor.sum(),
        [(3,)],
        ["float32"],
        executor.RankDevices.of(comm, safety_margin="x" if bad else 0.2),
    ),
    "a limit of the ranks' devices": lambda comm, bad: executor.plan_call(
        executor.sum(),
        [(3,)],
        ["float32"],
        executor.RankDevices.of(comm, memory_limit=-1 if bad else 10**6),
    ),
}
OF_METHODS = {
    "an axis of a sum": lambda comm, bad: in_rows(comm).sum("x" if bad else 0),
    "an axis of a variance": lambda comm, bad: in_rows(comm).var("x" if bad else 0),
    "a divisor": lambda comm, bad: in_rows(comm).std(0, ddof="x" if bad else 0),
    "a factor": lambda comm, bad: in_rows(comm) @ (5 if bad else in_rows(comm)),
    "a key": lambda comm, bad: in_rows(comm)["x" if bad else slice(1)].gather_all(),
    "an index": lambda comm, bad: in_rows(comm)[99 if bad else 0].gather_all(),
    "the key of an assignment": lambda comm, bad: assigned(comm, "x" if bad else 0).gather_all(),
    "a size": lambda comm, bad: in_rows(comm).reshape("x" if bad else -1).gather_all(),
    "a dtype": lambda comm, bad: in_rows(comm).astype("x" if bad else "int8").gather_all(),
    "an operand": lambda comm, bad: (in_rows(comm) + (np.ones(3) if bad else 1)).gather_all(),
    "an operand beside two": lambda comm, bad: cuop.where(
        in_rows(comm) > 0,
        in_rows(comm),
        "x" if bad else in_rows(comm).redistribute(in_columns(comm)),
    ),
}
WRONG_ON_RANK_1 = {
    **OF_EXECUTOR,
    **OF_METHODS,
    "the kind of an argument": lambda comm, bad: comm.split("red" if bad else 0),
    "a root": lambda comm, bad: comm.broadcast(1, root=9 if bad else 0),
    "a missing argument": lambda comm, bad: dist.all_reduce(comm, *([] if bad else [[1.0]])),
    "an array": lambda comm, bad: dist.all_reduce(comm, object() if bad else [1.0]),
    "a name": lambda comm, bad: dist.all_reduce(comm, [1.0], "xor" if bad else "sum"),
    "dimensions": lambda comm, bad: dist.sum_from_root(comm, [1.0], "a" if bad else 0),
    "a dimension": lambda comm, bad: dist.DistTensor.from_parts(comm, [1.0], 7 if bad else 0),
    "a rank": lambda comm, bad: dist.DistTensor.from_parts(comm, [1.0]).gather(5 if bad else 0),
    "a tag": lambda comm, bad: comm.send(1, 0, tag=-1) if bad else comm.recv(1),
    "a message": lambda comm, bad: comm.send(lambda: 0, 0) if bad else comm.recv(1),
    "an object that came": lambda comm, bad: (
        comm.broadcast(Unreadable(comm.rank)),
        comm.barrier(),
    ),
    "one of several that came": lambda comm, bad: (
        comm.all_gather(Unreadable(comm.rank)),
        comm.barrier(),
    ),
}


@pytest.mark.parametrize("wrong", WRONG_ON_RANK_1)
def test_a_wrong_argument_on_one_rank_raises_on_all(wrong):
    def work(comm):
        comm.timeout = 600
        with pytest.raises(Exception) as caught:
            WRONG_ON_RANK_1[wrong](comm, comm.rank == 1)
        return caught.value

    errors = dist.run_ranks(work, 3)
    assert not isinstance(errors[1], cuop.CommunicationError)
    for rank in (0, 2):
        assert isinstance(errors[rank], cuop.CommunicationError)
        assert errors[rank].rank == 1
        assert str(errors[1]).split(": ", 1)[-1] in str(errors[rank])


def test_a_wrong_argument_on_one_process_raises_on_all(run_processes):
    program = """
        import cuop
        from cuop import dist
        from test_comm_failures import WRONG_ON_RANK_1
        comm = dist.world()
        comm.timeout = 600  # longer than the run may take
        for wrong, call in WRONG_ON_RANK_1.items():
            try:
                comm.barrier()  # a rank that fails would end calls that others are still in
                call(comm, comm.rank == 1)
                comm.barrier()  # a root waits for nobody in its call
            except Exception as error:
                told = (type(error).__name__, getattr(error, "rank", None), str(error))
            else:
                raise AssertionError(f"{wrong}: nothing was raised")
            comm.recover()
            errors = comm.all_gather(told)
            own = errors[1][2].split(": ", 1)[-1]
            assert errors[1][0] != "CommunicationError", (wrong, errors)
            for kind, blamed, text in (errors[0], errors[2]):
                assert (kind, blamed) == ("CommunicationError", 1), (wrong, errors)
                assert own in text, (wrong, errors)
    """
    run_processes(program)


def test_a_thread_that_returns_ends_the_waits_in_its_parts():
    def work(comm):
        comm.timeout = 600
        part = comm.split(comm.rank // 2)
        part.timeout = 600
        if comm.rank == 2:
            return
        part.barrier()
        comm.barrier()

    with pytest.raises(cuop.CommunicationError, match="rank 2.*returned already") as caught:
        dist.run_ranks(work, 4)
    assert caught.value.rank == 2


def test_a_forked_child_is_no_rank_and_the_ranks_go_on(run_processes):
    program = """
        import os
        import cuop
        from cuop import dist
        comm = dist.world()
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        child = os.fork() if comm.rank == 1 else None
        if child == 0:
            calls = [
                comm.barrier, comm.recover, comm.shrink, lambda: comm.broadcast(5),
                lambda: comm.all_gather(5), lambda: comm.gather(5), lambda: comm.scatter([1, 2, 3]),
                lambda: comm.split(0), lambda: comm.send(5, 0), lambda: comm.recv(0),
                lambda: comm.sendrecv(5, 0, 0), lambda: dist.world().barrier(), comm.health,
                lambda: dist.all_reduce(comm, cuop.ones(3)),
            ]
            wrong = 0
            for call in calls:
                try:
                    call()
                    wrong += 1
                except cuop.CommunicationError as error:
                    wrong += "forked from rank 1 of 3" not in str(error)
            comm.abort("a child has no say")
            wrong += "forked" not in comm.failure
            alone = dist.run_ranks(lambda ranks: ranks.all_gather(ranks.rank), 2)
            os._exit(wrong + (alone != [[0, 1], [0, 1]]))
        if child:
            assert os.waitpid(child, 0)[1] == 0
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        assert comm.failure == ""
    """
    run_processes(program)
