"""`cuop run` with files, shapes, dtypes and limits that cannot be, for every operation."""

import resource
import shutil
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from test_cli import cuop as in_a_process

pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from cuop.cli.main import _application  # noqa: E402
from cuop.cli.operations import OPERATIONS  # noqa: E402
from cuop.errors import Error  # noqa: E402

RANDOM = np.random.default_rng(3)
WAYS = ([], ["--memory-limit", "40K"], ["--memory-limit", "40K", "--resume"])
#: Shapes of arrays that fit, by operation.
SHAPES = {
    "matmul": [(40, 50), (50, 30)],
    "fft": [(9, 80)],
    "ifft": [(1200,)],
    "rfft": [(1200,)],
    "irfft": [(601,)],
    "fft2d": [(30, 40)],
    "sum": [(30, 40)],
    "mean": [(30, 40)],
    "conv2d": [(2, 3, 9, 8), (4, 3, 3, 3)],
    "stencil": [(30, 40), (3, 3)],
    "jacobi": [(30, 40), (30, 40)],
    "transpose": [(30, 40)],
}


def ran(*arguments):
    """The command within this process."""
    done = CliRunner().invoke(_application(), ["run", *map(str, arguments)])
    is_refused = isinstance(done.exception, Error)
    if not is_refused and not isinstance(done.exception, (SystemExit, type(None))):
        raise done.exception
    words = str(done.exception) if is_refused else done.stderr
    return SimpleNamespace(code=done.exit_code, words=words, stdout=done.stdout)


@pytest.fixture(params=SHAPES)
def call(request, tmp_path):
    """The name of an operation, files for it, and the file to write."""
    files = [tmp_path / f"x{i}.npy" for i in range(len(SHAPES[request.param]))]
    for file, shape in zip(files, SHAPES[request.param], strict=True):
        np.save(file, RANDOM.normal(size=shape))
    return request.param, files, tmp_path / "out.npy"


def names(out):
    return sorted(file.name for file in out.parent.iterdir())


def test_every_operation_is_looked_at():
    assert set(SHAPES) == set(OPERATIONS)


def test_files_that_are_missing_or_cut_off(call):
    name, files, out = call
    for file in files:
        content = file.read_bytes()
        for made, words in [
            (content[:-5], "is truncated"),
            (content[:20], "is not a .npy file"),
            (b"", "is not a .npy file"),
            (None, "cannot be read: No such file"),
        ]:
            file.unlink()
            if made is not None:
                file.write_bytes(made)
            before = names(out)
            for way in WAYS:
                done = ran(name, *files, "-o", out, *way)
                assert done.code == 1 and words in done.words and file.name in done.words
                assert names(out) == before
            file.write_bytes(content)


def test_shapes_that_do_not_fit(call):
    name, files, out = call
    wrong = {
        "matmul": (41, 30), "conv2d": (4, 2, 3, 3), "stencil": (2, 3), "jacobi": (30, 41), "fft2d": (30,),
        "transpose": (), "sum": (), "mean": (),
    }  # fmt: skip
    more = ["--axis", 3] if name in ("fft", "ifft", "rfft", "irfft", "sum", "mean") else []
    if name in wrong:
        np.save(files[-1], np.ones(wrong[name]))
    before = names(out)
    for way in WAYS:
        done = ran(name, *files, "-o", out, *more, *way)
        assert done.code == 1 and name.removesuffix("2d") in done.words.replace("axis", name)
        assert names(out) == before


def test_dtypes_without_a_kernel(call):
    name, files, out = call
    refused = {"rfft": "c16", "stencil": "i4", "jacobi": "f2"}
    np.save(files[0], np.ones(SHAPES[name][0], refused.get(name, "c16")))
    if name in ("jacobi", "conv2d"):
        np.save(files[1], np.ones(SHAPES[name][1], refused.get(name, "c16")))
    before = names(out)
    for way in WAYS:
        done = ran(name, *files, "-o", out, *way)
        if name in refused:
            assert done.code == 1 and "needed" in done.words
            assert names(out) == before
        else:
            assert done.code == 0, done.words
            out.unlink()
    np.save(files[0], np.full(SHAPES[name][0], "a"))  # no numbers
    for way in WAYS:
        done = ran(name, *files, "-o", out, *way)
        assert done.code == 1 and "holds <U1, allowed are bool, integer" in done.words
        assert names(out) == before


def test_a_limit_too_small_says_the_smallest_that_works(call):
    name, files, out = call
    before = names(out)
    for more in ([], ["--resume"]):
        done = ran(name, *files, "-o", out, "--memory-limit", 1, *more)
        assert done.code == 1 and "on a device, 1 may be used" in done.words
        smallest = int(done.words.split("need ")[1].split(" bytes")[0])
        done = ran(name, *files, "-o", out, "--memory-limit", smallest - 1, *more)
        assert done.code == 1 and f"need {smallest} bytes" in done.words
        assert names(out) == before
        done = ran(name, *files, "-o", out, "--memory-limit", smallest, *more)
        assert done.code == 0, done.words
        assert names(out) == sorted([*before, "out.npy"])
        result = np.load(out)
        out.unlink()
        assert ran(name, *files, "-o", out).code == 0
        np.testing.assert_allclose(result, np.load(out), rtol=1e-9, atol=1e-9)
        out.unlink()


def test_a_disk_without_room(call):
    name, files, out = call
    if name in ("sum", "mean"):
        pytest.skip("results of 8 bytes")
    before = names(out)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, limits[1]))
    try:
        done = [ran(name, *files, "-o", out, *way) for way in WAYS]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert names(out) == before
    assert ran(name, *files, "-o", out).code == 0
    size = out.stat().st_size
    for each, arrays in zip(done, (1, 1, 2), strict=True):
        assert each.code == 1, each.stdout
        assert f"no room for {out}: it needs " in each.words
        needed = int(each.words.split("it needs ")[1].split(" bytes")[0])
        # With what is between the passes: before real numbers a row of 40 more.
        assert size <= needed <= (arrays + 1) * size + 40 * 16 * (name == "irfft")


@pytest.mark.parametrize("more", [[], ["--resume"]])
@pytest.mark.parametrize("ranks", [None, 3])
def test_a_disk_without_room_is_said_at_once_and_once(tmp_path, ranks, more):
    if ranks and shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    for name, shape in [("a", (1 << 22, 1)), ("b", (1, 1 << 22))]:
        np.save(tmp_path / f"{name}.npy", np.ones(shape))
    done = in_a_process(
        "run", "matmul", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "out.npy",
        "--memory-limit", "4M", *more, ranks=ranks,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("no room for") == 1
    assert f"it needs {(1 << 47) + 128} bytes" in done.stderr
    assert names(tmp_path / "out.npy") == ["a.npy", "b.npy"]
