"""Small address spaces, files that are cut off, and numbers that are far too large."""

import os
import sys
import time

import numpy as np
import pytest
from fresh_process import run, run_with

import cuop
import cuop.dist
from cuop import executor, npy
from cuop._arguments import MOST_RANKS
from distributed_gpu.cost_model import ClusterConfig

pytestmark = pytest.mark.cpu

LARGE = [2**40, 2**62, 2**63 - 1, -1, -(2**63)]


@pytest.mark.parametrize("gibibytes", [1, 2, 4])
def test_import_and_work_in_a_small_address_space(gibibytes):
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({gibibytes} << 30,) * 2)
import cuop
x = cuop.ones((500, 500))
assert (x @ x).sum().item() == 500.0**3
parts = [cuop.ones((1000, 1000)) for _ in range(20)]
assert sum(part.sum().item() for part in parts) == 2e7
try:
    cuop.ones(({gibibytes} << 30,), dtype="uint8")
except MemoryError as error:
    assert "cuop" in type(error).__module__ and "reserved" in str(error), error
else:
    raise AssertionError
print(cuop.ones(3).sum().item())
"""
    done = run_with({"OPENBLAS_NUM_THREADS": "2"}, code)
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr


@pytest.mark.parametrize("mebibytes", [512, 800, 1024])
def test_products_of_many_threads_in_a_small_address_space_end(mebibytes):
    """OpenBLAS maps 128 MiB a thread, and hung where the system had them no longer."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({mebibytes} << 20,) * 2)
import cuop
x = cuop.ones((500, 500))
for _ in range(3):
    try:
        assert (x @ x).sum().item() == 500.0**3
    except cuop.MemoryError as error:
        assert "BLAS: the library takes 128 MiB of addresses" in str(error), error
print("ended")
"""
    # NumPy's own library takes a buffer a thread when it is imported.
    done = run_with({"CUOP_THREADS": "16", "OPENBLAS_NUM_THREADS": "1"}, code)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_memory_goes_on_when_addresses_become_few():
    """A limit that comes later: what one reservation cannot have, smaller ones can."""
    code = """
import resource, cuop
cuop.ones((1000, 1000))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
x = [cuop.ones((64 << 20,), dtype="uint8") for _ in range(4)]
print(sum(int(part[-1].item()) for part in x))
"""
    done = run_with({}, code)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def big_file(path):
    np.save(path, np.ones((512, 1024)))
    return path


def cut_off(path):
    os.truncate(path, 4096 * 10)


def test_a_loaded_file_that_is_cut_off_is_an_error_of_every_later_call(tmp_path):
    x = npy.load(big_file(tmp_path / "x.npy"))
    view = x[5:]
    assert x.sum().item() == 512 * 1024
    cut_off(tmp_path / "x.npy")
    for call in (
        lambda: x.sum(),
        lambda: view + 1,
        lambda: cuop.stack([view, view]),
        lambda: cuop.sum(x=view),
        lambda: view.clone(),
        lambda: x[0, 0],
    ):
        with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
            call()
    x = view = None
    assert cuop.ones(3).sum().item() == 3


def test_a_fused_block_that_reads_a_file_which_is_cut_off(tmp_path):
    x = npy.load(big_file(tmp_path / "x.npy"))
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"), cuop.fused():
        y = x * 2
        cut_off(tmp_path / "x.npy")
        (y + 1).sum().item()
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
        cuop.sum(x)
    del x, y
    assert (cuop.ones(3) + 1).tolist() == [2, 2, 2]


def test_calls_after_a_loss_are_as_before(tmp_path):
    """Fused blocks stay whole, and arguments that hold themselves are looked through all the same."""
    x = npy.load(big_file(tmp_path / "x.npy"))
    cut_off(tmp_path / "x.npy")
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
        x.sum()
    del x
    z = cuop.ones((10, 10))
    with cuop.profile() as recording, cuop.fused():
        y = cuop.exp(z) * 2
    assert ("fused", 4 * 200) in {(event["name"], event["bytes"]) for event in recording.events}
    assert y.shape == (10, 10)
    loop = []
    loop.append(loop)
    assert cuop.dist.world().broadcast(loop) is loop


def test_what_numpy_reads_of_it_is_told_by_the_next_call(tmp_path):
    path = big_file(tmp_path / "x.npy")
    array = npy.open_npy(path)
    assert not array.flags.writeable and array.sum() == array.size
    npy.check_whole(array, path)
    cut_off(path)
    assert array.sum() < array.size  # NumPy sees zeros
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
        cuop.ones(3) + 1
    assert (cuop.ones(3) + 1).tolist() == [2, 2, 2]
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
        npy.check_whole(array, path)


def test_a_file_that_loses_its_last_bytes_only(tmp_path):
    path = big_file(tmp_path / "x.npy")
    array = npy.open_npy(path)
    os.truncate(path, os.path.getsize(path) - 8)  # no page is lost, and no signal comes
    with pytest.raises(cuop.FileError, match=r"x.npy was cut off"):
        npy.check_whole(array, path)


def test_small_files_are_not_mapped(tmp_path):
    np.save(tmp_path / "s.npy", np.arange(1000.0))
    x = npy.load(tmp_path / "s.npy")
    os.truncate(tmp_path / "s.npy", 0)
    assert x.sum().item() == 999 * 500
    with pytest.raises(cuop.ExecutionError, match="read-only"):
        x.fill(0)


def test_other_bus_errors_end_the_process_as_before(tmp_path):
    """A mapping that is not ours, beside one that is."""
    big_file(tmp_path / "x.npy")
    code = f"""
