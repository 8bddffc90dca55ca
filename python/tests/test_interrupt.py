"""Ctrl-C ends what computes for hours within a second, and what comes after is as before."""

import random
import signal

import pytest
from default_device import DEVICES
from fresh_process import output_of, run_with

import cuop

_PREPARE = """
import os, signal, threading, time
import numpy as np
import cuop
from distributed_gpu.algorithms import convolution, matrix_ops, stencil
cuop.set_device("cpu")
endless = cuop.broadcast_to(cuop.ones((1, 1)), (2**20, 2**20))
grid, cross = cuop.ones((64, 64)), cuop.ones((3, 3))
long = cuop.broadcast_to(cuop.ones((1, 1)), (2**17, 2**17))
large = cuop.ones((8000, 8000), dtype="float64")
wide = cuop.random((2000, 2000))
integers = cuop.ones((4000, 4000), dtype="int64")

def lattice(side):
    # Tensors in a square, each with an index for each of its neighbours.
    places = [(i, j) for i in range(side) for j in range(side)]
    bonds = [(a, b) for a in places for b in places if a < b and abs(a[0]-b[0]) + abs(a[1]-b[1]) == 1]
    terms = ["".join(chr(0x4E00 + n) for n, bond in enumerate(bonds) if a in bond) for a in places]
    return ",".join(terms) + "->", [(2,) * len(term) for term in terms]

def half(shape):
    return cuop.ones(shape, dtype="float16")

def put(x, index):
    x[index] = 2.0

def cluster(ranks):
    from distributed_gpu.cost_model import ClusterConfig, CostModel
    return CostModel(ClusterConfig(num_nodes=ranks))

def tiled(work):
    from distributed_gpu.auto_executor import AutoExecutor
    return work(AutoExecutor(verbose=False, max_per_gpu_gb=0.25))

def shared(function, *arrays, **options):
    from distributed_gpu import MPIManager
    def work(comm):
        mine = [array if comm.rank == 0 else None for array in arrays]
        function(*mine, MPIManager(), None, **options)
    cuop.dist.run_ranks(work, 2)

def repeat(work):
    while True:
        work()

def layer():
    return cuop.ones((32, 256, 64, 64)), cuop.ones((512, 256, 7, 7))

def sweeps(comm, method="jacobi", grid=grid):
    from distributed_gpu import MPIManager
    given = grid if comm.rank == 0 else None
    endless = {"iterations": 2**31, "tol": 0.0}
    stencil.distributed_jacobi_2d(given, given, MPIManager(), None, method=method, **endless)

def interrupt():
    global asked
    asked = time.monotonic()
    os.kill(os.getpid(), SIGNAL)

def watched(work):
    # Prints how long it takes, and the longest time in which nobody looks for signals.
    looked = []
    signal.signal(signal.SIGALRM, lambda number, frame: looked.append(time.monotonic()))
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
    result = work()  # to be let go behind the end
    signal.setitimer(signal.ITIMER_REAL, 0)
    end = time.monotonic()
    marks = [begin, *(mark for mark in looked if mark < end), end]
    print(end - begin, max(b - a for a, b in zip(marks, marks[1:])))

def bare(work, error=KeyboardInterrupt, delay=0.3):
    try:
        threading.Timer(delay, interrupt).start()
        work()
    except error:
        print("heard after", time.monotonic() - asked)
    else:
        print("not heard")
    assert cuop.sum(cuop.ones(1000)).item() == 1000

SIGNAL = signal.SIGINT
signal.signal(SIGNAL, signal.default_int_handler)  # a shell may have it ignored
"""

