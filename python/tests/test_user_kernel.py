"""Kernels of the user's own and the tuner's switches, as far as no GPU is needed."""

import math

import numpy as np
import pytest
from fresh_process import output_of

import cuop

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i] * ONE;
}
"""
CONFIGS = [{"ONE": 1}, {"ONE": "1.0f", "UNROLL": True}]


def scale(**options):
    return cuop.jit.kernel(SCALE, "scale", **{"configs": CONFIGS, "key": ["n"], **options})


def test_a_kernel_tells_its_parameters_and_configurations():
    kernel = scale()
    assert kernel.name == "scale"
    assert kernel.parameters == ["x", "y", "factor", "n"]
    assert kernel.configs == CONFIGS
    assert kernel.last_search() == ""
    assert cuop.jit.ceil_div(7, 3) == 3 and cuop.jit.ceil_div(6, 3) == 2


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"key": ["m"]}, cuop.CompilationError, "'m', which is no parameter; they are x, y"),
        ({"key": "n"}, cuop.DTypeError, "key: needed is a list of strings"),
        ({"options": ["-Ifolder"]}, cuop.CompilationError, "reads files"),
        ({"configs": [{"a b": 1}]}, cuop.CompilationError, "defines 'a b'"),
        ({"configs": [{"A": None}]}, cuop.DTypeError, "the macro A: needed is a finite number"),
        ({"configs": [{"A": math.nan}]}, cuop.DTypeError, "the macro A: needed is a finite number"),
        ({"configs": [3]}, cuop.DTypeError, "needed is a dict of macros, given 3"),
        (
            {"configs": [{1: 2}]},
            cuop.DTypeError,
            "the name of a macro: needed is a string, given 1",
        ),
        ({"configs": 3}, cuop.DTypeError, "configs: needed is a list of dicts of macros, given 3"),
        ({"configs": {"A": 1}}, cuop.DTypeError, "configs: needed is a list of dicts of macros"),
        ({"key": 3}, cuop.DTypeError, "kernel scale: key: needed is a list of strings, given 3"),
        ({"key": None}, cuop.DTypeError, "kernel scale: key: needed is a list of strings"),
        ({"options": None}, cuop.DTypeError, "options: needed is a list of strings, given None"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        scale(**options)


def test_a_configuration_to_compile_is_one_of_the_kernels():
    for wrong in (3, "BLOCK"):
        with pytest.raises(
            cuop.DTypeError, match="kernel scale: a configuration: needed is a dict"
        ):
            scale().compile("sm_90a", wrong)
    with pytest.raises(cuop.ExecutionError, match="{'A': 1} is none of the configurations"):
        scale().compile("sm_90a", {"A": 1})


def test_a_source_without_the_kernel_is_refused():
    with pytest.raises(cuop.CompilationError, match="declares no function"):
        cuop.jit.kernel(SCALE, "scales")
    with pytest.raises(cuop.DTypeError, match="source: needed is a string"):
        cuop.jit.kernel(None, "scale")


@pytest.mark.cpu
def test_arguments_are_checked():
    kernel, x = scale(), cuop.ones(4)
    cases = [
        ((x, x, 1.0), cuop.ExecutionError, r"takes 4 arguments \(x, y, factor, n\), given 3"),
        ((x, x, 1.0, 4), cuop.DeviceError, "x is on cpu; kernels run on a GPU: x.to"),
        ((np.ones(4), x, 1.0, 4), cuop.DTypeError, "x: needed is a tensor of cuOP or a number"),
        ((x, x, x, 4), cuop.DTypeError, "x is on cpu|factor is float, a number"),
        (("x", x, 1.0, 4), cuop.DTypeError, "given str"),
    ]
    for arguments, error, message in cases:
        with pytest.raises((error, cuop.DeviceError), match=message):
            kernel(*arguments, grid=1)


def test_grids_are_checked():
    empty = cuop.jit.kernel('extern "C" __global__ void f(int n) {}', "f")
    for wrong in ("many", (1, 2, 3, 4), (), 1.5):
        with pytest.raises(cuop.DTypeError, match="grid: needed is an integer or up to three"):
            empty._launches((1,), wrong, 256, 0)(0)
    launches = empty._launches((12,), lambda m: (m["n"], 2), [32, 4], 16)
    assert launches(0) == ((12, 2, 1), (32, 4, 1), 16)


def test_every_configuration_compiles_without_a_gpu(tmp_path):
    before = cuop.get_global_jit_config()
    cuop.set_global_jit_config(cuop.GlobalJITConfig(cache_dir=str(tmp_path / "cache")))
    try:
        kernel = scale(options=["--use_fast_math"])
        try:
            binary = kernel.compile("sm_90a")
        except cuop.DeviceError as error:
            pytest.skip(f"needs NVRTC: {error}")
        assert binary[:4] == b"\x7fELF" and b"scale" in binary
        kernel.compile("sm_90a", CONFIGS[1])
        compilations = cuop.kernel_cache_info()["compilations"]
        assert scale(options=["--use_fast_math"]).compile("sm_90a") == binary
        assert cuop.kernel_cache_info()["compilations"] == compilations  # from disk
        with pytest.raises(cuop.ExecutionError, match="none of the configurations"):
            kernel.compile("sm_90a", {"ONE": 3})
        with pytest.raises(cuop.CompilationError, match=r"arch is 'compute_90'; NVRTC .* sm_90"):
            kernel.compile("compute_90")
        with pytest.raises(cuop.CompilationError, match=r"scale.cu[(:]4"):
            scale(configs=[{"ONE": "nothing"}]).compile("sm_90a")
    finally:
        cuop.set_global_jit_config(before)


@pytest.mark.cpu
def test_the_tuner_can_be_frozen_and_tells_its_choices(tmp_path):
    before = cuop.get_global_jit_config()
    cuop.set_global_jit_config(cuop.GlobalJITConfig(cache_dir=str(tmp_path / "cache")))
    try:
        cuop.clear_kernel_cache()
        assert not cuop.tuning_frozen()
        assert cuop.tuning_choices() == []
        softmax = cuop.JITSoftmaxFloat()
        softmax.enable_persistent_cache()
        softmax.forward(cuop.ones((2, 3)), cuop.zeros((2, 3)))
        (choice,) = cuop.tuning_choices()
        assert choice["key"].startswith("JITSoftmaxFloat 2 ")
        assert choice["choice"] in ("simple", "tiled") and choice["rounds"] == 9
        assert (choice["gain"] > 0) == (choice["choice"] == "simple")
        assert cuop.tuning_info()["directory"] == str(tmp_path / "cache")
        cuop.set_tuning_frozen(True)
        softmax.forward(cuop.ones((5, 3)), cuop.zeros((5, 3)))
        assert softmax.get_statistics().compilations == 1
        assert softmax.get_statistics().cache_misses == 2
        assert cuop.tuning_clear() == 1
    finally:
        cuop.set_tuning_frozen(False)
        cuop.set_global_jit_config(before)


def test_the_environment_freezes_the_tuner():
    code = "import cuop; print(cuop.tuning_frozen(), cuop.tuning_info()['is_frozen'])"
    assert output_of(code, CUOP_TUNE_FROZEN="1").split() == ["True", "True"]


def test_macros_are_numbers_of_any_kind():
    configs = [{"ONE": np.int64(1)}, {"ONE": np.float32(0.5)}, {"ONE": True}]
    kernel = scale(configs=configs)
    assert kernel.configs == configs
    assert [cuop.jit._macro(config["ONE"], "kernel", "ONE") for config in configs] == [
        "1", "0.5", "1"
    ]  # fmt: skip
