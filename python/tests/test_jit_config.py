"""Configurations of JIT wrappers: defaults, what is refused, what has no effect on the CPU."""

import copy
import os
import pickle

import numpy as np
import pytest
from fresh_process import run_with
from wrappers import case, names

import cuop

pytestmark = pytest.mark.usefixtures("own_cache")


def test_default_configurations():
    config = cuop.get_default_jit_config()
    assert dict(config) == {
        "enable_jit": True, "kernel_type": "auto", "tile_size": 0, "block_size": 0,
        "num_stages": 0, "optimization_level": "auto", "enable_tensor_core": True,
        "enable_tma": False, "max_registers": 0, "enable_shared_memory_opt": True,
        "enable_loop_unroll": True, "enable_memory_coalescing": True,
    }  # fmt: skip
    whole = dict(cuop.get_default_global_jit_config())
    assert os.path.basename(whole.pop("cache_dir")) == "cuop" or "CUOP_CACHE_DIR" in os.environ
    assert whole == {
        "enable_jit": True, "enable_auto_tuning": True, "enable_caching": True,
        "max_cache_size": 2**30, "compilation_timeout": 30.0, "max_compilation_threads": 4,
        "enable_debug": False,
    }  # fmt: skip
    with pytest.raises(AttributeError):
        config.tilesize = 3
    with pytest.raises(AttributeError):
        cuop.JITConfig(tilesize=3)
    for kind in (cuop.JITConfig, cuop.GlobalJITConfig):
        with pytest.raises(
            TypeError, match=f"^{kind.__name__}: fields are given by name, .*given 2"
        ):
            kind(True, 3)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"optimization_level": "O4"}, "'O4' is unknown; known are O0, O1"),
        ({"optimization_level": "O0", "kernel_type": "tiled"}, "'O0' is the simple kernel"),
        ({"block_size": 2000}, "block_size is 2000, allowed is 0"),
        ({"block_size": 3}, r"block_size is 3, allowed is 0 \(chosen\) or a power of two from 32"),
        (
            {"block_size": 48},
            r"block_size is 48, allowed is 0 \(chosen\) or a power of two from 32",
        ),
        ({"num_stages": -1}, "num_stages is -1, allowed is 0"),
        ({"max_registers": 23}, r"max_registers is 23, allowed is 0 \(no limit\) or 24 to 255"),
        ({"max_registers": 256}, "max_registers is 256, allowed is 0"),
        ({"tile_size": -1}, "tile_size is -1, allowed is 0"),
        ({"tile_size": 5000}, "tile_size is 5000, allowed is 0"),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_reason(fields, reason):
    jit = cuop.JITGemmFloat()
    with pytest.raises(cuop.CompilationError, match=f"JITGemmFloat: .*{reason}") as error:
        jit.set_jit_config(cuop.JITConfig(**fields))
    assert dict(jit.get_jit_config()) == dict(cuop.JITConfig())  # nothing of it was taken over
    assert jit.get_last_error() == str(error.value)


@pytest.mark.parametrize("field", [{"tile_size": 32}, {"kernel_type": "tiled"}])
def test_configurations_are_values(field):
    config = cuop.JITConfig(**field)
    assert config == cuop.JITConfig(**field) != cuop.JITConfig()
    assert config != dict(config)
    for copied in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert copied == config and copied is not config
    copied.tile_size = 7
    assert copied != config
    with pytest.raises(TypeError, match="unhashable"):
        hash(config)


def test_the_configuration_of_the_process_is_a_value():
    config = cuop.get_global_jit_config()
    assert config == cuop.get_global_jit_config() == pickle.loads(pickle.dumps(config))
    config.max_compilation_threads += 1
    assert config != cuop.get_global_jit_config()


def test_more_refusals():
    unknown = "JITConfig.kernel_type: 'fast' is unknown; known are auto"
    with pytest.raises(cuop.ExecutionError, match=unknown):
        cuop.JITConfig(kernel_type="fast")
    for field, value in [
        ("max_cache_size", -1),
        ("compilation_timeout", 0.0),
        ("compilation_timeout", float("inf")),
        ("compilation_timeout", float("nan")),
        ("max_compilation_threads", 0),
        ("cache_dir", ""),
    ]:
        with pytest.raises(cuop.CompilationError, match=f"set_global_jit_config: {field} is"):
            cuop.set_global_jit_config(cuop.GlobalJITConfig(**{field: value}))


