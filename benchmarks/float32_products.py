"""Products of float32 on a GPU in full precision: cuOP's own choice beside PyTorch's cuBLAS.

    python benchmarks/float32_products.py --table table.md
    python benchmarks/float32_products.py --sizes 1024 4096

Milliseconds of a call within a CUDA graph, medians of interleaved rounds. "way" is what cuOP multiplied by:
bf16x6, six products of the elements' three parts on matrix units, or cuBLASLt. Errors are the largest of eight
rows of the result, in units of the sum of the magnitudes of its terms, beside double precision; "ones" of
numbers that are all positive, where errors do not cancel.
"""

import argparse
import statistics
from pathlib import Path

import torch

import cuop
from cuop.bench.gpu_measure import LIBRARIES, Contender

SQUARES = [256, 512, 768, 1000, 1024, 1280, 1536, 2048, 2500, 3000, 4096, 4097, 8192]
OTHERS = [
    (4096, 16384, 16384), (16384, 4096, 4096), (8191, 8193, 4095), (128, 8192, 8192), (64, 4096, 4096),
    (8192, 64, 8192), (8192, 8192, 64), (8192, 256, 8192), (2000, 100000, 300), (300, 20001, 300),
    (20001, 77, 2001), (1, 8192, 8192), (100000, 512, 512), (1024, 1024, 1),
]  # fmt: skip
BATCHES = [(64, 1024, 1024, 1024), (64, 128, 128, 128), (512, 256, 64, 256), (16, 2048, 2048, 100)]
ROUNDS, L2_BYTES = 5, 120 << 20


def made(shape, positive):
    return torch.rand(shape, device="cuda") if positive else torch.randn(shape, device="cuda")


def error(result, a, b):
    """The largest of some rows of the first matrix."""
    if a.ndim > 2:
        result, a, b = result[0], a[0], b[0]
    rows = torch.linspace(0, a.shape[0] - 1, min(8, a.shape[0]), device="cuda").long()
    wide_a, wide_b = a[rows].double(), b.double()
    size = wide_a.abs() @ wide_b.abs()
    return float(((result[rows].double() - wide_a @ wide_b).abs() / size).max())


def way(a, b):
    op = cuop.JITMatMulFloat()
    config = cuop.JITConfig()
    config.optimization_level = "fast"
    op.set_jit_config(config)
    op.forward(a, b, cuop.zeros((*a.shape[:-1], b.shape[-1]), "float32", device="cuda"))
    precision = op.get_performance_profile().precision
    return precision if precision != "float32" else "cuBLASLt"


def milliseconds(contenders):
    """Of each, from the same interleaved rounds."""
    times = [[] for _ in contenders]
    for turn in range(ROUNDS):
        for k in range(len(contenders)):
            n = (turn + k) % len(contenders)
            times[n].append(contenders[n].sample("G") * 1e3)
    return [statistics.median(t) for t in times]


def line(shape, transposed=False):
    *batch, m, k, n = shape
    item = 4 * (m * k + k * n) * (batch[0] if batch else 1)
    sets = max(1, -(-L2_BYTES // item))
    shapes = [(*batch, m, k), (*batch, n, k) if transposed else (*batch, k, n)]
    theirs = [[made(s, False) for s in shapes] for _ in range(sets)]
    if transposed:
        theirs = [[a, b.mT] for a, b in theirs]
    ours = [[cuop.from_dlpack(x) for x in pair] for pair in theirs]
    took, peer = milliseconds(
        [
            Contender(LIBRARIES["cuop"](), lambda i: cuop.matmul(*ours[i]), sets),
            Contender(LIBRARIES["torch"](), lambda i: torch.matmul(*theirs[i]), sets),
        ]
    )
    a, b = theirs[0]
    errors = [
        error(torch.from_dlpack(cuop.matmul(*ours[0])), a, b),
        error(a @ b, a, b),
    ]
    a, b = (made(x.shape, True) for x in (a, b))
    errors.append(
        error(torch.from_dlpack(cuop.matmul(cuop.from_dlpack(a), cuop.from_dlpack(b))), a, b)
    )
    errors.append(error(a @ b, a, b))
    used = way(*ours[0]) if not batch else ""
    flops = 2.0 * m * k * n * (batch[0] if batch else 1)
    name = " x ".join(map(str, shape)) + (", b transposed" if transposed else "")
    return (
        f"| {name} | {used} | {peer:.4g} | {took:.4g} | {flops / took * 1e-9:.1f} | {peer / took:.2f} | "
        + " | ".join(f"{e:.1e}" for e in errors)
        + " |"
    )


def keep(lines, what, script, table):
    """The lines under their heading, in a file if one is named."""
    if table:
        heading = f"# {what} of float32 beside PyTorch's\n\n- command: python benchmarks/{script}\n"
        table.write_text(heading + "\n".join(lines) + "\n", encoding="utf-8")


def main():
    """Print a line a shape, and keep them in a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", help="of square matrices, and no others")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    lines = [
        f"- GPU: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}",
        "",
        "| [batch,] m, k, n | way | PyTorch | cuOP | TFLOP/s | ratio | error | PyTorch's | ones | PyTorch's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    shapes = [((n, n, n), False) for n in options.sizes or SQUARES]
    if not options.sizes:
        shapes += [((n, n, n), True) for n in (1024, 2048, 4096)]
        shapes += [(shape, False) for shape in OTHERS + BATCHES]
    print("\n".join(lines))
    for shape, transposed in shapes:
        lines.append(line(shape, transposed))
        print(lines[-1], flush=True)
        torch.cuda.empty_cache()
    keep(lines, "Products", "float32_products.py", options.table)


if __name__ == "__main__":
    main()
