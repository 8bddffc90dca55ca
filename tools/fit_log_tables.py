#!/usr/bin/env python3
"""Writes src/cuop/jit/cpu/log_tables.h: what vectors of AVX-512 take logarithms from.

x = 2^e m with m from 1 to 2, whose first digits name a row: c, about 1 / m, and T = -log(c) with so few
digits that e log(2) + T is exact. Of many c near the middle one is taken where T lacks next to nothing. In
the first row c is 1, in the last one 1/2, of 32 rows in two each: next to 1 the logarithm is that of 1 + r,
r = m c - 1, alone. log10 has the rows of log2: e + T by log10(2) is rounded once, with the rest.

The logarithms of float alone have rows of another kind, for the least operations. T counts steps, of which so
many make a factor of 2 that a step's logarithm is nearly a float; factors are c unit, so that of h = m c unit -
unit the logarithm of m c is nearly h; and next to 1 one row is alone.
Needs mpmath and numpy: `python tools/fit_log_tables.py > src/cuop/jit/cpu/log_tables.h`, and clang-format.
"""

import mpmath as mp
import numpy as np

from fit_coefficients import log_rest, log_weight, nearest, text
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


def multiple_of(unit, value):
    """The nearest one."""
    return mp.nint(value / unit) * unit


def exact_unit(largest, precision: int):
    """Of multiples up to `largest` in so many binary digits."""
    return mp.mpf(2) ** (mp.floor(mp.log(largest, 2)) + 1 - precision)


def nearest_factors(middle, spread, step, unit, base, most: int) -> list:
    """Of the multiples of step next to `middle` those whose log is nearest to a multiple of unit, best first."""
    width = np.longdouble(str(step))
    n = np.arange(int((middle - spread) / step), int((middle + spread) / step), dtype=np.int64)
    scaled = -np.log(n * width) / np.longdouble(str(mp.log(base))) / np.longdouble(unit)
    lack = np.abs(scaled - np.rint(scaled))
    nearest_ones = [int(n[k]) * step for k in np.argsort(lack)[:most]]
    return sorted(nearest_ones, key=lambda c: lack_of(c, unit, base))


def lack_of(factor, unit, base):
    """By how much its logarithm is off a multiple of unit."""
    value = -mp.log(factor) / mp.log(base)
    return abs(value - multiple_of(unit, value))


def rows_of(base, is_float: bool, unit) -> tuple[list, list]:
    """The factors and, of their inverses, the logarithms to that base."""
    count, alone = (32, 2) if is_float else (16, 1)
    step = mp.mpf(2) ** (-24 if is_float else -28)
    factors = [mp.mpf(1)] * alone
    for i in range(alone, count - alone):
        # Where in its row c is, next to those alone.
        part = {alone: 0.1, count - 1 - alone: 0.9}.get(i, 0.5)
        middle = 1 / (1 + (i + part) / count)
        factors.append(nearest_factors(middle, middle * 0.003, step, unit, base, 8)[0])
    factors += [mp.mpf(1) / 2] * alone
    return factors, [multiple_of(unit, -mp.log(c) / mp.log(base)) for c in factors]


def error_of(factor, i: int, slope, lack, base) -> tuple:
    """What h = m c slope - slope, its sum and what T lacks are wrong by in a row's smallest results, in their
    last digits: at most, and where large errors count most.
    """
    m = 1 + (i + (np.arange(64) + 0.5) / 64) / 32
    h = (m * float(factor) - 1) * float(slope)
    y = np.minimum(np.log(m), np.log(2 / m)) / float(mp.log(base))
    last = 2.0 ** np.floor(np.log2(np.abs([h, y]) + 1e-30))
    wrong = 0.5 + (last[0] + float(lack) * 2**23) / last[1]
    return round(float(wrong.max()), 2), float(np.mean(wrong**8))


