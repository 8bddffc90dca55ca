"""JIT wrappers on a GPU: every field of a configuration takes effect or is refused, and the profile
tells what ran."""

import numpy as np
import pytest

import cuop
from cuop import _core


@pytest.fixture(autouse=True)
def on_gpu(own_cache):
    """What lies in the cache was compiled for the test; test_cuda_jit_candidates.py is about auto."""
    config = cuop.get_global_jit_config()
    config.enable_auto_tuning = False
    cuop.set_global_jit_config(config)
    device = cuop.current_device()
    cuop.set_current_device("cuda")
    yield
    cuop.set_current_device(device)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def case(name, kind, prefix="JIT"):
    """An operator with its weights, the inputs of a call and the shape of its output."""
    dtype = "float32" if kind == "Float" else "float64"
    make = getattr(cuop, prefix + name + kind)
    if name == "Gemm":
        op = make(False, False, 2.0, 0.5)
        op.set_weight(numbers(1, 33, 21))
        return op, [numbers(2, 17, 33)], (17, 21), dtype
    if name == "Gemv":
        op = make()
        op.set_weight(numbers(1, 33, 21))
        return op, [numbers(2, 21)], (33,), dtype
    if name == "MatMul":
        return make(), [numbers(1, 3, 17, 33), numbers(2, 33, 21)], (3, 17, 21), dtype
    if name in ("Relu", "Softmax"):
        return make(), [numbers(1, 19, 45)], (19, 45), dtype
    if name == "BatchNorm":
        op = make()
        op.set_gamma(numbers(1, 5))
        return op, [numbers(3, 4, 5, 6)], (4, 5, 6), dtype
    if name == "LayerNorm":
        op = make()
        op.set_gamma(numbers(1, 30))
        return op, [numbers(3, 7, 30)], (7, 30), dtype
    op = make(2, 3, 3, 3, pad_h=1)
    op.set_weight(numbers(1, 3, 2, 3, 3))
    return op, [numbers(2, 2, 2, 9, 8)], (2, 3, 9, 6), dtype


def check(jit, inputs, shape, dtype, name, kind):
    """The wrapper's result beside the operator's on the CPU; answers the profile."""
    y = jit.forward(*inputs, cuop.ones(shape, dtype))
    profile = jit.get_performance_profile()
    cuop.set_current_device("cpu")
    op, _, _, _ = case(name, kind, "")
    expected = op.forward(*inputs, cuop.ones(shape, dtype))
    cuop.set_current_device("cuda")
    tolerance = 1e-3 if kind == "Float" else 1e-11
    np.testing.assert_allclose(y.to_numpy(), expected.to_numpy(), rtol=0, atol=tolerance)
    return profile


OWN = ["Gemv", "Relu", "Softmax", "BatchNorm", "LayerNorm"]
LIBRARY = ["Gemm", "MatMul"]


@pytest.mark.parametrize("name", [*OWN, *LIBRARY, "Convolution2D"])
@pytest.mark.parametrize("kind", ["Float", "Double"])
def test_the_profile_tells_what_ran(name, kind):
    jit, inputs, shape, dtype = case(name, kind)
    profile = check(jit, inputs, shape, dtype, name, kind)
    if name in LIBRARY:  # or one of our own, where that is faster
        assert profile.kernel_type == "library" or "/" in profile.kernel_type
    else:
        assert profile.kernel_type == ("tiled" if name in OWN else "library")
    assert jit.get_tuning_report().kernel == profile.kernel_type
    if name in OWN:
        assert profile.used_tensor_core is False
        assert profile.precision == dtype


def compilations(jit, *call):
    """How many kernels a call compiles."""
    before = _core.kernel_cache_info()["compilations"]
    jit.forward(*call)
    return _core.kernel_cache_info()["compilations"] - before


