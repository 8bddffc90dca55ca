#!/usr/bin/env python3
"""Writes src/cuop/jit/cpu/interval_coefficients.h: polynomials of erf on eight intervals, and on two.

A row has a coefficient of each interval, minimax in the distance from the interval's middle. Needs mpmath:
`python tools/fit_intervals.py > src/cuop/jit/cpu/interval_coefficients.h`, and clang-format.
"""

import mpmath as mp

from fit_coefficients import nearest, text
from fit_minimax import minimax

HEADER = """\
// Polynomials of erf on eight intervals, and on two. Written by tools/fit_intervals.py: do not edit.
#pragma once

namespace cuop::jit {

"""
COUNT = 8
TINY = mp.mpf("1e-12")


def as_float(value):
    """The nearest float."""
    return nearest(value, 24)


def row(name: str, values: list) -> str:
    """A row of the table."""
    return f"  static constexpr float {name}[] = {{{', '.join(text(v, True) for v in values)}}};"


def print_table(name: str, rows: dict, constants: dict, polynomials=()) -> None:
    """A structure of rows; coefficients of polynomials, one for each interval, are kRest[degree][interval]."""
    print(f"struct {name} {{")
    for key, value in constants.items():
        print(f"  static constexpr float {key} = {text(value, True)};")
    for key, values in rows.items():
        assert not polynomials or len(values) == len(polynomials)
        print(row(key, values))
    if polynomials:
        columns = ", ".join(
            "{" + ", ".join(text(c, True) for c in column) + "}"
            for column in zip(*polynomials, strict=True)
        )
        print(f"  static constexpr float kRest[][{len(polynomials)}] = {{{columns}}};")
    print("};\n")


def slope_polynomial(function, middle, slope, low, high, degree: int) -> list:
    """Those of (f(middle + s) - f(middle) - slope s) / s, s from low to high; around 0 for s above 0, of what
    is relative.
    """

    def rest(s):
        s = s if abs(s) > TINY else TINY
        return (function(middle + s) - function(middle)) / s - slope

    if middle == 0:
        return minimax(rest, TINY, high, degree, lambda s: 1)
    return minimax(rest, low, high, degree, lambda s: abs(s))


def erf_spacing():
    """About 9/16, in 20 digits; its erf is nearly a float, as a rounding error there would count."""
    for k in range(1000):
        spacing = mp.mpf(9) / 16 + mp.mpf(k) / 2**20
        value = mp.erf(spacing)
        if abs(as_float(value) - value) < mp.mpf(2) ** -32:
            return spacing
    raise ValueError("no spacing found")


def erf_table() -> None:
    """erf(a) = base + (value + (s slope + s P(s))) of s = a - i spacing."""
    spacing, degree = erf_spacing(), 6
    half = spacing / 2
    bases, values, slopes, polynomials = [], [], [], []
    for i in range(COUNT):
        middle = i * spacing
        base = mp.mpf(0 if i < 2 else 1)
        above_base = mp.erf if base == 0 else lambda a: -mp.erfc(a)
        value = as_float(above_base(middle))
        slope = nearest(2 / mp.sqrt(mp.pi) * mp.exp(-middle * middle), 4)
        polynomials.append(slope_polynomial(above_base, middle, slope, -half, half, degree))
        bases.append(base)
        values.append(value)
        slopes.append(slope)
    rows = {"kBase": bases, "kValue": values, "kSlope": slopes}
    constants = {"kSpacing": spacing, "kPerSpacing": 1 / spacing}
    print_table("ErfIntervals", rows, constants, polynomials)


def erf_series() -> None:
    """erf(a) = a + a P(a^2 - middle) up to `near`; beyond, 1 - Q(a - middle)^4, of absolute errors. Middles
    further down have larger errors where an interval ends, and further up where it begins; that of Q also
    is as far up as its difference to `near` is exact without three bits.
    """
    near, near_middle, far_middle = mp.mpf("1.125"), mp.mpf("0.5625"), mp.mpf("1.375")
    most = mp.mpf(4)  # rounds to 1, also with what is wrong with Q

    def near_part(w):
        a = mp.sqrt(max(w + near_middle, TINY**2))
        return mp.erf(a) / a - 1

    def root(t):
        return mp.erfc(t + far_middle) ** mp.mpf("0.25")

    terms = minimax(
        near_part, -near_middle, near**2 - near_middle, 6, lambda w: 1 / (near_part(w) + 1)
    )
    roots = minimax(root, near - far_middle, most - far_middle, 7, lambda t: root(t) ** 3, "1e-5")
    print("struct ErfSeries {")
    constants = {"Near": near, "NearMiddle": near_middle, "FarMiddle": far_middle, "Most": most}
    for name, value in constants.items():
        print(f"  static constexpr float k{name} = {text(value, True)};")
    print(row("kNearTerms", terms))
    print(row("kRoot", roots))
    print("};\n")


def main() -> None:
    """The whole header."""
    print(HEADER, end="")
    erf_table()
    erf_series()
    print("}  // namespace cuop::jit")


if __name__ == "__main__":
    main()