def step_rows_of(base, slope, steps: int, step_log, unit) -> tuple[list, list]:
    """The same in steps of that logarithm, with the least errors. Where e = -1 leaves next to nothing T is what
    it is beside that: e steps are off a little.
    """
    step_base, factors, logarithms = base**step_log, [], []
    for i in range(32):
        times, above = (1, 0) if i < 16 else (2, steps)
        if i in (0, 31):
            factor = mp.mpf(1)
        else:
            middle = times / (1 + (i + 0.5) / 32)
            step = mp.mpf(2) ** (mp.floor(mp.log(middle * slope, 2)) - 23) / slope
            tried = nearest_factors(middle, middle * 0.3 / 32, step, unit, step_base, 1000)
            errors = [
                error_of(c / times, i, slope, lack_of(c, unit, step_base) * step_log, base)
                for c in tried
            ]
            factor = tried[errors.index(min(errors))]
        factors.append(factor / times)
        logarithms.append(above + multiple_of(unit, -mp.log(factor) / mp.log(step_base)))
    return factors, logarithms


def range_of(factors: list) -> tuple:
    """From where to where r is."""
    count = len(factors)
    return (
        min(f * (1 + mp.mpf(i) / count) - 1 for i, f in enumerate(factors)),
        max(f * (1 + mp.mpf(i + 1) / count) - 1 for i, f in enumerate(factors)),
    )


def print_struct(head: str, is_float: bool, constants: dict, tables: dict) -> None:
    """Of numbers and rows of numbers."""
    kind = "float" if is_float else "double"
    print(f"{head} {{")
    for each, value in constants.items():
        print(f"  static constexpr {kind} k{each} = {text(value, is_float)};")
    for each, values in tables.items():
        listed = ", ".join(text(value, is_float) for value in values)
        print(f"  static constexpr {kind} k{each}[] = {{{listed}}};")
    print("};\n")


def print_rows(name: str, base, is_float: bool) -> None:
    """r slope + r^2 P(r) beside e log(2) + T."""
    precision = 24 if is_float else 53
    row_base = mp.mpf(2) if base == 10 else base
    largest = mp.log(mp.mpf(2) ** (149 if is_float else 1074)) / mp.log(row_base)
    unit = exact_unit(largest, precision)
    factors, logarithms = rows_of(row_base, is_float, unit)
    scale = mp.log(base)
    fit = minimax(log_rest(scale), *range_of(factors), 3 if is_float else 8, log_weight)
    log2, first = mp.log(2) / scale, nearest(1 / scale, precision)
    log2_high = multiple_of(unit, log2) if row_base == base else nearest(log2, precision)
    constants = {
        "Slope": first,
        "SlopeRest": 1 / scale - first,
        "OfTwo": log2_high,
        "OfTwoRest": log2 - log2_high,
    }
    tables = {"Factors": factors, "Logs": logarithms} if row_base == base else {}
    head = f"template <>\nstruct {name}<{'float' if is_float else 'double'}>"
    print_struct(head, is_float, constants, {**tables, "Rest": fit})


def print_step_rows(name: str, base, slope, steps: int) -> None:
    """h + h P(h) beside (e steps + T) times a step's logarithm."""
    step_log = nearest(mp.log(2) / mp.log(base) / steps, 24)
    unit = exact_unit(149 * steps, 24)
    factors, logarithms = step_rows_of(base, slope, steps, step_log, unit)

    def excess(h):
        return (mp.log1p(h / slope) / h if h else 1 / slope) / mp.log(base) - 1

    low, high = range_of(factors)
    fit = minimax(excess, low * slope, high * slope, 3, lambda h: 1 / (1 + excess(h)))
    tables = {"Factors": [c * slope for c in factors], "Logs": logarithms, "Terms": fit}
    constants = {"Unit": slope, "Two": steps, "OfStep": step_log}
    print_struct(f"struct {name}", True, constants, tables)


def main() -> None:
    """The whole header."""
    print(HEADER, end="")
    print_rows("LogRows", mp.e, True)
    for name, base in (("LogRows", mp.e), ("Log2Rows", mp.mpf(2)), ("Log10Rows", mp.mpf(10))):
        print_rows(name, base, False)
    # With these slopes, of all with few digits, the largest errors are the least.
    print_step_rows("LogSteps", mp.e, mp.mpf(1), 1)
    print_step_rows("Log2Steps", mp.mpf(2), mp.mpf(45) / 32, 1)
    print_step_rows("Log10Steps", mp.mpf(10), mp.mpf(27) / 64, 3)
    print("}  // namespace cuop::jit")


if __name__ == "__main__":
    main()