@pytest.mark.parametrize("name", [*OWN, "Convolution2D"])
@pytest.mark.parametrize(
    "fields",
    [
        {"kernel_type": "simple"},
        {"optimization_level": "O0", "max_registers": 32},
        {"optimization_level": "O1"},
        {"max_registers": 40},
        {"enable_loop_unroll": False},
        {"block_size": 1024},  # none that 'auto' has tried
    ],
    ids=str,
)
def test_fields_of_own_kernels_compile_another_binary(name, fields):
    is_simple = fields.get("kernel_type") == "simple" or fields.get("optimization_level") == "O0"
    if name == "Convolution2D" and not is_simple:
        pytest.skip("cuDNN's")
    if name == "Gemv" and "block_size" in fields:
        pytest.skip("of blocks of 256 threads alone")
    jit, inputs, shape, dtype = case(name, "Float")
    y = cuop.ones(shape, dtype)
    jit.forward(*inputs, y)
    jit.set_jit_config(cuop.JITConfig(**fields))
    assert compilations(jit, *inputs, y) > 0
    assert compilations(jit, *inputs, y) == 0
    profile = check(jit, inputs, shape, dtype, name, "Float")
    shape_asked = "/block=1024" if "block_size" in fields else ""
    assert profile.kernel_type == ("simple" if is_simple else "tiled") + shape_asked
    jit.set_jit_config(cuop.JITConfig())
    assert compilations(jit, *inputs, y) == 0


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("kind", ["Float", "Double"])
def test_permission_for_matrix_units(name, kind):
    jit, inputs, shape, dtype = case(name, kind)
    jit.set_jit_config(cuop.JITConfig(enable_tensor_core=False))
    assert check(jit, inputs, shape, dtype, name, kind).used_tensor_core is False
    jit.set_jit_config(cuop.JITConfig(kernel_type="tensor_core"))
    profile = check(jit, inputs, shape, dtype, name, kind)
    assert profile.used_tensor_core is True
    assert profile.kernel_type == "tensor_core/32/128/3"
    assert profile.precision == ("tf32x3" if kind == "Float" else "float64")


DOCUMENTED = {
    "kernel_type": "tiled",
    "tile_size": 32,
    "block_size": 256,
    "optimization_level": "O2",
}


@pytest.mark.parametrize(
    "fields, kernel",
    [
        ({"kernel_type": "simple", "tile_size": 16}, "simple/16/256/1"),
        (DOCUMENTED, "tiled/32/256/3"),
        ({**DOCUMENTED, "enable_tma": True, "max_registers": 255}, "tiled/32/256/3+bulk"),
        ({"kernel_type": "tensor_core", "tile_size": 64}, "tensor_core/64/128/3"),
        ({"optimization_level": "O0", "max_registers": 64}, "simple/16/256/1"),
        ({"kernel_type": "tiled", "block_size": 32}, "tiled/32/32/3"),
        ({"kernel_type": "tiled", "num_stages": 2}, "tiled/32/64/2"),
        ({"kernel_type": "tiled", "max_registers": 96}, "tiled/32/64/3"),
        ({"kernel_type": "tiled", "optimization_level": "O1"}, "tiled/32/64/3"),
        ({"kernel_type": "tiled", "enable_loop_unroll": False}, "tiled/32/64/3"),
        ({"enable_shared_memory_opt": False}, "simple/16/256/1-shared"),
        ({"enable_memory_coalescing": False}, "simple/16/256/1-coalesced"),
    ],
    ids=str,
)
def test_fields_of_products_compile_a_kernel_of_our_own(fields, kernel):
    jit, inputs, shape, dtype = case("Gemm", "Float")
    y = cuop.ones(shape, dtype)
    jit.set_jit_config(cuop.JITConfig(kernel_type="tiled"))
    jit.forward(*inputs, y)
    jit.set_jit_config(cuop.JITConfig(**fields))
    assert compilations(jit, *inputs, y) >= 1  # and copies that align rows
    assert compilations(jit, *inputs, y) == 0
    profile = check(jit, inputs, shape, dtype, "Gemm", "Float")
    assert profile.kernel_type == kernel
    assert jit.get_tuning_report().kernel == kernel


def test_auto_measures_our_own_products_beside_the_librarys():
    jit, inputs, shape, dtype = case("MatMul", "Float")
    jit.set_jit_config(cuop.JITConfig(optimization_level="best"))  # on a busy device too
    check(jit, inputs, shape, dtype, "MatMul", "Float")
    text = jit.get_tuning_report().text
    for kernel in ["cuBLASLt's choice 1", "library", "tiled/32/64/3", "tensor_core/32/128/3"]:
        assert f"{kernel}: " in text
    assert jit.get_performance_profile().kernel_type in text