# What is to be interrupted, behind what it needs.
ENDLESS = {
    "sum": "cuop.sum(endless)",
    "axis": "cuop.mean(endless, axis=0)",
    "exact": "cuop.sum(endless, mode='exact')",
    "fused": "cuop.fuse(lambda x: cuop.sum(cuop.exp(x) * 2.0))(long)",
    "stencil": "cuop.stencil2d(grid, cross, iterations=10**9)",
    "jacobi": "cuop.jacobi2d(grid, grid, iterations=2**31, tol=0.0)",
    "matmul": "cuop.matmul(large, large)",
    "integers": "cuop.matmul(integers, integers)",
    "matrix and vector": "repeat(lambda: cuop.matmul(large, large[0]))",
    "long line": "x = cuop.ones(2**25, dtype='complex128'); cuop.fft.fft(x)",
    "long prime line": "x = cuop.ones(2**23 + 9, dtype='complex128'); cuop.fft.fft(x)",
    "lines across": "x = cuop.ones((2**22, 8), dtype='complex64'); cuop.fft.fft(x, axis=0)",
    "lines": "repeat(lambda: cuop.fft.fft2(large))",
    "conv": "x = layer(); cuop.conv2d(*x)",
    "conv gemm": "x = layer(); cuop.conv2d(*x, variant='gemm')",
    "conv direct": "x = layer(); cuop.conv2d(*x, variant='direct')",
    "one row": "cuop.conv1d(cuop.ones((1, 1, 2**22)), cuop.ones((1, 1, 2**18)), variant='direct')",
    "benchmark": "cuop.benchmark(cuop.add, grid, grid, num_runs=10**9)",
    "ranks": "cuop.dist.run_ranks(lambda comm: cuop.sum(endless), 2)",
    "sweeps of ranks": "cuop.dist.run_ranks(sweeps, 2)",
    "passes of ranks": "cuop.dist.run_ranks(lambda comm: sweeps(comm, 'rb-sor'), 2)",
    "conjugate gradients": "cuop.dist.run_ranks(lambda comm: sweeps(comm, 'cg', wide), 2)",
    "multigrid": "x = cuop.random((6000, 6000)); "  # it ends where rounding leaves nothing to do
    "cuop.dist.run_ranks(lambda comm: sweeps(comm, 'multigrid', x), 2)",
    "pool": "x = cuop.ones((1, 1, 2**13, 2**13)); cuop.avg_pool2d(x, 2001, 1)",
    "pool of a row": "x = cuop.ones((1, 1, 2**24)); cuop.max_pool1d(x, 2**17, 1)",
    "sparse": "y = cuop.ones((2**13, 2**13)); x = cuop.to_sparse(y[:2**11]); x @ y",
    "einsum in slices": "x = [large] * 3; cuop.einsum('ij,jk,kl->il', *x, memory_limit=2**31)",
    "strategy": "x = cluster(2**15); x.find_optimal_strategy(8192, 8192, 8192)",
    "tiles": "x = large.numpy(); tiled(lambda auto: auto.matmul(x, x))",
    "tiles of lines": "x = large.numpy(); tiled(lambda auto: repeat(lambda: auto.fft2d(x)))",
    "distributed product": "x = large.numpy(); shared(matrix_ops.distributed_matmul, x, x)",
    "distributed conv": "x = layer(); shared(convolution.distributed_conv2d, *map(np.array, x))",
    "distributed stencil": "shared(stencil.distributed_stencil_2d, np.array(grid), iterations=2**30)",
}

# Calls that end, each of whose parts somebody could have to wait for.
WATCHED = {
    "random": "cuop.random((2**27,))",
    "uniform": "cuop.uniform((2**28,), 0, 1)",
    "permutation": "cuop.permutation(2**24)",
    "sort": "x = cuop.random((2**25,), 'float64'); cuop.sort(x)",
    "argsort": "x = cuop.random((2**25,), 'float64'); cuop.argsort(x)",
    "unique": "x = cuop.randint(0, 2**30, (2**23,)); cuop.unique(x)",
    "sums": "x = cuop.ones(2**27); cuop.cumsum(x, 0)",
    "sums of columns": "x = cuop.ones((2**19, 256)); cuop.cumsum(x, 0)",
    "softmax": "x = half((1, 2**27)); cuop.softmax(x)",
    "layer norm": "x, g = half((1, 2**27)), half(2**27); cuop.layer_norm(x, g)",
    "global pool": "x = cuop.ones((1, 1, 2**14, 2**14)); cuop.global_avg_pool2d(x)",
    "cast": "x = cuop.ones(2**27); x.to('float64')",
    "elements": "x = cuop.ones(2**26); i = cuop.randint(0, 2**26, (2**26,)); x[i]",
    "set elements": "x = cuop.ones(2**26); i = cuop.randint(0, 2**26, (2**26,)); put(x, i)",
    "mask": "x = cuop.ones(2**27); x[x > 0]",
    "list": "x = [1.5] * 2**25; cuop.tensor(x)",
    "lists": "x = [[1.5] * 2**20] * 2**5; cuop.tensor(x)",
    "order of einsum": "e, shapes = lattice(16); cuop.einsum_path(e, *shapes, shapes=True)",
    "to list": "x = cuop.ones((2, 2**24)); x.tolist()",
}


def run(program, **variables):
    return output_of(_PREPARE + program, **variables)


def assert_heard(said):
    assert said.startswith("heard after")
    assert float(said.split()[-1]) < 3  # 1 s is promised; other processes may take the processor


