"""What ranks hear of one that ends, is stopped or is given a wrong argument."""

import pytest
from test_comm import MPIRUN, needs_mpi, run_program, torchrun_like

import cuop
from cuop import dist

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


WRONG_ON_RANK_1 = {
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