@pytest.mark.parametrize(
    "name, fields, reason",
    [
        ("Gemm", {"tile_size": 64, "max_registers": 32}, "a 64-wide tile on 256 threads needs"),
        ("Gemm", {"tile_size": 48}, "tile_size is 48, allowed for a 'tiled' product on a GPU"),
        ("Gemm", {"block_size": 100}, "block_size is 100, allowed for a product on a GPU"),
        ("Gemm", {"kernel_type": "simple", "enable_tma": True}, "copies element by element"),
        ("MatMul", {"kernel_type": "simple", "num_stages": 2}, "num_stages is 2, allowed for a"),
        ("Convolution2D", {"max_registers": 64}, "the kernels are cuDNN's"),
        ("Softmax", {"num_stages": 2}, "have no copy pipeline"),
        ("Relu", {"max_registers": 8}, "at least 24"),
        ("Relu", {"block_size": 100}, "blocks of 128, 256, 512 or 1024 threads"),
        ("Gemv", {"block_size": 128}, "blocks of 256 threads, which are part of their text"),
        ("LayerNorm", {"enable_shared_memory_opt": False}, "no variant without shared memory"),
        ("Gemv", {"enable_tma": True}, "do not use the tensor memory accelerator"),
        ("BatchNorm", {"enable_memory_coalescing": False}, "no variant in which neighbouring"),
    ],
)
def test_what_cannot_be_met_is_refused_when_it_is_set(name, fields, reason):
    jit, inputs, shape, dtype = case(name, "Float")
    with pytest.raises(cuop.CompilationError, match=f"JIT{name}Float: .*{reason}"):
        jit.set_jit_config(cuop.JITConfig(**fields))
    assert dict(jit.get_jit_config()) == dict(cuop.JITConfig())
    check(jit, inputs, shape, dtype, name, "Float")


def test_the_device_of_the_call_decides_again():
    cuop.set_current_device("cpu")
    jit, inputs, shape, dtype = case("MatMul", "Float")
    jit.set_jit_config(cuop.JITConfig(tile_size=7))
    jit.forward(*inputs, cuop.ones(shape, dtype))
    assert jit.get_performance_profile().kernel_type == "tiled/7"
    cuop.set_current_device("cuda")
    y = cuop.ones(shape, dtype)
    with pytest.raises(cuop.CompilationError, match="on cuda:0: tile_size is 7, allowed for"):
        jit.forward(*inputs, y)
    assert np.all(y.to_numpy() == 1)


def debugging():
    config = cuop.get_global_jit_config()
    config.enable_debug = True
    cuop.set_global_jit_config(config)
    return config.cache_dir


@pytest.mark.parametrize("name", [*OWN, *LIBRARY, "Convolution2D"])
def test_debug_mode_compares_with_the_cpu_and_accepts_right_results(name):
    debugging()
    jit, inputs, shape, dtype = case(name, "Double")
    for _ in range(2):
        check(jit, inputs, shape, dtype, name, "Double")


def test_debug_mode_keeps_sources_and_logs(tmp_path):
    debugging()
    jit, inputs, shape, dtype = case("Softmax", "Float")
    jit.enable_persistent_cache(True)
    jit.set_jit_config(cuop.JITConfig(max_registers=56))
    check(jit, inputs, shape, dtype, "Softmax", "Float")
    files = list((tmp_path / "cache" / "kernels").iterdir())
    (source,) = [file for file in files if file.suffix == ".cu" and "softmax" in file.read_text()]
    text = source.read_text()
    assert "\n// softmax for sm_" in text and "--maxrregcount=56" in text
    assert "__global__" in text
    assert "compiled in" in source.with_suffix(".log").read_text()
    assert source.with_suffix(".kernel").exists()
    cuop.clear_kernel_cache()
    assert not source.exists() and not source.with_suffix(".log").exists()


def test_training_in_debug_mode_moves_the_statistics_once():
    debugging()
    norm = cuop.JITBatchNormFloat(momentum=0.5)
    norm.train(True)
    norm.forward(cuop.tensor([[1.0], [3.0]]), cuop.zeros((2, 1)))
    assert norm.get_running_mean().tolist() == [1.0]