OF_A_GPU = {
    "kernel_type": "tensor_core",
    "block_size": 256,
    "num_stages": 2,
    "enable_tensor_core": False,
    "enable_tma": True,
    "max_registers": 64,
    "enable_shared_memory_opt": False,
    "enable_loop_unroll": False,
    "enable_memory_coalescing": False,
}


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore::cuop.NoEffectWarning")
@names
@pytest.mark.parametrize("field", OF_A_GPU)
def test_on_the_cpu_a_field_that_describes_a_gpu_is_kept_and_shown(name, field):
    op, inputs, shape = case(name, "", "Float")
    jit, _, _ = case(name, "JIT", "Float")
    config = cuop.JITConfig(**{field: OF_A_GPU[field]})
    jit.set_jit_config(config)
    assert dict(jit.get_jit_config()) == dict(config)
    found = cuop.explain(jit.forward, *inputs, cuop.ones(shape))
    profile = jit.get_performance_profile()
    (text,) = profile.no_effect
    assert text.startswith(f"{field}={OF_A_GPU[field]}: no effect on cpu (")
    assert "no effect on cpu" in repr(profile) and text in str(found)
    y = jit.forward(*inputs, cuop.ones(shape))
    expected = op.forward(*inputs, cuop.ones(shape))
    np.testing.assert_allclose(np.asarray(y), np.asarray(expected), rtol=0, atol=1e-3)


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore::cuop.NoEffectWarning")
@pytest.mark.parametrize(
    ("name", "fields", "kernel", "idle"),
    [
        ("Softmax", {"tile_size": 16}, None, ["tile_size"]),
        ("Gemm", {"kernel_type": "simple", "tile_size": 16}, "simple", ["tile_size"]),
        ("Gemm", {"optimization_level": "O0", "tile_size": 16}, "simple", ["tile_size"]),
        ("Gemm", {"kernel_type": "tensor_core", "tile_size": 64}, "tiled/64", ["kernel_type"]),
        ("Gemm", {"tile_size": 64, "max_registers": 32}, "tiled/64", ["max_registers"]),
        ("Gemm", {"kernel_type": "tiled", "tile_size": 32, "block_size": 256}, "tiled/32",
         ["block_size"]),
        ("Relu", OF_A_GPU, None, list(OF_A_GPU)),
        ("Gemm", {"kernel_type": "tiled", "tile_size": 8, "enable_tensor_core": True}, "tiled/8",
         []),
    ],
)  # fmt: skip
def test_one_configuration_serves_a_gpu_and_the_cpu(name, fields, kernel, idle):
    jit, inputs, shape = case(name, "JIT", "Float")
    jit.set_jit_config(cuop.JITConfig(**fields))
    jit.forward(*inputs, cuop.ones(shape))
    profile = jit.get_performance_profile()
    assert kernel is None or profile.kernel_type == kernel
    assert [text.split("=")[0] for text in profile.no_effect] == idle
    jit.set_jit_config(cuop.JITConfig())
    jit.forward(*inputs, cuop.ones(shape))
    assert jit.get_performance_profile().no_effect == []


NO_EFFECT = """
import warnings, cuop
cuop.set_device("cpu")
def told(make, **fields):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        wrapper = make()
        wrapper.set_jit_config(cuop.JITConfig(**fields))
        wrapper.forward([1.0], cuop.zeros(1, dtype="float64" if "Double" in wrapper.name else "float32"))
    assert {w.category for w in given} <= {cuop.NoEffectWarning}
    print([str(w.message).split("=")[0] for w in given])
told(cuop.JITReluFloat, block_size=128, enable_tma=True)
told(cuop.JITReluFloat, block_size=256)
told(cuop.JITReluDouble, num_stages=2, block_size=64)
told(cuop.JITReluFloat)
warnings.simplefilter("error")
wrapper = cuop.JITReluFloat()
try:
    wrapper.set_jit_config(cuop.JITConfig(max_registers=64))
except cuop.NoEffectWarning as warning:
    print(warning)
print(wrapper.forward([-1.0, 2.0], cuop.zeros(2)).tolist())
"""


def test_a_field_without_effect_is_warned_of_once_a_process():
    done = run_with({}, NO_EFFECT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['JITReluFloat: block_size', 'JITReluFloat: enable_tma']",
        "[]",
        "['JITReluDouble: num_stages']",
        "[]",
        "JITReluFloat: max_registers=64: no effect on cpu (it limits the registers of a GPU's "
        "threads); of this field it is said once",
        "[0.0, 2.0]",
    ]
