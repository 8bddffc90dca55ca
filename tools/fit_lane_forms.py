#!/usr/bin/env python3
"""Writes src/cuop/jit/cpu/lane_coefficients.h: polynomials of sin and tanh on intervals, for tan and pow.

A row has a coefficient of each interval, minimax in the distance from the interval's middle. Needs mpmath:
`python tools/fit_lane_forms.py > src/cuop/jit/cpu/lane_coefficients.h`, and clang-format.
"""

import itertools

import mpmath as mp

from fit_coefficients import nearest, text
from fit_intervals import COUNT, TINY, as_float, print_table, slope_polynomial
from fit_minimax import minimax

HEADER = """\
// Polynomials of sin and tanh on intervals, for tan and pow. Written by tools/fit_lane_forms.py: do not edit.
#pragma once

namespace cuop::jit {

"""


def sine_table() -> None:
    """sin((i - 4) pi / 8 + s) = base + (slope s - (slope s z (odd[0] + odd[1] z) + base z (even[0] + even[1] z)))
    of z = s^2. Bases lack up to half an ulp, that of 3 pi / 8 most: half of it is made good where |s| is largest.
    """
    spacing = mp.pi / COUNT
    # As 1 / spacing is rounded, far arguments are up to 1.021 of half a spacing from a middle.
    end = (spacing / 2 * mp.mpf("1.021")) ** 2
    middles = [(i - COUNT // 2) * spacing for i in range(COUNT)]
    bases = [as_float(mp.sin(m)) if m else -0.0 for m in middles]  # a zero keeps its sign
    slopes = [as_float(mp.cos(m)) for m in middles]
    odd = minimax(lambda z: (1 - mp.sinc(mp.sqrt(z))) / z, TINY, end, 1, lambda z: z)
    even = minimax(lambda z: (1 - mp.cos(mp.sqrt(z))) / z, TINY, end, 1, lambda z: z)
    even[0] -= (1 - bases[-1] / mp.sin(middles[-1])) / (2 * end)
    # Not more than the spacing: with a positive rest 0 keeps its sign.
    part_a = mp.floor(spacing * 2**24) / 2**24
    part_b = nearest(spacing - part_a, 24)
    constants = {
        "kPerSpacing": 1 / spacing,
        "kSpacingA": part_a,
        "kSpacingB": part_b,
        "kSpacingC": spacing - part_a - part_b,
    }
    rows = {"kBase": bases, "kSlope": slopes, "kOdd": odd, "kEven": even}
    print_table("SineIntervals", rows, constants)


def tanh_middle(near):
    """A float next to `near` whose tanh is nearly a float, as nothing is said of what that lacks."""
    if near == 0:
        return near
    above = as_float(mp.tanh(near))  # where a step of the floats is far, the middle is that far off
    middle = as_float(mp.atanh(min(above, 1 - mp.mpf(2) ** -24)))
    step = mp.mpf(2) ** (mp.floor(mp.log(middle, 2)) - 23)
    tried = (middle + k * step for k in range(-4000, 4001))
    return min(tried, key=lambda m: abs(mp.tanh(m) - as_float(mp.tanh(m))))


def hyperbolic_table() -> None:
    """tanh(middle + s) = value + (s slope + s P(s)) up to 9.1, from where it rounds to 1. The first digits of
    a + 5/8 name the interval of a: six of length 1/16, then eight each of 1/8, 1/4 and 1/2, and two of 1.
    """
    shift, most, degree = mp.mpf(5) / 8, mp.mpf("9.1"), 3
    edges = [(8 + k % 8) * mp.mpf(2) ** (k // 8 - 4) - shift for k in range(2, 35)]
    middles, values, slopes, polynomials = [], [], [], []
    for low, high in itertools.pairwise(edges):
        high = min(high, most)
        middle = tanh_middle((low + high) / 2 if low > 0 else low)
        slope = nearest(mp.sech(middle) ** 2, 4)
        if middle == 0:  # s itself where it is small: products that underflow would be rounded
            rest = minimax(
                lambda s, slope=slope: (mp.tanh(s) / s - slope) / s,
                TINY,
                high,
                degree - 1,
                lambda s: s,
            )
            polynomials.append([mp.mpf(0), *rest])
        else:
            polynomials.append(
                slope_polynomial(mp.tanh, middle, slope, low - middle, high - middle, degree)
            )
        middles.append(middle)
        values.append(as_float(mp.tanh(middle)))
        slopes.append(slope)
    # The last five of the digits, from those of 5/8 on, are the place in a row.
    first = (0x3F200000 >> 20) % 32
    rows = {"kMiddle": middles, "kValue": values, "kSlope": slopes}
    rows = {name: row[-first:] + row[:-first] for name, row in rows.items()}
    polynomials = polynomials[-first:] + polynomials[:-first]
    print_table("TanhIntervals", rows, {"kShift": shift}, polynomials)


def tangent_tables() -> None:
    """A right angle in three parts, and r / tan(r) = base + v P(v) of v = r^2 - middle, for |r| up to pi/4.
    Above 4.9 the shift makes all roots real, and the more of it the larger the rounding errors; one is taken
    with which the last step, which counts most, is nearly a double.
    """
    angle = mp.pi / 2
    part_a = mp.floor(angle * 2**23) / 2**23  # not more than it, so that B is positive
    part_b = nearest(angle - part_a, 11)  # its products with numbers of 13 digits are exact
    parts = {"TwoOver": 1 / angle, "A": part_a, "B": part_b, "C": angle - part_a - part_b}
    print("struct RightAngle {")
    for name, value in parts.items():
        print(f"  static constexpr float k{name} = {text(value, True)};")
    print("};\n")

    middle = cotangent_middle()
    base = cotangent_part(middle)

    def slope(v):
        return (cotangent_part(middle + v) - base) / v if v else mp.diff(cotangent_part, middle)

    fit = minimax(
        slope,
        -middle,
        mp.mpf("0.6175") - middle,
        8,
        lambda v: v / cotangent_part(middle + v),
    )

    def lack(shift):
        step = in_squares(fit, shift)[2][-1]
        return abs(step - nearest(step, 53))

    shift = min((5 + mp.mpf(k) / 64 for k in range(32)), key=lack)
    top, roots, steps = in_squares(fit, shift)
    print("struct CotangentSeries {")
    for name, value in (("Middle", middle), ("Base", base), ("Shift", shift)):
        print(f"  static constexpr double k{name} = {text(value, False)};")
    for name, values in (("Top", top), ("Roots", roots), ("Steps", steps)):
        listed = ", ".join(text(c, False) for c in values)
        print(f"  static constexpr double k{name}[] = {{{listed}}};")
    print("};\n")


def in_squares(fit: list, shift) -> tuple:
    """Another form of a polynomial of even degree, in y = v + shift: P = top(y) of degree 2, then for each
    root P = P (y^2 - root) + step (J. Eve, 1964). The roots are those of the odd part, a polynomial in y^2.
    """
    moved = [mp.mpf(0)]
    for c in reversed(fit):
        moved = [up - shift * same for up, same in zip([0, *moved], [*moved, 0], strict=True)]
        moved[0] += c
    even, odd = moved[: len(fit)][0::2], moved[: len(fit)][1::2]
    found = mp.polyroots(odd[::-1], maxsteps=500, extraprec=300)
    roots, steps = sorted(nearest(mp.re(root), 53) for root in found), []
    for root in reversed(roots):
        quotient = [mp.mpf(0)]
        for c in reversed(even):
            quotient.insert(0, c + root * quotient[0])
        steps.insert(0, quotient[0])
        even = quotient[1:-1]
    return [even[0], odd[-1], even[1]], roots, steps


def cotangent_part(z):
    """r / tan(r) of z = r^2."""
    return mp.sqrt(z) * mp.cot(mp.sqrt(z)) if z > TINY else 1 - z / 3


def cotangent_middle():
    """A double near 0.39, whose part is nearly a double. Further up small angles have the larger errors, further
    down large ones.
    """
    near = (mp.mpf("0.39") * 2**54 // 1 + k for k in range(3000))

    def lack(middle):
        part = cotangent_part(middle)
        return abs(part - nearest(part, 53))

    return min((k / 2**54 for k in near), key=lack)


def power_series() -> None:
    """log2(1 + t) / t for what a row of Log2Rows<double> leaves, and (2^r - 1) / r for |r| up to 1/32."""

    def logarithm(t):
        return mp.log1p(t) / t / mp.log(2) if t else 1 / mp.log(2)

    def power(r):
        return mp.expm1(r * mp.log(2)) / r if r else mp.log(2)

    half = mp.mpf(1) / 32
    series = {
        "kLog2": minimax(logarithm, -half, 2 * half, 6, lambda t: 1 / logarithm(t)),
        "kExp2": minimax(power, -half, half, 2, abs),
    }
    print("struct PowerSeries {")
    for name, fit in series.items():
        listed = ", ".join(text(c, False) for c in fit)
        print(f"  static constexpr double {name}[] = {{{listed}}};")
    print("};\n")


def main() -> None:
    """The whole header."""
    print(HEADER, end="")
    sine_table()
    hyperbolic_table()
    tangent_tables()
    power_series()
    print("}  // namespace cuop::jit")


if __name__ == "__main__":
    main()
