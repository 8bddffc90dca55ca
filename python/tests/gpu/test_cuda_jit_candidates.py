"""What 'auto' measures on a GPU, what the report tells of it, and where it is kept."""

import numpy as np
import pytest
from test_cuda_jit import case, check, numbers

import cuop


@pytest.fixture(autouse=True)
def on_gpu(own_cache):
    device = cuop.current_device()
    cuop.set_current_device("cuda")
    cuop.clear_kernel_cache()
    yield
    cuop.set_current_device(device)


def chosen(name, **fields):
    """A wrapper after a call whose result was right."""
    jit, inputs, shape, dtype = case(name, "Float")
    jit.set_jit_config(cuop.JITConfig(optimization_level="best", **fields))
    check(jit, inputs, shape, dtype, name, "Float")
    return jit, inputs, shape


@pytest.mark.parametrize(
    "name", ["Gemv", "Relu", "Softmax", "BatchNorm", "LayerNorm", "Convolution2D"]
)
def test_auto_measures_at_least_four_kernels_of_which_none_is_wrong(name):
    jit, inputs, shape = chosen(name)
    report = jit.get_tuning_report()
    assert report.source == "measured" and report.made_in_ms > 0
    tried = {**report.not_measured, **dict.fromkeys(report.measured, "")}
    own = {kernel: why for kernel, why in tried.items() if kernel.startswith("tiled")}
    assert len([why for why in own.values() if "the same launches" not in why]) >= 4
    assert all("another result" not in why and "failed" not in why for why in own.values())
    # What all others were compared with has a time, even where one run of each was far slower.
    assert report.measured and min(report.measured.values()) > 0
    for kernel in tried:
        assert kernel in report.text
    y = jit.forward(*inputs, cuop.ones(shape))
    again = jit.get_tuning_report()
    assert again.source == "memory" and again.measured == report.measured
    assert again.text == report.text
    del y


OWN_PRODUCTS = ("tiled/", "tensor_core/", "simple/")


# Beyond an edge of 64 tiles of two sizes are worth a try.
@pytest.mark.parametrize(("m", "n", "least_own"), [(17, 21, 3), (80, 72, 5)])
def test_auto_measures_a_product_as_the_library_and_by_kernels_of_its_own(m, n, least_own):
    a, b, c = numbers(1, m, 33), numbers(2, 33, n), numbers(3, m, n)
    jit = cuop.JITGemmFloat(False, False, 2.0, 0.5)
    jit.set_weight(b)
    jit.set_jit_config(cuop.JITConfig(optimization_level="best"))
    y = jit.forward(a, cuop.tensor(c, dtype="float32"))
    np.testing.assert_allclose(y.to_numpy(), 2.0 * a @ b + 0.5 * c, rtol=0, atol=1e-3)
    report = jit.get_tuning_report()
    assert report.source == "measured" and report.made_in_ms > 0
    tried = {**report.not_measured, **dict.fromkeys(report.measured, "")}
    own = {kernel: why for kernel, why in tried.items() if kernel.startswith(OWN_PRODUCTS)}
    assert {kernel.split("/")[0] for kernel in own} == {"tiled", "tensor_core", "simple"}
    ran = [why for why in own.values() if "not run" not in why and "same launches" not in why]
    assert len(ran) >= least_own, report.text
    assert all("another result" not in why and "failed" not in why for why in own.values())
    # The default beside them: the fastest of the library's algorithms.
    algorithms = [kernel for kernel in report.measured if kernel.startswith("cuBLASLt's choice")]
    assert len(ran) + len(algorithms) >= 4 and min(map(report.measured.get, algorithms)) > 0
    assert "library: " in report.text and report.kernel in ("library", *own)
    again = jit.forward(a, cuop.tensor(c, dtype="float32"))
    assert jit.get_tuning_report().source == "memory"
    np.testing.assert_allclose(again.to_numpy(), y.to_numpy(), rtol=0, atol=1e-3)


def test_a_report_says_why_nothing_was_measured():
    jit, inputs, shape, dtype = case("Softmax", "Float")
    jit.set_jit_config(cuop.JITConfig(optimization_level="O2"))
    check(jit, inputs, shape, dtype, "Softmax", "Float")
    report = jit.get_tuning_report()
    assert report.measured == {} and report.kernel == "tiled"
    assert set(report.not_measured.values()) == {"not measured: the choice is by rule"}


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()} if folder.exists() else set()


@pytest.mark.parametrize("name", ["Relu", "Gemm"])
def test_a_wrappers_directory_holds_its_binaries_and_choices(name, tmp_path):
    own = tmp_path / "own"
    jit, inputs, shape = chosen(name)
    y = cuop.ones(shape)
    before = files(tmp_path)  # what plain operations compiled
    jit.set_persistent_cache_directory(own)
    cuop.clear_kernel_cache()
    jit.forward(*inputs, y)
    assert jit.get_tuning_report().source == "measured"
    assert files(tmp_path) <= before and not own.exists()  # the cache is off
    jit.enable_persistent_cache(True)
    shared = files(tmp_path)
    jit.forward(*inputs, y)
    kept = files(own)
    assert files(tmp_path) == shared | kept
    kernels = {path for path in kept if path.parent == own / "kernels" and path.suffix == ".kernel"}
    assert {path.parent for path in kept - kernels} <= {own, own / "kernels"}
    assert any(path.suffix == ".json" for path in kept)
    assert kernels or name == "Gemm"  # which may be the library's alone


def test_the_next_wrapper_finds_the_choice_where_it_was_kept(tmp_path):
    for source in ("measured", "disk"):
        cuop.clear_kernel_cache()
        jit, inputs, shape, dtype = case("Softmax", "Float")
        jit.enable_persistent_cache(True)
        jit.set_persistent_cache_directory(tmp_path / "own")
        jit.set_jit_config(cuop.JITConfig(optimization_level="best"))
        jit.forward(*inputs, cuop.tensor(np.ones(shape, dtype)))
        report = jit.get_tuning_report()
        assert report.source == source
    assert report.measured == {}
    assert all("kept on disk" in why for why in report.not_measured.values())
