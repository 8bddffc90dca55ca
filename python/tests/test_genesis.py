"""The genesis package: cuOP under the documented names, on the CPU unless asked otherwise."""

import functools
import json
import pathlib

import numpy as np
import pytest
from fresh_process import output_of

import cuop
import genesis

without_cuda = pytest.mark.skipif(cuop.device_count("cuda") > 0, reason="there is a usable GPU")


def test_python_numbers_become_float32_and_arrays_keep_their_dtype():
    assert genesis.tensor([1, 2, 3]).dtype == "float32"
    assert genesis.tensor([[1.5], [2]]).dtype == "float32"
    assert genesis.tensor(3).dtype == "float32"
    assert genesis.tensor([True, False]).dtype == "bool"
    assert genesis.tensor([1, 2], dtype="int64").dtype == "int64"
    assert genesis.tensor(np.arange(3)).dtype == "int64"
    assert genesis.tensor(cuop.zeros(3, "float64")).dtype == "float64"


def test_asarray_shares_arrays_and_makes_tensors_of_lists_and_numbers():
    array = np.arange(3, dtype=np.float64)
    shared = genesis.asarray(array)
    array[0] = 7
    assert shared.tolist() == [7, 1, 2] and shared.device == "cpu"
    tensor = cuop.ones(2, device="cpu")
    assert genesis.asarray(tensor).data_ptr() == tensor.data_ptr()
    for data in ([1, 2], (1.5, 2), 3, 2.5):
        made = genesis.asarray(data)
        assert made.dtype == "float32" and made.device == "cpu"
        assert made.tolist() == genesis.tensor(data).tolist()
    assert genesis.asarray([True]).dtype == "bool"
    assert genesis.asarray([1j]).dtype == cuop.tensor([1j], device="cpu").dtype
    assert genesis.asarray([1.0], device="cpu").device == "cpu"


def test_tensors_are_made_on_the_cpu_and_are_those_of_cuop():
    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(x, cuop.Tensor) and x.device == "cpu" == genesis.device("cpu")
    assert genesis.zeros((2,)).device == genesis.ones(2).device == "cpu"
    assert genesis.tensor(x, device=genesis.device("cpu")).tolist() == x.tolist()
    for make in (genesis.zeros, genesis.full, genesis.random):
        assert "On the CPU" in make.__doc__
    assert genesis.randint(0, 9, (2,)).device == genesis.permutation(3).device == "cpu"
    assert genesis.TensorFloat((2,)).device == genesis.TensorDouble((2,)).device == "cpu"


