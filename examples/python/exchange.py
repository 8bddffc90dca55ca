"""PyTorch, CuPy, Triton and cuOP on one GPU: one stream of work, no copies, no waits between."""

import cupy
import torch
import triton
import triton.language as tl

import cuop


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (256, 1024)], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


n = 1 << 20
theirs = torch.arange(n, dtype=torch.float32, device="cuda")
ours = cuop.from_dlpack(theirs)  # the same memory
ours += 1.0
doubled = ours * 2.0
as_cupy = cupy.from_dlpack(doubled)
as_cupy -= 1.0
total = cuop.empty((n,), device="cuda")
add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](ours, doubled, total, n)
back = torch.from_dlpack(total)
expected = 3.0 * (torch.arange(n, device="cuda", dtype=torch.float32) + 1.0) - 1.0
assert theirs.data_ptr() == ours.data_ptr() and back.data_ptr() == total.data_ptr()
assert torch.equal(back, expected)
print("exchange: all checks hold")
