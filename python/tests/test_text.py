"""Text that UTF-8 has no bytes for: lone surrogates, alone and in the names of files."""

import os
import sys

import numpy as np
import pytest
from fresh_process import run_with

import cuop
from cuop import npy

pytestmark = pytest.mark.cpu

# An escaped byte, as os.fsdecode makes it, and a surrogate that stands for nothing.
ESCAPED, LONE = "\udc80", "\ud800"
TEXTS = [ESCAPED, LONE, f"x{ESCAPED}{LONE}", "\udfff" * 50]


def tensor():
    return cuop.ones((3, 4))


CALLS = {
    "dtype": lambda text: cuop.tensor([1], dtype=text),
    "device": lambda text: cuop.zeros(3, device=text),
    "method": lambda text: tensor().to(text),
    "pad mode": lambda text: cuop.pad(tensor(), 1, mode=text),
    "sum mode": lambda text: cuop.sum(tensor(), mode=text),
    "keyword": lambda text: cuop.sum(tensor(), **{text: 1}),
    "enum": lambda text: cuop.GemmFloat(transA=text),
    "config value": lambda text: cuop.JITConfig(kernel_type=text),
    "config name": lambda text: cuop.JITConfig(**{text: 1}),
    "config item": lambda text: cuop.JITConfig()[text],
    "fft norm": lambda text: cuop.fft.fft(tensor(), norm=text),
    "meshgrid": lambda text: cuop.meshgrid(tensor()[0], indexing=text),
    "boundary": lambda text: cuop.stencil2d(tensor(), boundary=text),
    "conv": lambda text: cuop.conv2d(
        cuop.ones((1, 1, 3, 3)), cuop.ones((1, 1, 3, 3)), variant=text
    ),
    "array": lambda text: cuop.tensor(np.array([text])),
    "list": lambda text: cuop.tensor([text]),
    "operand": lambda text: tensor() + [text],
    "index": lambda text: tensor()[text],
    "shape": lambda text: cuop.zeros(text),
    "device count": lambda text: cuop.set_default_device(text),
    "memory": lambda text: cuop.set_memory_limit(text),
    "generator": lambda text: cuop.random((3,), dtype=text),
    "reshape": lambda text: tensor().reshape(text),
    "kernel": lambda text: cuop.jit.Kernel(text, name=text),
    "save": lambda text: npy.save(text + "/x.npy", np.ones(3)),
    "load": lambda text: npy.load(text + "/x.npy"),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("call", CALLS)
def test_surrogates_are_complained_about_like_other_text(call, text):
    with pytest.raises(Exception) as caught:
        CALLS[call](text)
    assert "bad_cast" not in str(caught.value)
    assert not isinstance(caught.value, SystemError)


class Failing:
    """Raises an exception whose text holds surrogates wherever it is asked for anything."""

    def __init__(self, error):
        self.error = error

    def fail(self, *args, **kwargs):
        raise self.error

    __array__ = __index__ = __float__ = __len__ = __getitem__ = __call__ = fail


class Unprintable(Exception):
    def __str__(self):
        raise ValueError(ESCAPED)


@pytest.mark.parametrize("error", [ValueError(ESCAPED + LONE), TypeError(LONE), Unprintable()])
def test_exceptions_of_callbacks_travel_whatever_their_text(error):
    failing = Failing(error)
    for call in (
        lambda: cuop.dist.run_ranks(failing, 2),
        lambda: cuop.stack([failing, failing]),
        lambda: tensor() + failing,
        lambda: cuop.benchmark(failing),
        lambda: cuop.tensor(failing),
    ):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error
    for call in (lambda: cuop.zeros(failing), lambda: cuop.full(3, failing)):
        with pytest.raises(type(error)) as caught:
            call()
        if isinstance(error, TypeError):  # of no more than the kind of the object
            assert "Failing" in str(caught.value)
            assert caught.value.__cause__ is error
        else:
            assert caught.value is error


def test_a_failure_is_told_to_other_ranks():
    def work(comm):
        if comm.rank == 1:
            raise ValueError(f"bad {ESCAPED}{LONE}")
        try:
            comm.barrier()
        except cuop.CommunicationError as error:
            told.append(str(error))
            raise

    told = []
    with pytest.raises(ValueError, match="bad"):
        cuop.dist.run_ranks(work, 2)
    assert not told or "bad" in told[0]


def test_names_go_there_and_back():
    """As os.fsencode and os.fsdecode have it."""
    config = cuop.GlobalJITConfig(cache_dir=f"/tmp/{ESCAPED}")
    assert config.cache_dir == f"/tmp/{ESCAPED}" == config["cache_dir"]
    assert cuop.dist.Mesh((1,), (ESCAPED,)).names == [ESCAPED]


def test_files_whose_names_are_no_utf8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/f\x80\xff"
    os.mkdir(folder)
    path = os.fsdecode(folder + b"/\xfe.npy")
    for size in (10, 1 << 18):  # read, and mapped
        npy.save(path, cuop.full((size,), 2.0))
        assert os.path.exists(folder + b"/\xfe.npy")
        assert npy.load(path).sum().item() == 2.0 * size
    with pytest.raises(cuop.FileError, match="cannot be read"):
        npy.load(path + "x")
    cuop.memory_snapshot(os.fsdecode(folder + b"/s\xfd"))
    assert os.path.getsize(folder + b"/s\xfd.json") > 0
    operator = cuop.JITReluFloat()
    operator.set_persistent_cache_directory(os.fsdecode(folder + b"/c\xfc"))
    operator.enable_persistent_cache(True)  # which makes it
    assert os.path.isdir(folder + b"/c\xfc")


@pytest.mark.parametrize("use", [npy.load, cuop.memory_snapshot, lambda p: npy.save(p, [1.0])])
def test_names_that_cannot_be_encoded(use):
    with pytest.raises(cuop.FileError, match="cannot be encoded"):
        use(LONE)


@pytest.mark.parametrize("name", ["CUOP_THREADS", "CUOP_CPU_ISA", "CUOP_HOST_ALLOCATOR"])
def test_values_of_the_environment_that_are_no_text(name):
    done = run_with({name: os.fsdecode(b"\x80\xff")}, "import cuop; cuop.ones(3, device='cpu') + 1")
    assert done.returncode == 1
    assert name in done.stderr.splitlines()[-1] and r"\x80\xff" in done.stderr.splitlines()[-1]


def test_no_file_has_a_name_with_a_zero_character():
    operator = cuop.JITReluFloat()
    with pytest.raises(cuop.Error, match="zero byte"):
        operator.set_persistent_cache_directory("/tmp/a\0b")


def test_the_environment_and_the_command_line(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\x80")
    variables = {"CUOP_CACHE_DIR": folder, "CUOP_LIBRARY_PATH": folder, "PYTHONUTF8": "1"}
    code = f"""
import cuop, sys
rows = {{row["name"]: row["current"] for row in cuop._core.env_table()}}
assert rows["CUOP_CACHE_DIR"] == {ascii(folder)}, ascii(rows)
assert cuop._core.kernel_cache_info()["directory"].startswith({ascii(folder)})
sys.argv = ["cuop", "info"]
from cuop.cli.main import main
main()
"""
    done = run_with(variables, code)
    assert done.returncode == 0, done.stderr
    assert "BLAS" in done.stdout


def test_cuop_run_on_files_whose_names_are_no_utf8(tmp_path):
    import subprocess

    folder = os.fsencode(tmp_path)
    np.save(os.fsdecode(folder + b"/\x80.npy"), np.ones((3, 3)))
    done = subprocess.run(
        [sys.executable, "-m", "cuop.cli.main", "run", "matmul", folder + b"/\x80.npy"]
        + [folder + b"/\x80.npy", "-o", folder + b"/\x81.npy"],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(os.fsdecode(folder + b"/\x81.npy")), np.full((3, 3), 3.0))
