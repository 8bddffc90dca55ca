"""`cuop run --memory-limit`: files larger than what a device may use; runs that are cut off."""

import contextlib
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
import safetensors_files
from test_cli import cuop, write

RANDOM = np.random.default_rng(5)


@pytest.fixture
def files(tmp_path):
    a = write(tmp_path / "a.npy", RANDOM.normal(size=(90, 170)))
    b = write(tmp_path / "b.npy", RANDOM.normal(size=(170, 60)))
    return a, b


def result_of(tmp_path, *arguments, ranks=1, limit="16K", **options):
    done = cuop(
        "run", *arguments, "-o", tmp_path / "out.npy", "--memory-limit", limit, "--ranks", ranks,
        **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []
    return np.load(tmp_path / "out.npy")


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_operation_in_tiles(tmp_path, files, ranks):
    a, b = files
    x, y = np.load(a), np.load(b)
    images = write(tmp_path / "i.npy", RANDOM.normal(size=(3, 2, 12, 11)))
    weight = write(tmp_path / "w.npy", RANDOM.normal(size=(4, 2, 3, 3)))
    whole = {}
    for operation in (
        ["conv2d", images, weight],
        ["stencil", a, "--iterations", 3],
        ["jacobi", a, a],
    ):
        done = cuop("run", *operation, "-o", tmp_path / "whole.npy")
        assert done.returncode == 0, done.stderr
        whole[operation[0]] = np.load(tmp_path / "whole.npy")
    cases = [
        (["matmul", a, b], x @ y),
        (["sum", a, "--axis", 0], x.sum(0)),
        (["mean", a], x.mean()),
        (["fft", a], np.fft.fft(x)),
        (["fft2d", a], np.fft.fft2(x)),
        (["transpose", a], x.T),
        (["conv2d", images, weight], whole["conv2d"]),
        (["stencil", a, "--iterations", 3], whole["stencil"]),
        (["jacobi", a, a], whole["jacobi"]),
    ]
    for arguments, expected in cases:
        result = result_of(tmp_path, *arguments, ranks=ranks, limit="40K")
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=str(arguments))


