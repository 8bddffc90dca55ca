"""Convolutions on a GPU against those of the CPU."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}
CONVOLUTIONS = {1: cuop.conv1d, 2: cuop.conv2d, 3: cuop.conv3d}


@st.composite
def problems(draw):
    """x, w and bias as arrays, and the options of a convolution."""
    dtype = draw(st.sampled_from(sorted(TOLERANCES)))
    axes = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    small = st.integers(1, 4)
    kernel, dilation, stride = (draw(st.tuples(*[small] * axes)) for _ in range(3))
    padding = draw(st.tuples(*[st.integers(0, 4)] * axes))
    room = draw(st.tuples(*[st.integers(1, 12)] * axes))
    sizes = [r + d * (k - 1) for r, d, k in zip(room, dilation, kernel, strict=True)]
    inner, outer = draw(small), draw(small) * groups
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.uniform(-1, 1, (draw(small), inner * groups, *sizes)).astype(dtype)
    w = rng.uniform(-1, 1, (outer, inner, *kernel)).astype(dtype)
    bias = rng.uniform(-1, 1, outer).astype(dtype) if draw(st.booleans()) else None
    return (
        x,
        w,
        bias,
        {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
            "activation": draw(st.sampled_from(["none", "relu"])),
        },
    )


@settings(max_examples=60, deadline=None)
@given(problems())
def test_it_agrees_with_the_cpu(problem):
    x, w, bias, options = problem

    def run(device):
        given_bias = None if bias is None else cuop.tensor(bias, device=device)
        conv = CONVOLUTIONS[x.ndim - 2]
        return conv(
            cuop.tensor(x, device=device), cuop.tensor(w, device=device), given_bias, **options
        )

    there, here = run("cuda"), run("cpu").to_numpy()
    assert there.device == "cuda:0"
    assert there.shape == here.shape
    bound = TOLERANCES[str(x.dtype)] * max(1.0, float(np.abs(here).max()))
    np.testing.assert_allclose(there.to_numpy(), here, rtol=0, atol=bound)


def test_it_agrees_with_pytorch():
    torch = pytest.importorskip("torch")
    torch.backends.cudnn.allow_tf32 = False
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.uniform(-1, 1, (4, 16, 30, 31)).astype("float32"), device="cuda")
    w = torch.tensor(rng.uniform(-1, 1, (32, 16, 3, 3)).astype("float32"), device="cuda")
    ours = cuop.conv2d(cuop.from_dlpack(x), cuop.from_dlpack(w), stride=2, padding=1)
    theirs = torch.nn.functional.conv2d(x, w, stride=2, padding=1).cpu().numpy()
    np.testing.assert_allclose(ours.to_numpy(), theirs, rtol=0, atol=1e-4)


def test_the_variant_is_cudnn():
    x = cuop.ones((1, 2, 5, 5), device="cuda")
    w = cuop.ones((3, 2, 3, 3), device="cuda")
    assert cuop.conv_variant(x, w) == "cudnn"
    assert cuop.conv2d(x, w, variant="cudnn").to_numpy().max() == 18.0
    with pytest.raises(cuop.ExecutionError, match="which has 'cudnn'"):
        cuop.conv2d(x, w, variant="onednn")


def test_parts_on_matrix_units_are_as_accurate_as_float32():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (2, 33, 9, 10)).astype("float32")
    w = rng.uniform(-1, 1, (5, 33, 3, 2)).astype("float32")
    options = {"stride": 2, "padding": 1}
    on_gpu = [cuop.tensor(each, device="cuda") for each in (x, w)]
    try:
        assert cuop.conv_variant(*on_gpu, **options, variant="split") == "split"
    except cuop.ExecutionError as error:
        if "it needs a GPU of compute capability 9.0" not in str(error):
            raise
        pytest.skip("needs a GPU of compute capability 9.0")
    there = cuop.conv2d(*on_gpu, **options, variant="split").to_numpy()
    wide = [cuop.tensor(each.astype("float64")) for each in (x, w)]
    np.testing.assert_allclose(there, cuop.conv2d(*wide, **options).to_numpy(), rtol=0, atol=1e-5)
    with pytest.raises(cuop.ExecutionError, match="it is for float32"):
        cuop.conv2d(*(each.to("float64") for each in on_gpu), variant="split")
    with pytest.raises(cuop.ExecutionError, match="the tensors are on the CPU"):
        cuop.conv2d(cuop.tensor(x), cuop.tensor(w), variant="split")


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "complex64", "complex128"])
def test_dtypes_that_cudnn_lacks_are_convolved_directly(dtype):
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-5, 6, shape).astype(dtype) for shape in ((2, 4, 7, 6), (6, 2, 3, 2)))
    options = {"padding": 1, "groups": 2}
    here = cuop.conv2d(cuop.tensor(x), cuop.tensor(w), **options)
    on_gpu = [cuop.tensor(each, device="cuda") for each in (x, w)]
    np.testing.assert_array_equal(cuop.conv2d(*on_gpu, **options).to_numpy(), here.to_numpy())
    assert cuop.conv_variant(*on_gpu, **options) == "direct"
