"""`cuop run --resume`: runs that are cut off, and later ones that go on with them."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_cli import cuop, write
from test_cli_tiled import operands, result_of

import cuop as library
from cuop import FileError, dist, executor
from cuop.array_files import ArrayFile
from cuop.cli.journal import Journal, sealed
from cuop.cli.operations import LAPLACIAN, Options
from cuop.cli.partial_output import PartialOutput
from cuop.cli.tiled import Tiled

OPTIONS = Options(None, 0, 1, "backward", "plain", 1, 0, "zero", 1, 1.0, 1e-6)
RANDOM = np.random.default_rng(5)


@pytest.fixture
def files(tmp_path):
    return operands(tmp_path)


def journal_of(folder):
    return folder / ".out.npy.cuop-tiles"


def said_by(journal):
    """The lines without their checksums."""
    return [line.partition(" ")[2] for line in journal.read_text().splitlines()]


def write_lines(journal, lines):
    journal.write_bytes(b"".join(map(sealed, lines)))


def make_older(journal):
    """As if the system had started anew since."""
    head, *lines = said_by(journal)
    write_lines(journal, [head.replace('"start": "', '"start": "of old'), *lines])


def processes_below(pid):
    """The process and all that it has started."""
    found, parents = [pid], {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            status = Path("/proc", str(int(entry)), "stat").read_text()
            parents.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(int(entry))
    for parent in found:
        found += parents.get(parent, [])
    return found


def kill_when(is_time, arguments, ranks):
    """Kills a run with all its processes, unless it has ended before."""
    command = [sys.executable, "-m", "cuop.cli.main", *map(str, arguments)]
    if ranks:
        command = ["mpirun", "--oversubscribe", "-np", str(ranks), *command]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    running = subprocess.Popen(command, env={**os.environ, **root})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.poll() is None and not is_time():
        time.sleep(0.002)
    for pid in reversed(processes_below(running.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait()


def lines_of(folder):
    journal = journal_of(folder)
    return len(journal.read_text().splitlines()) if journal.exists() else 0


def head_of(tmp_path, a):
    """The first line of the journal of a run that transposes the file."""
    call = Tiled("transpose", [ArrayFile(a)], tmp_path / "out.npy", OPTIONS, None, True)._call()
    return {
        "version": 3,
        "call": call,
        "arrays": [[[170, 90], "float64"]],
        "pass": [0, "tiles", []],
        "start": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }


def test_a_killed_run_is_gone_on_with(tmp_path, files):
    a, b = files
    arguments = [
        "run",
        "matmul",
        a,
        b,
        "-o",
        tmp_path / "out.npy",
        "--memory-limit",
        "2K",
        "--resume",
    ]
    kill_when(lambda: lines_of(tmp_path) > 5, arguments, None)
    killed = not (tmp_path / "out.npy").exists()  # nothing incomplete has the name
    done = cuop(*arguments)
    assert done.returncode == 0, done.stderr
    assert ("going on behind" in done.stdout) == killed
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.load(a) @ np.load(b), rtol=1e-9)
    assert not journal_of(tmp_path).exists()


def test_tiles_that_are_there_are_not_made_again(tmp_path, files):
    a, _ = files
    expected = np.load(a).T
    head = head_of(tmp_path, a)

    def left_behind(*boxes):
        """An earlier run has left a file of sevens, and says that these boxes are done."""
        np.save(tmp_path / "part.npy", np.full((170, 90), 7.0))
        os.rename(tmp_path / "part.npy", tmp_path / ".out.npy.cuop-part")
        journal = journal_of(tmp_path)
        write_lines(journal, map(json.dumps, [head, *([*box, []] for box in boxes)]))
        with journal.open("ab") as file:
            file.write(sealed("[[0, 40], [170, 50], []]")[:-8])  # cut off

    left_behind([[0, 0], [170, 25]], [[0, 25], [170, 90]])
    assert (result_of(tmp_path, "transpose", a, "--resume") == 7).all()
    left_behind([[0, 0], [170, 50]])
    result = result_of(tmp_path, "transpose", a, "--resume")
    np.testing.assert_array_equal(result[:, 50:], expected[:, 50:])
    assert ((result == 7) | (result == expected)).all()
    head["start"] = "before the system has started anew"  # what was in memory alone may be lost
    left_behind([[0, 0], [170, 90]])
    np.testing.assert_array_equal(result_of(tmp_path, "transpose", a, "--resume"), expected)
    head = head_of(tmp_path, a)
    head["arrays"] = [[[90, 170], "float64"]]
    left_behind([[0, 0], [170, 90]])
    np.testing.assert_array_equal(result_of(tmp_path, "transpose", a, "--resume"), expected)
    head = head_of(tmp_path, a)
    os.utime(a, ns=(1, 1))  # of other inputs they are no tiles
    left_behind([[0, 0], [170, 90]])
    np.testing.assert_array_equal(result_of(tmp_path, "transpose", a, "--resume"), expected)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
@pytest.mark.parametrize("peers", ["1", "0"])  # without, results of the others come at the end
def test_killed_processes_are_gone_on_with(tmp_path, files, peers, monkeypatch):
    a, b = files
    monkeypatch.setenv("CUOP_PEER_MEMORY", peers)
    expected = np.load(a) @ np.load(b)
    arguments = ["run", "matmul", a, b, "-o", tmp_path / "out.npy", "--resume"]
    kill_when(lambda: lines_of(tmp_path) > 20, [*arguments, "--memory-limit", "2K"], 3)
    was_killed = not (tmp_path / "out.npy").exists()
    if was_killed:  # what the journal says is in the file
        boxes = [json.loads(line) for line in said_by(journal_of(tmp_path))[1:-1]]
        part = np.load(tmp_path / ".out.npy.cuop-part")
        for (top, left), (bottom, right), _ in boxes:
            place = (slice(top, bottom), slice(left, right))
            np.testing.assert_allclose(part[place], expected[place], rtol=1e-9)
        makers = {low[0] // 30 for low, _, _ in boxes}  # of 90 rows each rank has a third
        assert len(makers) > 1 if peers == "1" else makers == {0}
    for ranks in (2, None):  # the second finds everything made, and the first what was left
        done = cuop(*arguments, "--memory-limit", "3K", ranks=ranks)
        assert done.returncode == 0, done.stderr
        assert ("going on behind" in done.stdout) == (was_killed and ranks == 2)
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-9)
        assert not journal_of(tmp_path).exists()


def test_tiles_that_overlap_are_not_counted_twice(tmp_path, files):
    """Of runs with other limits: of two halves of a tile that are the same half one is missing."""
    a, _ = files
    expected = np.load(a).T
    head = head_of(tmp_path, a)
    half = np.zeros((170, 90))
    half[:85] = expected[:85]
    np.save(tmp_path / "part.npy", half)
    os.rename(tmp_path / "part.npy", tmp_path / ".out.npy.cuop-part")
    boxes = [[[0, 0], [85, 90]], [[0, 0], [85, 90]], [[0, 0], [85, 45]], [[0, 45], [85, 90]]]
    lines = [head, *([*box, []] for box in boxes)]
    write_lines(journal_of(tmp_path), map(json.dumps, lines))
    result = result_of(tmp_path, "transpose", a, "--resume", limit="1G")
    np.testing.assert_array_equal(result, expected)


GRID_CALLS = {
    "fft2d": [],
    "fft": [],
    "rfft": [],
    "irfft": [],
    "stencil": ["--iterations", 90, "--boundary", "periodic"],
    "jacobi": ["--iterations", 300, "--dx", 0.1, "--tol", 0.003],
}


@pytest.mark.parametrize(
    ("name", "ranks", "peers"),
    [(name, ranks, "1") for name in GRID_CALLS for ranks in (None, 3)]
    + [("rfft", 3, "0"), ("fft", 3, "0"), ("jacobi", 3, "0")],
)
def test_passes_that_are_killed_are_gone_on_with(tmp_path, name, ranks, peers, monkeypatch):
    """In the first pass, in later ones, and by another number of ranks."""
    if ranks and shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    monkeypatch.setenv("CUOP_PEER_MEMORY", peers)
    line = {"rfft": (600000,), "irfft": (300001,), "fft": (200003,)}  # a prime number
    x = write(tmp_path / "x.npy", RANDOM.normal(size=line.get(name, (480, 200))))
    inputs = [x, write(tmp_path / "f.npy", RANDOM.normal(size=(480, 200)))][
        : 1 + (name == "jacobi")
    ]
    run = ["run", name, *inputs, *GRID_CALLS[name]]
    done = cuop(*run, "-o", tmp_path / "whole.npy")
    assert done.returncode == 0, done.stderr
    run += ["-o", tmp_path / "out.npy", "--resume", "--memory-limit"]
    seen = []

    def is_in_pass(number):
        with contextlib.suppress(OSError, IndexError, ValueError):
            head, *lines = said_by(journal_of(tmp_path))
            return json.loads(head)["pass"][0] >= number and len(lines) >= 2
        return False

    limit = {"irfft": 96, "fft": 120}.get(name, 60)  # spectra are complex
    for number in range(4 if name == "fft" else 2):
        kill_when(lambda: is_in_pass(number), [*run, f"{limit + 4 * number}K"], ranks)  # noqa: B023
        seen.append(not (tmp_path / "out.npy").exists())
        if not seen[-1]:  # it was faster
            break
    done = cuop(*run, f"{limit + 8}K", ranks=2 if ranks else None)
    assert done.returncode == 0, done.stderr
    assert ("going on behind" in done.stdout) == seen[-1], done.stdout
    result, whole = np.load(tmp_path / "out.npy"), np.load(tmp_path / "whole.npy")
    np.testing.assert_allclose(result, whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []


class CutOffError(Exception):
    """Where a run was to end."""


class CutOff(PartialOutput):
    """Ends when a pass begins."""

    def __init__(self, path, call, at):
        super().__init__(path, lambda: call, True)
        self.at = at

    def begin(self, state):
        if state[0] == self.at:
            raise CutOffError
        return super().begin(state)


def sweep(tmp_path, log, iterations=40):
    """The result of a stencil in passes of a few sweeps each."""
    comm, grid = dist.world(), np.arange(6000.0).reshape(60, 100) % 7 / 100
    result, report = executor.stencil_2d(
        comm, grid, LAPLACIAN / 8, "zero", iterations, memory_limit=30_000, log=log
    )
    return np.asarray(result).copy(), report


def test_passes_that_are_finished_are_not_made_again(tmp_path):
    out = tmp_path / "out.npy"
    whole = PartialOutput(out, lambda: {}, False)
    expected, all_of_them = sweep(tmp_path, whole)
    whole.finish(None)
    assert all_of_them.passes > 3
    np.testing.assert_array_equal(np.load(out), expected)
    out.unlink()

    def cut_off():
        log = CutOff(out, {"a": 1}, 3)
        with pytest.raises(CutOffError):
            sweep(tmp_path, log)
        log.leave()
        assert sorted(file.name for file in tmp_path.iterdir()) == [
            ".out.npy.cuop-part", ".out.npy.cuop-pass", ".out.npy.cuop-tiles",
        ]  # fmt: skip

    def go_on(call=None):
        log = PartialOutput(out, lambda: call or {"a": 1}, True)
        result, report = sweep(tmp_path, log)
        log.finish(result)
        np.testing.assert_array_equal(np.load(out), expected)
        assert [file.name for file in tmp_path.iterdir()] == ["out.npy"]
        out.unlink()
        return report.passes

    cut_off()
    assert go_on() == all_of_them.passes - 2  # the third was finished, but nobody had said so
    cut_off()  # after a new start of the system tiles are not believed, passes are
    make_older(journal_of(tmp_path))
    assert go_on() == all_of_them.passes - 2
    for file in (".out.npy.cuop-part", ".out.npy.cuop-pass"):  # of what is cut off nothing is
        cut_off()
        os.truncate(tmp_path / file, 1000)
        assert go_on() == all_of_them.passes
        cut_off()
        (tmp_path / file).unlink()
        assert go_on() == all_of_them.passes
    cut_off()
    assert go_on({"a": 2}) == all_of_them.passes  # another call


def test_what_has_been_left_and_does_not_fit_is_said(tmp_path):
    out = tmp_path / "out.npy"
    log = CutOff(out, {}, 3)
    with pytest.raises(CutOffError):
        sweep(tmp_path, log)
    log.leave()
    log = PartialOutput(out, lambda: {}, True)
    with pytest.raises(library.ExecutionError, match="cannot go on"):
        sweep(tmp_path, log, 2)
    log.leave()
    log = PartialOutput(out, lambda: {}, True)
    with pytest.raises(FileError, match=r"cuop-tiles is of a run with other arrays"):
        executor.run(dist.world(), executor.add(), [np.ones(3), np.ones(3)], log=log)
    log.leave()
    with pytest.raises(library.DTypeError, match="log: needed is .* given int has no is_kept"):
        executor.run(dist.world(), executor.add(), [np.ones(3), np.ones(3)], log=3)
    with pytest.raises(library.ExecutionError, match="a log has its own array"):
        executor.run(
            dist.world(), executor.add(), [np.ones(3), np.ones(3)], out=library.zeros(3), log=log
        )


def test_tiles_after_a_new_start_of_the_system_are_gone_on_with(tmp_path):
    out, arrays, state = tmp_path / "out.npy", [((4,), "float64")], (0, "tiles", [])

    def begun():
        log = PartialOutput(out, lambda: {}, True)
        log.left()
        log.open(arrays)
        done = log.begin(state)
        log.note([0], [2], [])
        log.leave()
        return done

    assert begun() == []
    make_older(journal_of(tmp_path))
    assert begun() == []  # what the system had in its memory may be lost
    assert begun() == [([0], [2], [])]  # but not what has been done since


@pytest.mark.parametrize("is_kept", [False, True])
def test_two_runs_do_not_write_one_output(tmp_path, is_kept):
    out, arrays = tmp_path / "out.npy", [((4,), "float64"), ((4,), "float64")]
    first, second = (PartialOutput(out, lambda: {}, is_kept) for _ in range(2))
    late = PartialOutput(out, lambda: {}, is_kept)
    assert late.left() is None  # before anybody has begun
    assert first.left() is None
    first.open(arrays)
    first.begin((0, "tiles", []))
    first.note([0], [2], [])
    mine = sorted(tmp_path.iterdir())
    for run in [second.left, lambda: late.open(arrays)]:
        with pytest.raises(FileError, match=r"cuop-part is being written by another run"):
            run()
    second.leave()
    late.leave()
    assert sorted(tmp_path.iterdir()) == mine
    first.finish(library.zeros(4))
    assert list(tmp_path.iterdir()) == [out]
    assert late.left() is None
    late.open(arrays)  # nobody else is there any more
    late.leave()


def test_a_journal_without_room_is_said_once_and_ends_nothing(tmp_path, monkeypatch, capfd):
    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "out.npy"
    log = PartialOutput(out, lambda: {}, True)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "start", no_room)
        with pytest.raises(FileError, match=r"cuop-tiles cannot be written: No space left"):
            sweep(tmp_path, log)
        log.leave()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Journal, "add", no_room)
    log = PartialOutput(out, lambda: {}, True)
    result, _ = sweep(tmp_path, log)
    log.finish(result)
    assert list(tmp_path.iterdir()) == [out]
    said = capfd.readouterr().err
    assert said.count("cannot be written (No space left on device)") == 1
    assert "Traceback" not in said


def test_what_another_call_has_left_goes_with_its_output(tmp_path):
    out = tmp_path / "out.npy"
    log = CutOff(out, {"a": 1}, 3)
    with pytest.raises(CutOffError):
        sweep(tmp_path, log)
    log.leave()
    in_memory = PartialOutput(out, lambda: {"a": 2}, True)
    assert in_memory.left() is None
    in_memory.finish(library.ones(3))  # of a call that needs no arrays
    assert list(tmp_path.iterdir()) == [out]


def test_an_output_that_is_replaced_passes_its_permissions_on(tmp_path, files):
    out = tmp_path / "out.npy"
    out.touch(mode=0o640)
    result_of(tmp_path, "transpose", files[0])
    assert out.stat().st_mode & 0o777 == 0o640


def test_no_more_arrays_take_turns_than_have_names(tmp_path):
    log = PartialOutput(tmp_path / "out.npy", lambda: {}, True)
    assert log.left() is None
    with pytest.raises(ValueError, match="5 arrays, of which 4 take turns at most"):
        log.open([((3,), "float64")] * 5)
    log.open([((3,), "float64")] * 4)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        ".out.npy.cuop-part", ".out.npy.cuop-pass", ".out.npy.cuop-pass2", ".out.npy.cuop-pass3",
    ]  # fmt: skip
    log.leave()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_done_nothing_leaves_nothing(tmp_path):
    log = CutOff(tmp_path / "out.npy", {}, 0)
    with pytest.raises(CutOffError):
        sweep(tmp_path, log)
    log.leave()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--resume"], ["--ranks", "3"]], ids=" ".join)
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_a_signal_ends_a_run_cleanly(tmp_path, number, code, more):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.npy", RANDOM.normal(size=(1200, 1200)))
    command = [sys.executable, "-m", "cuop.cli.main", "run", "matmul", tmp_path / "a.npy",
               tmp_path / "b.npy", "-o", tmp_path / "out.npy", "--memory-limit", "20K", *more]  # fmt: skip
    running = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, CUOP_DEVICE="cpu"),  # GPUs would be done before it comes
    )  # fmt: skip
    part = tmp_path / ".out.npy.cuop-part"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.poll() is None:
        if lines_of(tmp_path) > 3 or ("--resume" not in more and part.exists()):
            break
        time.sleep(0.002)
    time.sleep(0.1)
    running.send_signal(number)
    _, words = running.communicate(timeout=60)
    assert running.returncode == code, words
    assert words.startswith("cuop: run: cut off; ") and words.count("\n") == 1
    if "--resume" in more:
        assert "is kept: the same command goes on with it" in words and part.exists()
    else:
        assert "--resume" in words
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy", "b.npy"]