def journal_of(folder):
    return folder / ".out.npy.cuop-tiles"


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
    running = subprocess.Popen([sys.executable, "-m", "cuop.cli.main", *map(str, arguments)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.poll() is None:
        if journal_of(tmp_path).exists() and len(journal_of(tmp_path).read_text().splitlines()) > 5:
            break
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    killed = running.wait() == -signal.SIGKILL
    assert (tmp_path / "out.npy").exists() != killed  # nothing incomplete has the name
    done = cuop(*arguments)
    assert done.returncode == 0, done.stderr
    assert ("going on behind" in done.stdout) == killed
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.load(a) @ np.load(b), rtol=1e-9)
    assert not journal_of(tmp_path).exists()


def test_tiles_that_are_there_are_not_made_again(tmp_path, files):
    a, _ = files
    expected = np.load(a).T
    status = os.stat(a)
    head = {
        "version": 1,
        "operation": "transpose dims 0, 1",
        "inputs": [[str(a), status.st_size, status.st_mtime_ns]],
        "shape": [170, 90],
        "dtype": "float64",
    }

    def left_behind(*boxes):
        """An earlier run has left a file of sevens, and says that these boxes are done."""
        np.save(tmp_path / "part.npy", np.full((170, 90), 7.0))
        os.rename(tmp_path / "part.npy", tmp_path / ".out.npy.cuop-part")
        lines = [json.dumps(head), *map(json.dumps, boxes), "[[0, 40], [17"]  # cut off
        journal_of(tmp_path).write_text("\n".join(lines))

    left_behind([[0, 0], [170, 25]], [[0, 25], [170, 90]])
    assert (result_of(tmp_path, "transpose", a, "--resume") == 7).all()
    left_behind([[0, 0], [170, 50]])
    result = result_of(tmp_path, "transpose", a, "--resume")
    np.testing.assert_array_equal(result[:, 50:], expected[:, 50:])
    assert ((result == 7) | (result == expected)).all()
    os.utime(a, ns=(1, 1))  # of other inputs they are no tiles
    left_behind([[0, 0], [170, 90]])
    np.testing.assert_array_equal(result_of(tmp_path, "transpose", a, "--resume"), expected)


def test_what_cannot_be_resumed(tmp_path, files):
    a, b = files
    for operation in ("fft2d", "stencil"):
        done = cuop("run", operation, a, "-o", tmp_path / "out.npy", "--resume")
        assert done.returncode == 1
        assert "--resume is for results made tile by tile" in done.stderr
    done = cuop("run", "matmul", a, b, "-o", tmp_path / "out.npy", "--memory-limit", "lots")
    assert done.returncode == 1
    assert "--memory-limit" in done.stderr
    done = cuop("run", "fft", a, "-o", tmp_path / "out.npy", "--memory-limit", "100")
    assert done.returncode == 1
    assert "the smallest tiles need" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_a_disk_without_room_is_said_before_any_work(tmp_path, files):
    a, b = files
    command = f"{sys.executable} -m cuop.cli.main run matmul {a} {b} -o {tmp_path}/out.npy"
    script = f"ulimit -f 20; trap '' XFSZ; exec {command} --memory-limit 16K"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"it needs {90 * 60 * 8 + 128} bytes" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_tensors_of_safetensors_files(tmp_path):
    x, y = RANDOM.normal(size=(90, 70)), RANDOM.normal(size=(70, 50)).astype("f4")
    halves = np.arange(35.0).reshape(7, 5)
    weights = safetensors_files.write(
        tmp_path / "w.safetensors",
        {"layer:x": x, "y": y, "b": safetensors_files.bfloat16(halves)},
    )
    write(tmp_path / "y.npy", y)
    for limit in ([], ["--memory-limit", "16K"], ["--memory-limit", "16K", "--resume"]):
        for other in (f"{weights}:y", tmp_path / "y.npy"):
            done = cuop(
                "run", "matmul", f"{weights}:layer:x", other, "-o", tmp_path / "o.npy",
                "--ranks", 2, *limit,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            np.testing.assert_allclose(np.load(tmp_path / "o.npy"), x @ y, rtol=1e-9, atol=1e-9)
    limit = ["--memory-limit", "16K"]
    done = cuop("run", "fft", f"{weights}:b", "-o", tmp_path / "f.npy", *limit)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(
        np.load(tmp_path / "f.npy"), np.fft.fft(halves), rtol=1e-5, atol=1e-5
    )
    before = sorted(tmp_path.iterdir())
    for arguments, words in [
        (["sum", f"{weights}:b"], "the result of sum is bfloat16, which a .npy file cannot hold"),
        (["stencil", f"{weights}:b"], "the result of stencil is bfloat16"),
        (
            ["sum", f"{weights}:c"],
            "has no tensor 'c' as in w.safetensors:NAME; there are 'layer:x'",
        ),
        (["sum", weights], "several tensors, of which one is named"),
        (["sum", tmp_path / "none.safetensors:a"], "cannot be read: No such file"),
        (["sum", tmp_path / "y.npy:a"], "cannot be read: No such file"),
    ]:
        for more in ([], limit):
            done = cuop("run", *arguments, "-o", tmp_path / "out.npy", *more)
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            assert words in done.stderr
    assert sorted(tmp_path.iterdir()) == before


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


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
@pytest.mark.parametrize("peers", ["1", "0"])  # without, results of the others come at the end
def test_killed_processes_are_gone_on_with(tmp_path, files, peers, monkeypatch):
    a, b = files
    monkeypatch.setenv("CUOP_PEER_MEMORY", peers)
    expected = np.load(a) @ np.load(b)
    arguments = ["run", "matmul", a, b, "-o", tmp_path / "out.npy", "--resume"]
    command = [sys.executable, "-m", "cuop.cli.main", *map(str, arguments), "--memory-limit", "2K"]
    running = subprocess.Popen(
        ["mpirun", "--oversubscribe", "-np", "3", *command],
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )

    def is_journal_long():
        journal = journal_of(tmp_path)
        return journal.exists() and len(journal.read_text().splitlines()) > 20

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.poll() is None and not is_journal_long():
        time.sleep(0.002)
    for pid in reversed(processes_below(running.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait()
    was_killed = not (tmp_path / "out.npy").exists()
    if was_killed:  # what the journal says is in the file
        boxes = [json.loads(line) for line in journal_of(tmp_path).read_text().splitlines()[1:-1]]
        part = np.load(tmp_path / ".out.npy.cuop-part")
        for (top, left), (bottom, right) in boxes:
            place = (slice(top, bottom), slice(left, right))
            np.testing.assert_allclose(part[place], expected[place], rtol=1e-9)
        makers = {low[0] // 30 for low, _ in boxes}  # of 90 rows each rank has a third
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
    status = os.stat(a)
    head = {
        "version": 1,
        "operation": "transpose dims 0, 1",
        "inputs": [[str(a), status.st_size, status.st_mtime_ns]],
        "shape": [170, 90],
        "dtype": "float64",
    }
    half = np.zeros((170, 90))
    half[:85] = expected[:85]
    np.save(tmp_path / "part.npy", half)
    os.rename(tmp_path / "part.npy", tmp_path / ".out.npy.cuop-part")
    lines = [head, [[0, 0], [85, 90]], [[0, 0], [85, 90]], [[0, 0], [85, 45]], [[0, 45], [85, 90]]]
    journal_of(tmp_path).write_text("\n".join(map(json.dumps, lines)))
    result = result_of(tmp_path, "transpose", a, "--resume", limit="1G")
    np.testing.assert_array_equal(result, expected)
