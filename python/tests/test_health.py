"""What ranks know of one that dies, stops or is stuck, and how the others go on without it."""

import subprocess
import sys
import textwrap

import pytest
from test_comm import MPIRUN, mpi_environment, needs_mpi

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager
from rank_ports import reserved_ports

# Time-outs are long: what ends a wait here is the heartbeat alone.
BEGIN = """
import os, pathlib, signal, sys, time, warnings
import numpy as np
import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager
mpi = MPIManager()
comm = mpi.comm
comm.timeout = 600
pids = comm.all_gather(os.getpid())

def states():
    return [each.state for each in comm.health()]

def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, comm.health()
        time.sleep(0.01)

def is_stopped(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2] == "T"

def go_on(rank):
    # One that has not stopped yet would stop behind the signal, for ever.
    wait_for(lambda: is_stopped(pids[rank]))
    os.kill(pids[rank], signal.SIGCONT)

def signal_when_others_wait_for_nobody(rank, number):
    # They may still be in a barrier that this rank has left.
    if comm.rank != rank:
        comm.send("no more", rank)
        return
    for other in range(comm.size):
        if other != rank:
            comm.recv(other)
    os.kill(os.getpid(), number)

def named():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        is_well = mpi.check_health()
    return is_well, [str(each.message) for each in caught]

wait_for(lambda: states() == ["alive"] * 3)  # ranks of other hosts once they were heard
assert named() == (True, [])
"""

# Over "hosts" ranks 1 and 2 take rank 0 to be on another host than they are.
transports = pytest.mark.parametrize(
    "transport",
    [
        "socket",
        "socket hosts",
        pytest.param("mpi", marks=needs_mpi),
        pytest.param("mpi hosts", marks=needs_mpi),
    ],
)
over_hosts = pytest.mark.parametrize(
    "transport", ["socket hosts", pytest.param("mpi hosts", marks=needs_mpi)]
)
HOSTS = ["here", "there", "there"]


def run_ranks(program, transport, **variables):
    """The programs' exit codes and what they printed; over MPI one code for all."""
    with reserved_ports() as port:
        return run_ranks_at(str(port), program, transport, **variables)