def test_the_functions_are_those_of_cuop():
    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert genesis.matmul(x, x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    for name in (
        "add subtract multiply divide exp log sqrt tanh sigmoid relu gelu abs maximum where sum "
        "mean max min prod argmax var std softmax log_softmax layer_norm cumsum reshape transpose"
    ).split():
        assert getattr(genesis, name) is getattr(cuop, name)
    np.testing.assert_allclose(np.asarray(genesis.softmax(x).sum(axis=-1)), [1, 1], rtol=1e-6)
    assert ((x + 1) * 2).sum().item() == 28


def test_devices_are_named():
    assert genesis.device("cpu") == cuop.Device("cpu") == genesis.device(genesis.device("cpu"))
    if genesis.cuda.is_available():
        assert str(genesis.device("cuda:0")) == str(genesis.device("cuda")) == "cuda:0"
    with pytest.raises(cuop.DeviceError, match="'tpu' is not a device"):
        genesis.device("tpu")
    assert genesis.cuda.device_count() == cuop.device_count("cuda")
    assert genesis.cuda.is_available() == (genesis.cuda.device_count() > 0)
    genesis.cuda.enable_lazy_init(True)


@without_cuda
@pytest.mark.parametrize(
    "use",
    [
        lambda: genesis.tensor([1.0], device="cuda"),
        lambda: genesis.device("cuda"),
        lambda: genesis.device("cuda:0"),
        lambda: genesis.zeros(3, device=cuop.Device("cuda:0")),
        lambda: genesis.tensor([1.0]).to("cuda"),
        lambda: genesis.cuda.current_device(),
        lambda: genesis.cuda.set_device(0),
        lambda: genesis.cuda.set_device("cuda:0"),
        lambda: genesis.cuda.synchronize(),
        lambda: genesis.cuda.CUDAMemoryPool.get_instance().allocate(64),
        lambda: genesis.cuda.CUDAMemoryPool("cuda:1").allocate(0),
        lambda: genesis.cuda.CUDAStorage((2, 3), "float32").data_ptr(),
        lambda: genesis.cuda.enable_lazy_init(False),
    ],
)
def test_the_first_use_of_an_absent_gpu_says_what_is_missing_and_how_to_use_the_cpu(use):
    with pytest.raises(cuop.DeviceError, match=r"driver.*use device 'cpu'.*CUOP_DEVICE=cpu"):
        use()


ZEROS = "memory_allocated memory_reserved max_memory_allocated empty_cache".split()


@without_cuda
@pytest.mark.parametrize("device", [None, 0, "cuda", "cuda:3", cuop.Device("cuda:1")])
def test_questions_about_an_absent_gpu_are_answered_as_pytorch_answers_them(device):
    cuda = genesis.cuda
    assert cuda.is_available() is False and cuda.device_count() == 0
    for name in ZEROS:
        assert getattr(cuda, name)(device) == 0
        assert getattr(cuda, name)(device=device) == 0
    for stats in (cuda.memory_stats(device), cuda.get_memory_stats(device)):
        assert stats == {} and isinstance(stats, dict)
        assert stats["allocated"] == stats["fragmentation"] == 0  # what a program prints of them
        assert stats.get("allocated_bytes.all.current", 0) == 0 and len(stats) == 0
    assert cuda.reset_peak_memory_stats(device) is None
    assert "no GPU" in cuda.memory_summary(device)
    assert cuda.check_memory(device) == cuda.memory_leaks(device) == []


@without_cuda
def test_an_absent_gpus_snapshot_holds_nothing(tmp_path):
    names = genesis.cuda.memory_snapshot(tmp_path / "state", "cuda:2")
    assert [pathlib.Path(name).suffix for name in names] == [".json", ".html"]
    state = json.loads(pathlib.Path(names[0]).read_text())
    assert state["device"] == "cuda:2" and state["segments"] == state["history"] == []
    assert "<html" in pathlib.Path(names[1]).read_text()


@without_cuda
def test_an_absent_gpus_pool_has_figures_and_no_memory():
    pool = genesis.CUDAMemoryPool.get_instance()
    assert pool is genesis.CUDAMemoryPool.get_instance("cuda:0")
    for name in (
        "allocated_bytes cached_bytes reserved_bytes free_bytes fragmentation_ratio "
        "peak_allocated_bytes"
    ).split():
        assert getattr(pool, name) == 0
    with pytest.raises(cuop.MemoryError, match="is not a live block"):
        pool.deallocate(64)


@pytest.fixture
def none_kept():
    genesis.cuda._kept.clear()
    yield genesis.cuda._kept
    genesis.cuda._kept.clear()


@without_cuda
def test_settings_wait_for_a_gpu_and_reach_it_with_its_first_use(none_kept, monkeypatch):
    cuda, reached = genesis.cuda, []
    for fraction in (0.5, 0.9):
        assert cuda.set_memory_fraction(fraction) is None
    cuda.set_memory_limit("1GB", device="cuda:0")
    cuda.set_cache_size("2GB", 0)
    cuda.set_cache_size(None, "cuda:1")  # a GPU that does not come
    cuda.set_memory_callback(lambda: None, thresholds=[0.5])
    cuda.enable_memory_debugging(True)
    for name in "set_memory_fraction set_memory_limit set_cache_size set_memory_callback".split():
        noted = functools.partial(lambda name, *values: reached.append((name, *values)), name)
        monkeypatch.setattr(cuop._core, name, noted)
    monkeypatch.setattr(
        cuop._core, "set_memory_debugging", lambda *values: reached.append(("debugging", *values))
    )
    monkeypatch.setattr(cuop.memory, "_debugged", set())
    monkeypatch.setattr(cuop.memory.atexit, "register", lambda function: None)
    monkeypatch.setattr(cuop, "device_description", lambda name: "a GPU")
    assert reached == []
    assert cuda.current_device() == 0
    assert [(name, *values[:2]) for name, *values in reached if name != "set_memory_callback"] == [
        ("set_memory_fraction", "cuda:0", 0.9),
        ("set_memory_limit", "cuda:0", 2**30),
        ("set_cache_size", "cuda:0", 2**31),
        ("debugging", "cuda:0", True),
    ]
    (called,) = [values for name, *values in reached if name == "set_memory_callback"]
    assert called[0] == "cuda:0" and callable(called[1]) and called[2] == [0.5]
    assert list(none_kept) == [("set_cache_size", "cuda:1")]
    reached.clear()
    assert cuda.current_device() == 0 and reached == []  # once


@without_cuda
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cuda: cuda.set_memory_fraction(1.5), "0 < fraction <= 1"),
        (lambda cuda: cuda.set_memory_fraction("half"), "fraction: needed is a number"),
        (lambda cuda: cuda.set_memory_limit("lots"), "'lots' is not a size"),
        (lambda cuda: cuda.set_memory_limit(-1), "memory limit: -1 bytes"),
        (lambda cuda: cuda.set_cache_size(-1), "cache size: -1 bytes"),
        (lambda cuda: cuda.set_memory_callback(3), "needed is a function"),
        (
            lambda cuda: cuda.set_memory_callback(print, [2.0]),
            "set_memory_callback: thresholds has 2",
        ),
        (lambda cuda: cuda.set_memory_fraction(0.5, "cpu"), "'cpu' is not a GPU"),
        (lambda cuda: cuda.memory_allocated("cpu"), "'cpu' is not a GPU"),
        (lambda cuda: cuda.memory_stats("gpu"), "'gpu' is not a GPU"),
    ],
)
def test_wrong_values_are_refused_without_a_gpu_too(none_kept, call, message):
    with pytest.raises(cuop.Error, match=message):
        call(genesis.cuda)
    assert none_kept == {}


