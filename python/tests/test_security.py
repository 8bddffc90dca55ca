"""docs/security.md: its sentences have tests, and those that are about Python are here."""

import contextlib
import os
import pickle
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fresh_process import run_with

import cuop
from cuop import dist

ROOT = Path(__file__).resolve().parents[2]


def test_every_sentence_names_tests_that_exist():
    page = (ROOT / "docs/security.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ") and "| tests |" not in row]
    tests_in_cpp = "\n".join(file.read_text("utf-8") for file in ROOT.glob("tests/*/*_test.cpp"))
    assert len(rows) > 15
    missing = []
    for row in rows:
        names = re.findall(r"`([\w.:]+)`", row.rstrip(" |").rpartition("|")[2])
        assert names, f"a sentence without a test: {row}"
        for name in names:
            if "::" in name:
                file, _, function = name.partition("::")
                found = f"def {function}(" in (ROOT / "python/tests" / file).read_text("utf-8")
            else:
                suite, _, test = name.partition(".")
                found = re.search(rf"TEST(_F|_P)?\(\s*{suite},\s*{test}\)", tests_in_cpp)
            if not found:
                missing.append(name)
    assert missing == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_libraries_that_the_environment_names_are_loaded(tmp_path):
    source = (
        '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts("ran"); }\n'
    )
    library = tmp_path / "library.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
        input=source,
        text=True,
        check=True,
    )
    code = "import cuop; cuop.ones((4, 4)) @ cuop.ones((4, 4)); cuop.system_info()"
    done = run_with({"CUOP_BLAS_LIBRARY": str(library), "CUOP_DEVICE": "cpu"}, code)
    assert "ran" in done.stdout


class RunsWhenRead:
    def __reduce__(self):
        return (str.upper, ("this ran",))


def test_objects_between_ranks_are_pickles():
    def work(comm):
        return comm.broadcast(RunsWhenRead() if comm.rank == 0 else None)

    assert dist.run_ranks(work, 2)[1] == "THIS RAN"


def test_arrays_of_other_libraries_are_believed():
    class Foreign:
        def __init__(self, array):
            self.__array_interface__ = {
                "data": (array.ctypes.data + 8, True),
                "shape": (2,),
                "typestr": "<f8",
                "version": 3,
            }

    array = np.arange(4.0)
    assert cuop.tensor(np.asarray(Foreign(array))).tolist() == [1.0, 2.0]


def environment(**more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


@pytest.mark.skipif(
    shutil.which("mpirun") is None or dist.mpi_unavailable_reason() != "", reason="no MPI"
)
def test_mpi_asks_for_no_secret():
    program = """
from cuop import dist
import os
os.environ["CUOP_JOB_SECRET"] = os.environ["OMPI_COMM_WORLD_RANK"]
assert dist.world().all_gather(1) == [1, 1]
"""
    done = subprocess.run(
        ["mpirun", "--oversubscribe", "-np", "2", sys.executable, "-c", program],
        env=environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr


def start_rank(program, rank, ranks, port, **more):
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": port}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables, MASTER_ADDR="127.0.0.1", **more),
    )


@pytest.mark.parametrize("given", [{}, {"CUOP_JOB_SECRET": "known to both of them"}])
def test_ranks_meet_with_the_users_secret_and_with_that_of_the_environment(
    given, tmp_path, master_port
):
    program = "from cuop import dist\nassert dist.world().all_gather(1) == [1, 1]"
    variables = given or {"CUOP_CACHE_DIR": str(tmp_path / "new")}
    ranks = [start_rank(program, rank, 2, master_port, **variables) for rank in range(2)]
    for rank in ranks:
        assert rank.communicate(timeout=120)[1] == ""
        assert rank.returncode == 0
    if not given:
        assert (tmp_path / "new/job_secret").stat().st_mode & 0o777 == 0o600


class Touches:
    """A pickle that makes a file where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def connect(port, deadline):
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            time.sleep(0.01)
    raise AssertionError(f"nobody listens at port {port}")


def test_a_stranger_cannot_have_a_pickle_read(tmp_path, master_port):
    """It greets as rank 1, with a proof that is none, and goes on with an object for rank 0."""
    program = """
import cuop
from cuop import dist
try:
    print(dist.world().recv(1))
except cuop.CommunicationError as error:
    assert "waited for rank 1" in str(error), error
    raise SystemExit(7)
"""
    rank = start_rank(program, 0, 2, master_port, CUOP_COMM_TIMEOUT="4")
    payload = pickle.dumps(Touches(str(tmp_path / "touched")))
    greeting = struct.pack("iii64s32s32s", 1, 0, 1234, b"node", os.urandom(32), os.urandom(32))
    frames = b"".join(
        struct.pack("IiqQqQii", 0x704F7563, 1, len(body), 0, 0, 0, 0, -1) + body
        for body in (struct.pack("q", len(payload)), payload)
    )
    with connect(int(master_port) + 1, time.monotonic() + 30) as stranger:
        stranger.settimeout(30)
        assert len(stranger.recv(1000)) == 40  # the challenge, which it cannot answer
        stranger.sendall(greeting + frames)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1000) == b""  # sent away
    rank.communicate(timeout=120)
    assert rank.returncode == 7
    assert not (tmp_path / "touched").exists()


def test_the_secret_is_not_printed():
    secret = "a secret that is long enough"
    code = "import cuop; print(cuop.env_table())"
    done = run_with({"CUOP_JOB_SECRET": secret}, code)
    assert "CUOP_JOB_SECRET" in done.stdout
    assert "(set)" in done.stdout
    assert secret not in done.stdout + done.stderr


def test_a_rank_without_the_secret_is_told_what_to_do(master_port):
    program = """
import cuop
from cuop import dist
try:
    dist.world()
except cuop.CommunicationError as error:
    assert "CUOP_JOB_SECRET" in str(error), error
    raise SystemExit(7)
"""
    secrets = ["the secret of rank 0", "another one of rank 1"]
    for timeout in ("3", "12", "48"):  # until they come upon each other, however busy the machine
        ranks = [
            start_rank(
                program, rank, 2, master_port, CUOP_COMM_TIMEOUT=timeout, CUOP_JOB_SECRET=secret
            )
            for rank, secret in enumerate(secrets)
        ]
        errors = [rank.communicate(timeout=120)[1] for rank in ranks]
        codes = [rank.returncode for rank in ranks]
        if codes == [7, 7]:
            break
    assert codes == [7, 7], errors
    assert "Error" not in "".join(errors)
