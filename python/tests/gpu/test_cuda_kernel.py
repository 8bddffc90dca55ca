"""Kernels of the user's own on a GPU."""

import numpy as np
import pytest

import cuop

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  int first = blockIdx.x * BLOCK * ITEMS + threadIdx.x;
  for (int k = 0; k < ITEMS; ++k) {
    int i = first + k * BLOCK;
    if (i < n) y[i] = factor * x[i] + WRONG;
  }
}
"""


pytestmark = pytest.mark.usefixtures("own_cache")


def grid(m):
    return cuop.jit.ceil_div(m["n"], m["BLOCK"] * m["ITEMS"])


def test_a_kernel_is_tuned_for_each_key_and_gives_its_result():
    configs = [
        {"BLOCK": block, "ITEMS": items, "WRONG": wrong}
        for block, items, wrong in ((64, 1, 0), (128, 2, 0), (128, 1, 1))
    ]
    scale = cuop.jit.kernel(SCALE, "scale", configs=configs, key=["n"])
    for n in (1000, 257):
        x = cuop.random((n,)).to("cuda")
        y = cuop.zeros((n,)).to("cuda")
        scale(x, y, 3.0, n, grid=grid, block=lambda m: m["BLOCK"])
        expected = np.float32(3.0) * x.to_numpy()
        np.testing.assert_array_equal(y.to_numpy(), expected)
        assert "WRONG=1: another result: y" in scale.last_search()
        best = scale.best_config(x, y, 3.0, n, grid=grid, block=lambda m: m["BLOCK"])
        assert best in configs[:2]
    assert len(cuop.tuning_choices()) == 2


def test_what_the_grid_raises_reaches_the_caller():
    x = cuop.zeros((4,)).to("cuda")
    scale = cuop.jit.kernel(SCALE, "scale", configs=[{"BLOCK": 64, "ITEMS": 1, "WRONG": 0}])
    with pytest.raises(ZeroDivisionError):
        scale(x, x, 1.0, 4, grid=lambda m: 1 // 0)
    with pytest.raises(cuop.DTypeError, match="y is on cpu|y is float"):
        scale(x, cuop.zeros((4,), "float64"), 1.0, 4, grid=1)