def interrupted(name, delay):
    *before, call = ENDLESS[name].split("; ")
    return run("\n".join([*before, f"bare(lambda: {call}, delay={delay})"]))


@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_is_heard(name):
    assert_heard(interrupted(name, 0.3))


@pytest.mark.parametrize("seed", range(8))
def test_ctrl_c_is_heard_while_work_begins(seed):
    """Before ranks have met, devices are made ready and loops run."""
    chance = random.Random(seed)
    delay = 0.2 * chance.random() ** 4  # half of them within 13 ms
    assert_heard(interrupted(chance.choice(list(ENDLESS)), delay))


@pytest.mark.skipif(
    not any(row.name == "NVRTC" and row.is_found for row in cuop.system_info()),
    reason="needs NVRTC",
)
def test_ctrl_c_ends_the_wait_for_compilers(tmp_path):
    program = "bare(lambda: cuop.kernel_cache_warm(arch='sm_80'))"
    assert_heard(run(program, CUOP_CACHE_DIR=str(tmp_path)))  # where no kernel is yet


@pytest.mark.parametrize("name", WATCHED)
def test_somebody_looks_all_the_time(name):
    *before, call = WATCHED[name].split("; ")
    said = output_of("\n".join([_PREPARE, *before, f"watched(lambda: {call})"]), CUOP_THREADS="1")
    seconds, longest = map(float, said.split())
    assert longest < max(0.5, seconds / 3), f"of {seconds} s"


def test_other_signals_raise_what_their_handlers_raise():
    said = run(
        "class Late(Exception): pass\n"
        "def late(number, frame): raise Late\n"
        "SIGNAL = signal.SIGALRM\n"
        "signal.signal(SIGNAL, late)\n"
        "bare(lambda: cuop.sum(endless), Late)"
    )
    assert said.startswith("heard after")


def test_a_handler_that_returns_ends_nothing():
    said = run(
        "heard = []\n"
        "signal.signal(SIGNAL, lambda number, frame: heard.append(number))\n"
        "wide = cuop.broadcast_to(cuop.ones(1), (2**33,))\n"
        "threading.Timer(0.3, interrupt).start()\n"
        "print(cuop.sum(wide).item() == 2.0**33, heard)",
        CUOP_THREADS="2",  # many would be done before it comes
    )
    assert said == f"True [{int(signal.SIGINT)}]\n"


def test_an_interrupted_value_says_so():
    said = run(
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "try:\n"
        "    with cuop.fused():\n"
        "        y = cuop.sum(cuop.exp(long))\n"
        "        try:\n"
        "            signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "            y.item()\n"
        "        except KeyboardInterrupt:\n"
        "            print('heard')\n"
        "except cuop.ExecutionError as error:\n"
        "    print(error)\n"
        "try:\n"
        "    y.item()\n"
        "except cuop.ExecutionError as error:\n"
        "    print(error)\n"
    )
    assert said == "heard\n" + "fused: the computation of this value was interrupted\n" * 2


def test_repeated_elements_are_read_once():
    said = run(
        "print(cuop.all(endless).item(), cuop.any(endless).item(), cuop.max(endless).item(),"
        " cuop.min(endless, axis=1).shape, int(cuop.argmax(endless, axis=1)[5]))"
    )
    assert said == "True True 1.0 (1048576,) 0\n"


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit(3)"])
@pytest.mark.parametrize("where", ["on_progress", "on_tile"])
def test_what_ends_a_program_goes_through_callbacks(where, raised):
    """As a handler of a signal raises it that comes while Python runs a function of the user's."""
    program = (
        "import numpy as np\n"
        "from cuop import dist, executor\n"
        "calls = []\n"
        "def called(*_):\n"
        "    calls.append(1)\n"
        f"    raise {raised}\n"
        "def wrong(*_): raise ValueError('mine')\n"
        "x = np.ones((300, 300))\n"
        "def work(function):\n"
        f"    options = {{'memory_limit': 20000, '{where}': function}}\n"
        "    executor.run(dist.world(), executor.matmul(), [x, x], **options)\n"
        "try:\n"
        "    work(called)\n"
        f"except {raised.partition('(')[0]}:\n"
        "    print('ended', len(calls))\n"
        "work(wrong)\n"
        "print('went on')\n"
    )
    done = run_with({}, program)
    # Each device's thread may be in it.
    assert done.stdout in [f"ended {n}\nwent on\n" for n in range(1, DEVICES + 1)], done.stderr
    assert "Interrupt" not in done.stderr and "ValueError: mine" in done.stderr
