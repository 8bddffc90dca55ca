"""What is on or off takes True and False, Python's and NumPy's, and nothing else."""

import contextlib

import numpy as np
import pytest

import cuop
import genesis
from cuop import dist
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.algorithms.einsum import distributed_einsum
from distributed_gpu.algorithms.reduction import distributed_sum
from distributed_gpu.algorithms.stencil import distributed_jacobi_2d
from distributed_gpu.auto_executor import AutoExecutor, auto_compute
from distributed_gpu.cost_model import ClusterConfig
from distributed_gpu.pipeline_optimizer import PipelineConfig
from distributed_gpu.utils.profiler import Profiler


class Truthy:
    """An object that is true, and says that it is a bool."""

    __class__ = bool

    def __bool__(self):
        return True


X = cuop.ones((2, 3), device="cpu")
GRID = np.zeros((5, 5))
WRONG = [
    2,
    0,
    1,
    1.0,
    "no",
    "",
    [],
    [True],
    np.int64(1),
    np.array([True]),
    cuop.tensor(True),
    Truthy(),
]


def assign(made, name):
    return lambda value: setattr(made(), name, value)


def call(function, name, *arguments):
    return lambda value: function(*arguments, **{name: value})


def be_lazy(value):
    with contextlib.suppress(cuop.DeviceError):  # of a machine without a GPU
        genesis.enable_lazy_init(value)


def executor():
    return AutoExecutor(MPIManager(), verbose=False)


# (name of the argument, what takes it)
SWITCHES = {
    "sum.keepdims": call(X.sum, "keepdims"),
    "argmax.keepdims": call(cuop.argmax, "keepdims", X),
    "count_nonzero.keepdims": call(cuop.count_nonzero, "keepdims", X),
    "linspace.endpoint": call(cuop.linspace, "endpoint", 0, 1, 3),
    "sort.descending": call(cuop.sort, "descending", X),
    "unique.return_index": call(cuop.unique, "return_index", X),
    "astype.copy": call(cuop.astype, "copy", X, "float32"),
    "einsum_path.shapes": call(cuop.einsum_path, "shapes", "i", (2,)),
    "batch_norm.training": call(cuop.batch_norm, "training", X),
    "train.is_training": cuop.BatchNormFloat().train,
    "enable_jit.is_on": lambda value: cuop.JITReluFloat().enable_jit(value),
    "enable_persistent_cache.is_on": lambda v: cuop.JITReluFloat().enable_persistent_cache(v),
    "set_kernel_fusion.on": cuop.set_kernel_fusion,
    "set_trace_recording.on": cuop._core.set_trace_recording,
    "enable_profiling.is_on": cuop.enable_profiling,
    "enable_memory_debugging.is_on": lambda value: cuop.enable_memory_debugging(value, "cpu"),
    "set_memory_debugging.is_on": lambda value: cuop._core.set_memory_debugging("cpu", value),
    "Event.timed": lambda value: cuop.Event("cpu", timed=value),
    "calibrate.again": lambda value: dist.calibrate(dist.world(), again=value),
    "Profiler.enabled": Profiler,
    "Profiler.enabled later": assign(Profiler, "enabled"),
    "AutoExecutor.verbose": lambda value: AutoExecutor(MPIManager(), verbose=value),
    "AutoExecutor.verbose later": assign(executor, "verbose"),
    "PipelineConfig.enable_overlap": lambda value: PipelineConfig(enable_overlap=value),
    "planned_machine.memory_limit": lambda v: ClusterConfig(2).planned_machine(memory_limit=v),
    "enable_lazy_init.is_lazy": be_lazy,
    "matmul.return_on_cpu": lambda value: executor().matmul(X, X.T, return_on_cpu=value),
    "matmul_batch.return_on_cpu": lambda value: executor().matmul_batch([], return_on_cpu=value),
    "fft.return_on_cpu": lambda value: executor().fft(X, return_on_cpu=value),
    "sum.keepdim": lambda value: executor().sum(X, keepdim=value),
    "auto_compute.verbose": lambda value: auto_compute("add", X, X, verbose=value),
    "jacobi_2d.return_info": lambda value: executor().jacobi_2d(GRID, GRID, return_info=value),
    "distributed_jacobi_2d.return_info": call(
        distributed_jacobi_2d, "return_info", GRID, GRID, MPIManager(), None
    ),
    "distributed_sum.keepdim": call(distributed_sum, "keepdim", X, MPIManager(), None),
    "distributed_einsum.use_opt_einsum": lambda value: distributed_einsum(
        "ij,kj", X, X, mpi=MPIManager(), use_opt_einsum=value
    ),
    **{
        f"JITConfig.{name}": lambda value, name=name: cuop.JITConfig(**{name: value})
        for name in cuop.JITConfig().keys()  # noqa: SIM118
        if type(cuop.JITConfig()[name]) is bool
    },
    **{
        f"GlobalJITConfig.{name}": lambda value, name=name: cuop.GlobalJITConfig(**{name: value})
        for name in cuop.GlobalJITConfig().keys()  # noqa: SIM118
        if type(cuop.GlobalJITConfig()[name]) is bool
    },
}


@pytest.fixture(autouse=True)
def _as_before():
    fusion = cuop.kernel_fusion()
    yield
    cuop.set_kernel_fusion(fusion)
    cuop._core.set_trace_recording(False)
    cuop.enable_profiling(False)
    cuop.enable_memory_debugging(False, "cpu")


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("wrong", [None, *WRONG], ids=lambda wrong: type(wrong).__name__)
def test_a_switch_takes_nothing_but_true_and_false(switch, wrong):
    name = switch.split()[0].partition(".")[2]
    with pytest.raises(
        (cuop.DTypeError, MPIError), match=rf"\b{name}: needed is True or False"
    ) as e:
        SWITCHES[switch](wrong)
    error = e.value
    assert isinstance(error, TypeError) or isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_], ids=repr)
def test_a_switch_takes_true_and_false_of_python_and_numpy(switch, flag, capsys):
    SWITCHES[switch](flag)


def test_an_attribute_that_is_on_or_off_keeps_what_was_set():
    profiler = Profiler(np.False_)
    assert profiler.enabled is False
    profiler.enabled = np.True_
    assert profiler.enabled is True
    with pytest.raises(
        cuop.DTypeError, match="^Profiler: enabled: needed is True or False, given 2"
    ):
        profiler.enabled = 2
    assert profiler.enabled is True