import mmap, os
from cuop import npy
x = npy.load({str(tmp_path / "x.npy")!r})
with open({str(tmp_path / "other")!r}, "w+b") as file:
    file.truncate(1 << 16)
    mapped = mmap.mmap(file.fileno(), 1 << 16)
    file.truncate(0)
    print(x.sum().item(), flush=True)
    mapped[5000]
"""
    done = run_with({}, code)
    assert done.stdout == f"{512 * 1024.0}\n" and done.returncode == -7  # SIGBUS


def test_a_handler_that_hands_bus_errors_back_ends_the_process_once(tmp_path):
    """One that came between two mappings of ours calls our handler, which had called it."""
    for name in ("x", "y"):
        big_file(tmp_path / f"{name}.npy")
    code = f"""
import faulthandler, mmap
from cuop import npy
x = npy.load({str(tmp_path / "x.npy")!r})
faulthandler.enable()
y = npy.load({str(tmp_path / "y.npy")!r})
with open({str(tmp_path / "other")!r}, "w+b") as file:
    file.truncate(1 << 16)
    mapped = mmap.mmap(file.fileno(), 1 << 16)
    file.truncate(0)
    mapped[5000]
"""
    done = run_with({}, code)
    assert done.returncode == -7 and "Fatal Python error: Bus error" in done.stderr  # SIGBUS


def test_cuop_run_on_a_file_that_is_cut_off_meanwhile(tmp_path):
    path, output = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(path, np.ones((4 << 20,)))
    code = f"""
import dataclasses, os, sys
from cuop.cli import operations
from cuop.cli.main import main
plain = operations.OPERATIONS["sum"]

def cut_and_run(job):
    os.truncate({str(path)!r}, 4096 * 10)
    return plain.run(job)