def run_ranks_at(port, program, transport, **variables):
    text = textwrap.dedent(BEGIN) + textwrap.dedent(program)
    command = [sys.executable, "-c", text]
    has_hosts = transport.endswith(" hosts")
    if transport.startswith("mpi"):
        environments = [mpi_environment(**variables)]
        groups = [("1", "here"), ("2", "there")] if has_hosts else [("3", "")]
        launcher = [*MPIRUN[:-2], "--enable-recovery"]
        for place, (count, host) in enumerate(groups):
            launcher += [*([":"] if place else []), "-np", count]
            launcher += ["-x", f"CUOP_HOST_NAME={host}", *command]
        command = launcher
    else:
        environments = [
            mpi_environment(
                RANK=str(rank),
                WORLD_SIZE="3",
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                CUOP_HOST_NAME=HOSTS[rank] if has_hosts else "",
                **variables,
            )
            for rank in range(3)
        ]
    ranks = [
        subprocess.Popen(command, env=each, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for each in environments
    ]
    try:
        prints = [rank.communicate(timeout=90)[0].decode() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [rank.returncode for rank in ranks], "\n".join(prints)


def check(program, transport, tmp_path, ranks, **variables):
    """Every one of `ranks` comes to the end; by files in `folder` ranks speak past a failure."""
    folder, tmp_path = tmp_path, tmp_path / "at the end"
    tmp_path.mkdir()
    end = f"\npathlib.Path({str(tmp_path)!r}, str(rank_at_begin)).touch()\n"
    # Whoever fails afterwards finds nobody in a call that came before.
    begin = f"""
rank_at_begin = comm.rank
folder = pathlib.Path({str(folder)!r})
(folder / f"rank {{comm.rank}} is here").touch()
wait_for(lambda: all((folder / f"rank {{r}} is here").exists() for r in range(comm.size)))
"""
    codes, prints = run_ranks(begin + textwrap.dedent(program) + end, transport, **variables)
    assert sorted(int(file.name) for file in tmp_path.iterdir()) == ranks, f"{codes}\n{prints}"


@transports
def test_the_dead_are_named_and_the_others_go_on(transport, tmp_path):
    program = """
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for(lambda: states()[1] == "dead")
        is_well, texts = named()
        assert not is_well and len(texts) == 1 and "check_health: rank 1 is dead" in texts[0], texts
        begin = time.monotonic()
        try:
            mpi.allreduce_tensor(np.ones(4))
            raise SystemExit("did not raise")
        except MPIError as error:
            assert error.rank == 1, error
            # Whom the other rank has told so before hears it in the barrier that asks for news.
            assert error.operation in ("all_gather", "barrier") and error.sequence > 0, vars(error)
        try:
            comm.recover()
            raise SystemExit("did not raise")
        except cuop.CommunicationError as error:
            assert error.rank == 1 and "shrink" in str(error), error
        assert time.monotonic() - begin < 30
        left = mpi.shrink()
        assert (left.get_size(), left.get_rank()) == (2, comm.rank // 2)
        assert left.allreduce_tensor(np.full(3, comm.rank + 1.0)).tolist() == [4.0] * 3
        assert left.check_health() and mpi.comm.failure != ""
        if left.get_rank() == 1:
            left.recv(0)
        else:
            left.send("go on", 1)
        # It may fail and recover by itself, and numbers ranks by its own.
        if left.get_rank() == 1:
            left.comm.abort("the second failure")
        try:
            left.barrier()
            left.barrier()
            raise SystemExit("did not raise")
        except MPIError as error:
            assert error.rank == 1, error
        left.comm.recover()
        assert left.allgather(left.get_rank()) == [0, 1]
    """
    check(program, transport, tmp_path, [0, 2])


@transports
def test_a_rank_that_dies_while_the_others_shrink_is_left_out_too(transport, tmp_path):
    program = """
        if comm.rank == 1:  # the others wait for it in shrink, which has no other end
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        left = comm.shrink()
        assert left.all_gather(comm.rank) == [0, 2]
    """
    check(program, transport, tmp_path, [0, 2])


@transports
def test_the_stopped_are_named_until_they_run_again(transport, tmp_path):
    program = """
        if comm.rank == 2:
            os.kill(os.getpid(), signal.SIGSTOP)
            comm.timeout = 30
            try:
                comm.barrier()
                raise SystemExit("did not raise")
            except cuop.CommunicationError as error:
                assert error.rank == 2, error
        else:
            wait_for(lambda: states()[2] == "stopped")
            assert comm.health()[2].silence > 0.5
            assert not named()[0] and "rank 2 is stopped" in named()[1][0]
            try:
                comm.barrier()
                raise SystemExit("did not raise")
            except cuop.CommunicationError as error:
                assert error.rank == 2 and "heartbeat" in str(error), error
        comm.timeout = 30
        if comm.rank == 1:
            (folder / "rank 1 has raised").touch()
        if comm.rank == 0:
            wait_for((folder / "rank 1 has raised").exists)
            go_on(2)
        comm.recover()
        wait_for(lambda: states() == ["alive"] * 3)
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        assert named() == (True, [])
    """
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


@transports
def test_without_a_limit_stopped_ranks_are_waited_for_and_dead_ones_are_not(transport, tmp_path):
    program = """
        if comm.rank == 2:
            os.kill(os.getpid(), signal.SIGSTOP)
        if comm.rank == 0:
            wait_for(lambda: comm.health()[2].silence > 2.5)
            assert states()[2] == "alive" and named()[0]
            go_on(2)
        comm.barrier()
        signal_when_others_wait_for_nobody(2, signal.SIGKILL)
        try:
            comm.barrier()
            raise SystemExit("did not raise")
        except cuop.CommunicationError as error:
            assert error.rank == 2, error
    """
    check(program, transport, tmp_path, [0, 1], CUOP_HEARTBEAT_TIMEOUT="inf")


@transports
def test_the_stuck_are_told_from_those_that_wait_for_somebody(transport, tmp_path):
    program = """
        if comm.rank == 0:
            # 1 and 2 wait for each other; that they wait does not keep 0 from asking.
            wait_for(lambda: states() == ["alive", "stuck", "stuck"])
            is_well, texts = named()
            assert not is_well and "rank 1 is stuck in recv" in texts[0], texts
            assert [each.operation for each in comm.health()] == ["", "recv", "recv"]
            assert [each.waits_for for each in comm.health()] == [-1, 2, 1]
            assert comm.health()[1].sequence > 0 and comm.health()[1].seconds > 0.5
            comm.abort("they would wait for ever")
        else:
            try:
                comm.recv(3 - comm.rank)
                raise SystemExit("did not raise")
            except cuop.CommunicationError as error:
                assert error.rank == 0 and error.operation == "recv", error
        comm.timeout = 30
        comm.recover()
        # Who waits for a rank that computes is not stuck.
        if comm.rank == 0:
            wait_for(lambda: all(each.operation == "barrier" and each.seconds > 2
                                 for each in comm.health()[1:]))
            assert named() == (True, []), comm.health()
        comm.barrier()
    """
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


@transports
def test_a_job_that_is_stopped_as_a_whole_goes_on(transport, tmp_path):
    program = """
        child = os.fork() if comm.rank == 0 else -1
        if child == 0:
            try:
                time.sleep(0.3)
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(3)
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            finally:
                os._exit(0)
        is_over = False  # on rank 0 once the child has ended, however late it was
        while not comm.broadcast(is_over):
            is_over = comm.rank == 0 and os.waitpid(child, os.WNOHANG)[0] == child
        assert comm.all_gather(comm.rank) == [0, 1, 2] and named() == (True, [])
    """
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


@transports
def test_mismatched_calls_raise_at_once_and_name_both(transport, tmp_path):
    program = """
        begin = time.monotonic()
        try:
            if comm.rank == 1:
                comm.barrier()
            else:
                dist.all_reduce(comm, [1.0])
            raise SystemExit("did not raise")
        except cuop.CommunicationError as error:
            assert "barrier" in str(error) and "all_gather" in str(error), error
            assert error.operation == ("barrier" if comm.rank == 1 else "all_gather")
        assert time.monotonic() - begin < 30
        comm.timeout = 30
        comm.recover()
        assert comm.all_gather(comm.rank) == [0, 1, 2]
    """
    check(program, transport, tmp_path, [0, 1, 2])


@over_hosts
def test_a_host_that_says_nothing_is_lost_until_it_is_heard_again(transport, tmp_path):
    program = """
        assert comm.health()[1].operation in ("", "barrier", "send", "recv"), comm.health()
        if comm.rank == 0:
            for rank in (1, 2):
                comm.recv(rank)  # it waits for rank 0 alone from now on
            for pid in pids[1:]:
                os.kill(pid, signal.SIGSTOP)
            begin = time.monotonic()
            try:
                comm.barrier()
                raise SystemExit("did not raise")
            except cuop.CommunicationError as error:
                assert error.rank in (1, 2) and "nothing was heard of its host" in str(error), error
            assert time.monotonic() - begin < 30
            assert states() == ["alive", "lost", "lost"] and "rank 1 is lost" in named()[1][0]
            for rank in (1, 2):
                go_on(rank)
        else:
            try:
                comm.send("ready", 0)
                comm.recv(0)
                raise SystemExit("did not raise")
            except cuop.CommunicationError as error:
                pass
        comm.timeout = 30
        comm.recover()
        wait_for(lambda: states() == ["alive"] * 3)
        assert comm.all_gather(comm.rank) == [0, 1, 2]
    """
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


@over_hosts
def test_a_host_that_has_vanished_is_gone_on_without(transport, tmp_path):
    program = """
        if comm.rank > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for(lambda: all(state in ("dead", "lost") for state in states()[1:]))
        try:
            comm.barrier()
            raise SystemExit("did not raise")
        except cuop.CommunicationError as error:
            assert error.rank in (1, 2), error
        assert comm.shrink().size == 1
    """
    check(program, transport, tmp_path, [0])


@over_hosts
def test_another_rank_reports_for_a_host_whose_first_one_is_stopped(transport, tmp_path):
    program = """
        signal_when_others_wait_for_nobody(1, signal.SIGSTOP)  # which reports for 2 as well
        if comm.rank != 1:
            wait_for(lambda: states()[1] == "stopped")
            begin = time.monotonic()
            while time.monotonic() - begin < 2:
                assert states()[2] == states()[0] == "alive", comm.health()
                time.sleep(0.01)
        if comm.rank == 2:  # 0 looks as long from its host
            comm.recv(0)
            go_on(1)
        if comm.rank == 0:
            comm.send("has looked", 2)
        comm.timeout = 30
        wait_for(lambda: states() == ["alive"] * 3)
        comm.barrier()
    """
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


UDP = """
def udp_ports():
    own = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
           if os.path.exists(f"/proc/self/fd/{fd}")}
    rows = [row.split() for file in ("udp", "udp6")
            for row in open(f"/proc/net/{file}").read().splitlines()[1:]]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in own]
"""


@over_hosts
def test_strangers_cannot_end_or_keep_a_rank(transport, tmp_path):
    program = textwrap.dedent(UDP) + textwrap.dedent(
        """
        import socket, random
        ports = comm.all_gather(udp_ports())
        assert all(ports), ports
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        def pester():
            for port in sum(ports, []):
                for words in (b"", b"x", random.randbytes(200), random.randbytes(1200)):
                    try:
                        stranger.sendto(words, ("127.0.0.1", port))
                    except OSError:
                        pass
        signal_when_others_wait_for_nobody(2, signal.SIGSTOP)
        def pestered(state):
            pester()
            return states()[2] == state
        if comm.rank == 0:
            wait_for(lambda: pestered("stopped"))
            go_on(2)
            wait_for(lambda: pestered("alive"))
            comm.send("it runs again", 1)
        if comm.rank == 1:
            comm.recv(0)
        wait_for(lambda: pestered("alive"))
        comm.timeout = 30
        assert states() == ["alive"] * 3
        assert comm.all_gather(comm.rank) == [0, 1, 2]
        """
    )
    check(program, transport, tmp_path, [0, 1, 2], CUOP_HEARTBEAT_TIMEOUT="2")


def test_on_one_host_nobody_listens_for_datagrams(tmp_path):
    program = textwrap.dedent(UDP) + "assert udp_ports() == []\n"
    check(program, "socket", tmp_path, [0, 1, 2])


def test_a_value_that_is_no_limit_is_refused(tmp_path):
    codes, prints = run_ranks("", "socket", CUOP_HEARTBEAT_TIMEOUT="0.1")
    assert all(codes)
    assert "CUOP_HEARTBEAT_TIMEOUT: 0.1 seconds were given, possible are 0.5 and more" in prints


def test_thread_ranks_go_on_without_one_that_raised():
    seen = []

    def work(comm):
        comm.timeout = 600
        mpi = MPIManager(comm)
        if comm.rank == 1:
            raise ValueError("boom")
        with pytest.raises(MPIError) as caught:
            while True:
                mpi.barrier()
        assert caught.value.rank == 1
        assert caught.value.operation == "barrier"
        assert caught.value.sequence >= 1
        left = mpi.shrink()
        assert left.allgather(comm.rank) == [0, 2, 3]
        assert left.check_health()
        assert not mpi.check_health()
        assert [each.state for each in comm.health()] == ["alive", "left", "alive", "alive"]
        with pytest.raises(
            cuop.CommunicationError, match="rank 1, which has ended; shrink"
        ) as gone:
            comm.recover()
        assert gone.value.rank == 1
        seen.append(left.get_rank())
        left.barrier()  # none has left before

    with pytest.raises(ValueError, match="boom"):
        dist.run_ranks(work, 4)
    assert sorted(seen) == [0, 1, 2]


def test_thread_ranks_go_on_without_one_that_returned():
    def work(comm):
        comm.timeout = 600
        if comm.rank == 0:
            return None
        with pytest.raises(cuop.CommunicationError, match="returned already"):
            comm.barrier()
        return comm.shrink().all_gather(comm.rank)

    assert dist.run_ranks(work, 3) == [None, [1, 2], [1, 2]]


def test_one_rank_alone_is_well():
    mpi = MPIManager()
    assert mpi.check_health()
    assert repr(mpi.comm.health()) == "[<cuop.dist.RankHealth alive>]"
    assert mpi.shrink().get_size() == 1
