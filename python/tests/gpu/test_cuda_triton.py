"""Triton kernels on our tensors."""

import numpy as np
import pytest

import cuop

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int64"])
def test_an_autotuned_kernel_adds(dtype):
    n = 100_003
    a, b = np.arange(n).astype(dtype), np.arange(n)[::-1].astype(dtype)
    x, y = cuop.tensor(a, device="cuda"), cuop.tensor(b.copy(), device="cuda")
    out = cuop.zeros((n,), dtype=dtype, device="cuda")
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    np.testing.assert_array_equal(out.to_numpy(), a + b)