@without_cuda
def test_what_has_nothing_to_do_with_a_gpu_works_without_one():
    cuda = genesis.cuda
    before = cuop.kernel_fusion()
    cuda.set_kernel_fusion(False)
    cuda.set_kernel_fusion(before)
    assert cuda.warm_up_kernels(["add"]) == 1
    assert cuda.enable_lazy_init(True) is cuda.enable_lazy_init() is None


def test_cuda_storage_is_lazy():
    storage = genesis.cuda.CUDAStorage((2, 3), "float32", device_id=0)
    assert (storage.shape, storage.nbytes, storage.is_allocated) == ((2, 3), 24, False)
    with pytest.raises(cuop.ShapeError, match="CUDAStorage: shape: sizes must not be negative"):
        genesis.cuda.CUDAStorage((-2, 3), "float32")
    with pytest.raises(cuop.ShapeError, match=r"CUDAStorage: .*64 bits"):
        genesis.cuda.CUDAStorage((2**31, 2**31), "float32")
    with pytest.raises(cuop.DeviceError, match="'x' is not a GPU"):
        genesis.cuda.CUDAStorage((2, 3), "float32", device_id="x")


def test_the_cpu_is_no_gpu():
    with pytest.raises(cuop.DeviceError, match="'cpu' is not a GPU; use 'cuda' or 'cuda:N'"):
        genesis.cuda.synchronize("cpu")


