#!/usr/bin/env python3
"""Writes src/cuop/jit/cpu/log_tables.h: what vectors of AVX-512 take logarithms from.

x = 2^e m with m from 1 to 2, whose first digits name a row: c, about 1 / m, and T = -log(c) with so few
digits that e log(2) + T is exact. Of many c near the middle one is taken where T lacks next to nothing. In
the first row c is 1, in the last one 1/2, of 32 rows in two each: next to 1 the logarithm is that of 1 + r,
r = m c - 1, alone. log2 of float has 16 rows, from which one operation fetches, and the rows next to those
with c where r, of the sign of T or not, loses least. log10 has the rows of log2: e + T by log10(2) is rounded once, with the rest.
Needs mpmath and numpy: `python tools/fit_log_tables.py > src/cuop/jit/cpu/log_tables.h`, and clang-format.
"""

import mpmath as mp
import numpy as np

from fit_coefficients import log_rest, nearest, text
from fit_minimax import minimax

HEADER = """\
// Rows and polynomials of logarithms for vectors of AVX-512. Written by tools/fit_log_tables.py: do
// not edit.
#pragma once

namespace cuop::jit {

template <class T>
struct LogRows;
template <class T>
struct Log2Rows;
template <class T>
struct Log10Rows;

"""


def best_factor(middle, spread, digits: int, unit, base):
    """The c of so many binary digits next to `middle` for which log(c) is nearest to a multiple of unit."""
    step = 2.0**-digits
    first = int((middle - spread) / step)
    c = np.arange(first, int((middle + spread) / step), dtype=np.int64).astype(np.longdouble) * step
    scaled = -np.log(c) / np.longdouble(str(mp.log(base))) / np.longdouble(unit)
    lack = np.abs(scaled - np.rint(scaled))
    tried = [mp.mpf(float(c[k])) for k in np.argsort(lack)[:8]]

    def true_lack(each):
        value = -mp.log(each) / mp.log(base) / unit
        return abs(value - mp.nint(value))

    return min(tried, key=true_lack)


def rows_of(base, count: int, digits: int, unit, edges) -> tuple[list, list]:
    """The factors and, of their inverses, the logarithms to that base."""
    factors, logarithms, alone = [], [], 2 if count == 32 else 1
    for i in range(count):
        if i < alone:
            factor = mp.mpf(1)
        elif i >= count - alone:
            factor = mp.mpf(1) / 2
        else:
            part = {alone: edges[0], count - 1 - alone: edges[1]}.get(i, 0.5)
            middle = 1 / (1 + (i + part) / count)
            factor = best_factor(middle, middle * 0.003, digits, unit, base)
        factors.append(factor)
        logarithms.append(mp.nint(-mp.log(factor) / mp.log(base) / unit) * unit)
    return factors, logarithms


def print_rows(name: str, base, is_float: bool) -> None:
    """One struct."""
    kind = "float" if is_float else "double"
    row_base = mp.mpf(2) if base == 10 else base
    is_short = is_float and row_base == 2
    count, digits = 32 if is_float and not is_short else 16, 24 if is_float else 28
    # Where in its row c is, next to those alone.
    edges = (0.2, 0.75) if is_short else (0.1, 0.9)
    largest = mp.log(mp.mpf(2) ** (149 if is_float else 1074)) / mp.log(row_base)
    unit = mp.mpf(2) ** (mp.floor(mp.log(largest, 2)) + 1 - (24 if is_float else 53))
    factors, logarithms = rows_of(row_base, count, digits, unit, edges)
    low = min(f * (1 + mp.mpf(i) / count) - 1 for i, f in enumerate(factors))
    high = max(f * (1 + mp.mpf(i + 1) / count) - 1 for i, f in enumerate(factors))
    degree = 3 if is_float else 8
    scale = mp.log(base)
    fit = minimax(log_rest(scale), low, high, degree, lambda r: r * r / mp.log1p(r) if r else 0)
    log2 = mp.log(2) / scale
    if row_base == base:
        log2_high = mp.nint(log2 / unit) * unit
        tables = (("Factors", factors), ("Logs", logarithms), ("Rest", fit))
    else:
        log2_high = nearest(log2, 24 if is_float else 53)
        tables = (("Rest", fit),)
    print(f"template <>\nstruct {name}<{kind}> {{")
    first = nearest(1 / scale, 24 if is_float else 53)
    for each, value in (
        ("Slope", first),
        ("SlopeRest", 1 / scale - first),
        ("OfTwo", log2_high),
        ("OfTwoRest", log2 - log2_high),
    ):
        print(f"  static constexpr {kind} k{each} = {text(value, is_float)};")
    for each, values in tables:
        listed = ", ".join(text(value, is_float) for value in values)
        print(f"  static constexpr {kind} k{each}[] = {{{listed}}};")
    print("};\n")


def main() -> None:
    """The whole header."""
    print(HEADER, end="")
    for is_float in (True, False):
        for name, base in (("LogRows", mp.e), ("Log2Rows", mp.mpf(2)), ("Log10Rows", mp.mpf(10))):
            print_rows(name, base, is_float)
    print("}  // namespace cuop::jit")


if __name__ == "__main__":
    main()
