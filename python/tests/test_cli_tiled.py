"""`cuop run --memory-limit`: files larger than what a device may use."""

import subprocess
import sys

import numpy as np
import pytest
import safetensors_files
from test_cli import cuop, write

RANDOM = np.random.default_rng(5)


def operands(tmp_path):
    a = write(tmp_path / "a.npy", RANDOM.normal(size=(90, 170)))
    b = write(tmp_path / "b.npy", RANDOM.normal(size=(170, 60)))
    return a, b


@pytest.fixture
def files(tmp_path):
    return operands(tmp_path)


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
    line = RANDOM.normal(size=6000)
    long, half = write(tmp_path / "l.npy", line), write(tmp_path / "h.npy", line[:3601])
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
        (["ifft", a, "--axis", 0, "--norm", "ortho"], np.fft.ifft(x, axis=0, norm="ortho")),
        (["rfft", a], np.fft.rfft(x)),
        (["fft", long], np.fft.fft(line)),
        (["ifft", long], np.fft.ifft(line)),
        (["rfft", long], np.fft.rfft(line)),
        (["irfft", a], np.fft.irfft(x)),
        (["irfft", half], np.fft.irfft(line[:3601])),
        (["fft2d", a], np.fft.fft2(x)),
        (["transpose", a], x.T),
        (["conv2d", images, weight], whole["conv2d"]),
        (["stencil", a, "--iterations", 3], whole["stencil"]),
        (["jacobi", a, a], whole["jacobi"]),
    ]
    for arguments, expected in cases:
        result = result_of(tmp_path, *arguments, ranks=ranks, limit="40K")
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=str(arguments))


def test_lines_of_files_that_fit(tmp_path, files):
    x = np.load(files[0])
    for name, oracle in [("ifft", np.fft.ifft), ("rfft", np.fft.rfft), ("irfft", np.fft.irfft)]:
        done = cuop("run", name, files[0], "--axis", 0, "-o", tmp_path / "out.npy")
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), oracle(x, axis=0), atol=1e-12)


def test_what_cannot_be_run(tmp_path, files):
    a, b = files
    done = cuop("run", "matmul", a, b, "-o", tmp_path / "out.npy", "--memory-limit", "lots")
    assert done.returncode == 2
    assert "--memory-limit" in done.stderr
    for more in ([], ["--resume"]):
        done = cuop("run", "fft", a, "-o", tmp_path / "out.npy", "--memory-limit", "100", *more)
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
            "has no tensor 'c'; one is given as w.safetensors:NAME, there are 'layer:x'",
        ),
        (
            ["sum", weights],
            "holds tensors by name; one is given as w.safetensors:NAME, there are 'layer:x'",
        ),
        (["sum", tmp_path / "none.safetensors:a"], "cannot be read: No such file"),
        (["sum", tmp_path / "y.npy:a"], "cannot be read: No such file"),
    ]:
        for more in ([], limit):
            done = cuop("run", *arguments, "-o", tmp_path / "out.npy", *more)
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            assert words in done.stderr
    assert sorted(tmp_path.iterdir()) == before
