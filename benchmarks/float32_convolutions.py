"""Convolutions of float32 on a GPU in full precision: cuOP's own choice and 'split' beside PyTorch's cuDNN.

    python benchmarks/float32_convolutions.py --table table.md
    python benchmarks/float32_convolutions.py --cases 32x64x224x224,128x64x3x3,1,1

Milliseconds of a call within a CUDA graph, medians of interleaved rounds; PyTorch tries cuDNN's engines first
(torch.backends.cudnn.benchmark). "split" is bf16x6: six products of the elements' three parts on matrix units. Errors are
the largest of one image, in units of the sum of the magnitudes of its terms, beside double precision.
"""

import argparse
from pathlib import Path

import torch
from float32_products import L2_BYTES, keep, milliseconds

import cuop
from cuop.bench.gpu_measure import LIBRARIES, Contender

# x, w, stride, padding.
CASES = """
32x64x224x224,128x64x3x3,1,1 64x64x224x224,128x64x3x3,1,1 32x64x224x224,64x64x3x3,1,1 32x32x224x224,32x32x3x3,1,1
32x3x224x224,64x3x7x7,2,3 64x64x56x56,64x64x3x3,1,1 64x64x56x56,256x64x1x1,1,0 64x256x56x56,64x256x1x1,1,0
64x128x28x28,128x128x3x3,1,1 64x256x14x14,256x256x3x3,1,1 64x512x7x7,512x512x3x3,1,1 64x256x56x56,512x256x1x1,2,0
64x128x56x56,128x128x3x3,2,1 32x48x100x101,96x48x5x5,1,2 16x100x61x59,130x100x3x3,1,0 8x64x28x28,64x64x3x3,1,1
80x64x28x28,64x64x3x3,1,1 1x64x512x512,64x64x3x3,1,1 1x256x64x64,256x256x3x3,1,1 1x512x28x28,512x512x3x3,1,1
8x16x224x224,16x16x3x3,1,1 4x32x32x64x64,64x32x3x3x3,1,1 64x256x4096,256x256x9,1,4 256x64x32x32,192x64x3x3,1,1
""".split()
MOST_SETS = 20


def parsed(case):
    x, w, stride, padding = case.split(",")
    shapes = [tuple(map(int, each.split("x"))) for each in (x, w)]
    return *shapes, int(stride), int(padding)


def line(case):
    shape, kernel, stride, padding = parsed(case)
    axes = len(shape) - 2
    theirs_of = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}[axes]
    ours_of = {1: cuop.conv1d, 2: cuop.conv2d, 3: cuop.conv3d}[axes]
    sets = min(max(1, -(-L2_BYTES // (4 * torch.Size(shape).numel()))), MOST_SETS)
    theirs = [[torch.randn(s, device="cuda") for s in (shape, kernel)] for _ in range(sets)]
    ours = [[cuop.from_dlpack(t) for t in pair] for pair in theirs]
    options = {"stride": stride, "padding": padding}
    chosen = cuop.conv_variant(*ours[0], **options)
    ways = [{}] if chosen == "split" else [{}, {"variant": "split"}]
    contenders = [
        Contender(LIBRARIES["torch"](), lambda i: theirs_of(*theirs[i], None, **options), sets)
    ]
    contenders += [
        Contender(LIBRARIES["cuop"](), lambda i, way=way: ours_of(*ours[i], **options, **way), sets)
        for way in ways
    ]
    peer, took, *forced = milliseconds(contenders)
    split = forced[0] if forced else took
    x, w = (t.double() for t in theirs[0])
    wanted, size = (theirs_of(f(x[:1]), f(w), None, **options) for f in (lambda t: t, torch.abs))
    results = [
        theirs_of(*theirs[0], None, **options)[:1],
        torch.from_dlpack(ours_of(*ours[0], **options, variant="split"))[:1],
    ]
    errors = [float(((r.double() - wanted).abs() / size).max()) for r in results]
    flops = 2.0 * results[0].numel() * shape[0] * torch.Size(kernel[1:]).numel()
    stride_text = f", stride {stride}" if stride > 1 else ""
    return (
        f"| {'x'.join(map(str, shape))}, {'x'.join(map(str, kernel))}{stride_text} | {peer:.4g} | {took:.4g} ({chosen}) "
        f"| {peer / took:.2f} | {split:.4g} | {flops / split * 1e-9:.1f} | {peer / split:.2f} "
        f"| {errors[0]:.1e} | {errors[1]:.1e} |"
    )


def main():
    """Print a line a case, and keep them in a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", help="x, w, stride, padding, joined by commas")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    lines = [
        f"- GPU: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"cuDNN {torch.backends.cudnn.version()}",
        "",
        "| x, w | PyTorch | cuOP (way) | ratio | split | TFLOP/s | ratio | PyTorch's error | split's |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for case in options.cases or CASES:
        lines.append(line(case))
        print(lines[-1], flush=True)
        torch.cuda.empty_cache()
    keep(lines, "Convolutions", "float32_convolutions.py", options.table)


if __name__ == "__main__":
    main()
