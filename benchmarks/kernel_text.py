"""How long NVRTC takes for kernels that are as short as they can be: most of it is reading text.

    python benchmarks/kernel_text.py                       # the sources of this checkout
    python benchmarks/kernel_text.py --sources OTHER/src   # beside those of another one

Milliseconds, the median of some compilations of y = f(x) over float32 for sm_90, on the host alone.
"""

import argparse
import ctypes
import ctypes.util
import re
import statistics
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTORS = (
    "Add Sqrt Exp Expm1 Log Log10 Cbrt Erf Gelu Sin Acos Tanh Asinh Sigmoid Silu Softplus".split()
)


def library():
    """NVRTC of the toolkit that is installed."""
    found = sorted(Path("/usr/local").glob("cuda*/lib*/libnvrtc.so.1[0-9]*"))
    return ctypes.CDLL(str(found[-1]) if found else ctypes.util.find_library("nvrtc"))


def header_of(sources, functor):
    """The header that defines a functor, as kernels include it."""
    for path in sorted((sources / "cuop/jit/kernels").glob("*.h")):
        if re.search(rf"^struct {functor} : ", path.read_text(encoding="utf-8"), re.M):
            return path.relative_to(sources)
    raise SystemExit(f"{functor} is not defined below {sources}")


def source_of(sources, functor):
    """A kernel of one function."""
    value = "x, x" if functor == "Add" else "x"
    return f"""#define CUOP_REAL_ONLY
#include "cuop/jit/kernels/elementwise.cuh"
#include "{header_of(sources, functor)}"
namespace cuop::jit {{
extern "C" __global__ void f(float* y, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = y[i];
  y[i] = fn::{functor}::apply({value});
}}
}}
"""


def milliseconds(nvrtc, sources, text, rounds):
    """The median over compilations."""
    options = [b"--gpu-architecture=sm_90", b"--std=c++20", b"-default-device"]
    options.append(b"-I" + str(sources).encode())
    array = (ctypes.c_char_p * len(options))(*options)
    times = []
    for _ in range(rounds):
        program = ctypes.c_void_p()
        begin = time.perf_counter()
        made = nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"f.cu", 0, None, None
        )
        compiled = made or nvrtc.nvrtcCompileProgram(program, len(options), array)
        times.append(1e3 * (time.perf_counter() - begin))
        if compiled:
            raise SystemExit(f"NVRTC says {compiled} of\n{text}")
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return statistics.median(times)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=Path, help="another checkout's src to stand beside")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    nvrtc = library()
    places = [p for p in (options.sources, ROOT / "src") if p is not None]
    print("| function | " + " | ".join(["before", "now"][-len(places) :]) + " |")
    print("|---" * (1 + len(places)) + "|")
    for functor in FUNCTORS:
        times = [
            milliseconds(nvrtc, place, source_of(place, functor), options.rounds)
            for place in places
        ]
        print("| " + " | ".join([functor.lower(), *(f"{t:.1f}" for t in times)]) + " |", flush=True)


if __name__ == "__main__":
    main()
