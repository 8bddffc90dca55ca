#!/usr/bin/env python3
"""Writes src/cuop/jit/cpu/exp_tables.h: what vectors of AVX-512 take exponential functions from.

Of each i the number nearest to 2^(i / 16), what that lacks, and polynomials between rows. Needs mpmath:
`python tools/fit_exp_tables.py > src/cuop/jit/cpu/exp_tables.h`, and clang-format.
"""

import mpmath as mp

from fit_coefficients import LN2, nearest, power_rest, text
from fit_minimax import minimax

HEADER = """\
// Powers of two and polynomials of exponential functions for vectors of AVX-512. Written by
// tools/fit_exp_tables.py: do not edit.
#pragma once

namespace cuop::jit {

template <class T>
struct PowerRows;

"""
COUNT = 16


def main() -> None:
    """The whole header."""
    print(HEADER, end="")
    half = LN2 / COUNT / 2 * mp.mpf("1.0005")
    for kind, digits, degree in (("float", 24, 1), ("double", 53, 4)):
        is_float = kind == "float"
        powers = [mp.mpf(2) ** (mp.mpf(i) / COUNT) for i in range(COUNT)]
        near = [nearest(power, digits) for power in powers]
        lacks = [power - each for power, each in zip(powers, near, strict=True)]
        rest = minimax(power_rest, -half, half, degree, lambda r: r * r)
        rest2 = [c * LN2 ** (k + 2) for k, c in enumerate(rest)]
        print(f"template <>\nstruct PowerRows<{kind}> {{")
        for name, values in (
            ("Powers", near),
            ("Lacks", lacks),
            ("Rest", rest),
            ("RestOfTwo", rest2),
        ):
            listed = ", ".join(text(value, is_float) for value in values)
            print(f"  static constexpr {kind} k{name}[] = {{{listed}}};")
        print("};\n")
    print("}  // namespace cuop::jit")


if __name__ == "__main__":
    main()