@pytest.mark.cpu  # a GPU that is busy with other work measures nothing
def test_clearing_the_kernel_cache_forgets_choices(tmp_path):
    before = cuop.get_global_jit_config()
    try:
        cuop.set_global_jit_config(cuop.GlobalJITConfig(cache_dir=str(tmp_path / "none")))
        cuop.JITReluFloat().forward([1.0, 2.0], cuop.zeros(2))
        assert genesis.cuda.clear_kernel_cache() >= 1
        assert genesis.cuda.clear_kernel_cache() == 0
    finally:
        cuop.set_global_jit_config(before)


SPEC = """
    tensor device matmul cuda enable_lazy_init clear_kernel_cache set_kernel_fusion warm_up_kernels
    enable_profiling CUDAMemoryPool CUDAStorage
""".split()
CUDA_SPEC = """
    is_available device_count current_device set_device synchronize set_memory_fraction
    set_cache_size memory_allocated memory_reserved max_memory_allocated memory_stats
    get_memory_stats reset_peak_memory_stats memory_summary empty_cache set_memory_callback
    enable_memory_debugging memory_snapshot enable_lazy_init clear_kernel_cache set_kernel_fusion
    warm_up_kernels enable_profiling CUDAMemoryPool CUDAStorage
""".split()


@pytest.mark.parametrize("name", SPEC)
def test_every_documented_name_is_there(name):
    assert name in genesis.__all__ and getattr(genesis, name).__doc__


@pytest.mark.parametrize("name", CUDA_SPEC)
def test_every_documented_name_of_cuda_is_there(name):
    assert name in genesis.cuda.__all__ and getattr(genesis.cuda, name).__doc__


def test_the_pool_has_the_documented_counters():
    for name in (
        "allocated_bytes cached_bytes reserved_bytes free_bytes fragmentation_ratio "
        "peak_allocated_bytes"
    ).split():
        assert isinstance(getattr(genesis.CUDAMemoryPool, name), property)


def test_memory_stats_have_the_documented_names():
    stats = cuop.memory_stats("cpu")
    for name in "allocated cached reserved free fragmentation peak_allocated".split():
        assert stats[name] >= 0


def test_warming_up_runs_names_on_shapes():
    assert genesis.warm_up_kernels(["add", "softmax"]) == 2
    assert genesis.warm_up_kernels("where") == 1
    assert genesis.warm_up_kernels(["matmul", "sum", (3, 5), (2, 3, 4)], dtype="float64") == 4
    assert genesis.warm_up_kernels([(7, 8)]) == genesis.warm_up_kernels() > 5
    with cuop.profile() as spans:
        genesis.warm_up_kernels(["exp", (4, 4)], device="cpu")
    assert "exp" in {event["name"] for event in spans.events}


def test_warming_up_refuses_what_is_no_operation():
    for name in ("no_such", "Tensor", "benchmark"):
        with pytest.raises(cuop.ExecutionError, match=f"there is no operation '{name}'"):
            genesis.warm_up_kernels([name])
    for name in ("clear_kernel_cache", "profiling_rows"):
        with pytest.raises(cuop.ExecutionError, match=f"kernels: '{name}' is no operation of one"):
            genesis.warm_up_kernels([name])
    with pytest.raises(cuop.ExecutionError, match="warm_up_kernels: kernels: einsum: one argument"):
        genesis.warm_up_kernels("einsum")
    with pytest.raises(cuop.DTypeError, match="kernels: needed is a list of names and shapes"):
        genesis.warm_up_kernels(3)
    with pytest.raises(cuop.ShapeError):
        genesis.warm_up_kernels(["add", (-1,)])


def test_importing_loads_neither_cuda_nor_heavy_modules():
    script = (
        "import sys, genesis\n"
        "heavy = {'scipy', 'matplotlib', 'rich', 'typer', 'jinja2', 'asyncio', 'statistics'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print('libcuda' in open('/proc/self/maps').read())\n"
    )
    assert output_of(script).split("\n")[:2] == ["[]", "False"]