operations.OPERATIONS["sum"] = dataclasses.replace(plain, run=cut_and_run)
sys.argv = ["cuop", "run", "sum", {str(path)!r}, "-o", {str(output)!r}]
main()
"""
    done = run_with({}, code)
    assert done.returncode == 1 and "x.npy was cut off" in done.stderr, done.stderr
    assert not output.exists()


CALLS = {
    "tensordot": lambda n: cuop.tensordot(cuop.ones((2, 2)), cuop.ones((2, 2)), axes=n),
    "tile": lambda n: cuop.tile(cuop.ones(2), n),
    "tiles": lambda n: cuop.tile(cuop.ones((0, 2)), (n, n)),
    "repeat": lambda n: cuop.repeat(cuop.ones(2), n),
    "repeat nothing": lambda n: cuop.repeat(cuop.ones(0), n),
    "pad": lambda n: cuop.pad(cuop.ones(2), n),
    "wrap": lambda n: cuop.pad(cuop.ones(2), n, mode="wrap"),
    "roll": lambda n: cuop.roll(cuop.ones(3), n),
    "roll axis": lambda n: cuop.roll(cuop.ones(3), 1, axis=n),
    "flip": lambda n: cuop.flip(cuop.ones(3), axis=n),
    "squeeze": lambda n: cuop.squeeze(cuop.ones((1, 1)), axis=n),
    "expand": lambda n: cuop.expand_dims(cuop.ones(3), n),
    "linspace": lambda n: cuop.linspace(0, 1, n),
    "logspace": lambda n: cuop.logspace(0, 1, n),
    "arange": lambda n: cuop.arange(n),
    "arange down": lambda n: cuop.arange(0, n, -1),
    "eye": lambda n: cuop.eye(n),
    "eye diagonal": lambda n: cuop.eye(3, k=n),
    "zeros": lambda n: cuop.zeros(n),
    "full": lambda n: cuop.full((n, n), 1),
    "empty of nothing": lambda n: cuop.empty((0, n, n)),
    "broadcast": lambda n: cuop.broadcast_to(cuop.ones(1), (n, n)),
    "permutation": lambda n: cuop.permutation(n),
    "random": lambda n: cuop.random((n, 3)),
    "randint": lambda n: cuop.randint(0, n, (3,)),
    "window": lambda n: cuop.view(cuop.ones(3), (1,), offset=n),
    "window shape": lambda n: cuop.view(cuop.ones(3), (n,), offset=1),
    "reshape": lambda n: cuop.reshape(cuop.ones(3), (n, n)),
    "flatten": lambda n: cuop.flatten(cuop.ones((2, 2)), n, n),
    "sum": lambda n: cuop.sum(cuop.ones(3), axis=n),
    "sums": lambda n: cuop.sum(cuop.ones(3), axis=(n, n)),
    "take": lambda n: cuop.take(cuop.ones(3), n),
    "index": lambda n: cuop.ones(3)[n],
    "slice": lambda n: cuop.ones(3)[::n],
    "slices": lambda n: cuop.ones(3)[n : n - 1 : n],
    "fft": lambda n: cuop.fft.fft(cuop.ones(3), n),
    "fftn": lambda n: cuop.fft.fftn(cuop.ones((3, 3)), (n, n)),
    "irfft": lambda n: cuop.fft.irfft(cuop.ones(3), n),
    "fftfreq": lambda n: cuop.fft.fftfreq(n),
    "conv stride": lambda n: cuop.conv2d(
        cuop.ones((1, 1, 3, 3)), cuop.ones((1, 1, 3, 3)), stride=n
    ),
    "conv padding": lambda n: cuop.conv2d(
        cuop.ones((1, 1, 3, 3)), cuop.ones((1, 1, 3, 3)), padding=n
    ),
    "conv dilation": lambda n: cuop.conv2d(
        cuop.ones((1, 1, 3, 3)), cuop.ones((1, 1, 3, 3)), dilation=n
    ),
    "conv groups": lambda n: cuop.conv2d(
        cuop.ones((1, 1, 3, 3)), cuop.ones((1, 1, 3, 3)), groups=n
    ),
    "pool": lambda n: cuop.max_pool2d(cuop.ones((1, 1, 3, 3)), n),
    "pool stride": lambda n: cuop.avg_pool2d(cuop.ones((1, 1, 3, 3)), 2, stride=n),
    "pool padding": lambda n: cuop.max_pool2d(cuop.ones((1, 1, 3, 3)), 2, padding=n),
    "softmax": lambda n: cuop.softmax(cuop.ones(3), axis=n),
    "sort": lambda n: cuop.sort(cuop.ones(3), axis=n),
    "stack": lambda n: cuop.stack([cuop.ones(3)], axis=n),
    "moveaxis": lambda n: cuop.moveaxis(cuop.ones((2, 2)), n, 0),
    "mesh": lambda n: cuop.dist.Mesh((n,), ("r",)).shape,
    "mesh line": lambda n: cuop.dist.Mesh.line(n),
    "grid": lambda n: cuop.dist.compute_2d_grid(n),
    "ranks": lambda n: cuop.dist.run_ranks(lambda comm: None, n),
    "benchmark": lambda n: cuop.benchmark(int, num_runs=n, warmup_runs=0) if n < 0 else None,
    "norm": lambda n: cuop.norm(cuop.ones(3), ord=n),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_size_a_loop_or_memory(name):
    """Each call ends at once, with a result or an error of ours."""
    for number in LARGE:
        begin = time.monotonic()
        try:
            result = CALLS[name](number)
        except cuop.Error:
            pass
        else:
            assert not isinstance(result, cuop.Tensor) or result.nbytes >= 0
        assert time.monotonic() - begin < 20


COUNTS = {
    "run_ranks: {} ranks": lambda n: cuop.dist.run_ranks(lambda comm: None, n),
    "compute_2d_grid: {} ranks": cuop.dist.compute_2d_grid,
    "Mesh: shape ({})": cuop.dist.Mesh.line,
    "plan_ranks: {} ranks": lambda n: executor.plan_ranks(
        executor.sum(), [(4,)], [cuop.float32], ranks=n
    ),
    "TileMachine: {} devices": lambda n: executor.TileMachine.of(n, memory=1 << 20),
    "ClusterConfig: num_nodes is {}": ClusterConfig,
}


@pytest.mark.parametrize("who", COUNTS)
@pytest.mark.parametrize("count", [MOST_RANKS + 1, 2**31 - 1, 2**31, 2**62])
def test_counts_of_ranks_that_nothing_is_kept_for(who, count):
    with pytest.raises(cuop.Error) as caught:
        COUNTS[who](count)
    text = str(caught.value)
    assert text.startswith(who.format(count)) or text.startswith(who.format(f"{count},"))
    assert str(MOST_RANKS) in text


def test_a_mesh_has_as_many_ranks_as_there_can_be():
    assert cuop.dist.Mesh.line(MOST_RANKS).size == MOST_RANKS
    assert cuop.dist.compute_2d_grid(MOST_RANKS) == (128, 256)
    with pytest.raises(cuop.ShapeError, match=r"\(128, 256\) and 1 idle ranks .* 32768 ranks"):
        cuop.dist.Mesh((128, 256), ("r", "c"), idle=1)
    # No integer is too long to be named.
    with pytest.raises(
        cuop.ExecutionError, match="num_nodes is a number of 99998 bits; it must be"
    ):
        ClusterConfig(1 << 99997)


@pytest.mark.parametrize("command", [["plan", "sum", "4"], ["run", "sum", "x.npy"], ["demo"]])
def test_the_command_line_names_the_option(command):
    done = run([sys.executable, "-m", "cuop", *command, "--ranks", str(MOST_RANKS + 1)])
    assert done.returncode != 0
    assert "--ranks" in done.stderr and str(MOST_RANKS) in done.stderr


def test_work_goes_on_where_no_thread_can_be_started():
    """Stacks that no address space holds: the calling thread does all of it."""
    code = """
import os, resource, threading
import numpy
import cuop
cuop.ones(1)  # too short to start threads, whose memory would be taken off what is left
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
before = len(os.listdir("/proc/self/task"))
x = cuop.ones((2000, 2000))
print((x * 2 + 1).sum().item(), len(os.listdir("/proc/self/task")) - before)
"""
    # The stack of a thread is as large as the limit of the main one, which is read at its start.
    shell = f"ulimit -s 1000000; exec {sys.executable} -c '{code}'"
    done = run(["bash", "-c", shell], {"CUOP_DEVICE": "cpu"})
    assert (done.returncode, done.stdout) == (0, "12000000.0 0\n"), done.stderr
