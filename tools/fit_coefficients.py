#!/usr/bin/env python3
"""Writes src/cuop/jit/kernels/accurate/coefficients.h: the constants of the elementary functions.

Most polynomials interpolate at Chebyshev's nodes in 60 digits, which is within a factor of two of the
best ones; those of Fused are minimax. Each is of the lowest degree whose error disappears beside the
rounding errors. Needs mpmath:
`python tools/fit_coefficients.py > src/cuop/jit/kernels/accurate/coefficients.h`, and clang-format.
"""

import struct

import mpmath as mp

from fit_minimax import minimax
from fit_unit import double_unit_near, unit_near

mp.mp.dps = 60

HEADER = """\
// Constants of the elementary functions. Written by tools/fit_coefficients.py: do not edit.
#pragma once

namespace cuop::jit::accurate {

inline constexpr double kInvPi = %s;

"""


def nearest(value, digits: int):
    """The nearest number of that many binary digits."""
    if value == 0:
        return mp.mpf(0)
    unit = mp.mpf(2) ** (mp.floor(mp.log(abs(value), 2)) + 1 - digits)
    return mp.nint(value / unit) * unit


def text(value, is_float: bool) -> str:
    """A hexadecimal constant of the nearest float or double."""
    if not is_float:
        return float(value).hex()
    single = struct.unpack("f", struct.pack("f", float(value)))[0]
    return single.hex() + "f"


def chebyshev_nodes(low, high, count: int) -> list:
    """The nodes of interpolation."""
    low, high = mp.mpf(low), mp.mpf(high)
    return [
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count))
        for k in range(count)
    ]


def quotient_of_one(function, high, above: int, below: int, slope) -> tuple[list, list]:
    """The coefficients of N and D in f(z) = (1 + z N(z)) / (1 + slope z + z^2 D(z)) from 0 to high."""
    nodes = chebyshev_nodes(ZERO, high, above + below)
    first = 2
    rows = [
        [
            *(z**k for k in range(1, above + 1)),
            *(-function(z) * z**k for k in range(first, below + first)),
        ]
        for z in nodes
    ]
    right = [function(z) * (1 + slope * z) - 1 for z in nodes]
    fit = list(mp.lu_solve(mp.matrix(rows), mp.matrix(right)))
    return fit[:above], fit[above:]


def interpolation(function, low, high, degree: int) -> list:
    """The coefficients, lowest power first."""
    count = degree + 1
    nodes = chebyshev_nodes(low, high, count)
    divided = [function(x) for x in nodes]
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            divided[i] = (divided[i] - divided[i - 1]) / (nodes[i] - nodes[i - order])
    result = [mp.mpf(0)]
    for node, difference in zip(reversed(nodes), reversed(divided), strict=True):
        shifted = [mp.mpf(0), *result]
        for k, coefficient in enumerate(result):
            shifted[k] -= node * coefficient
        shifted[0] += difference
        result = shifted
    return result[:count]


def erf_part(z):
    """erf(x) / x - 1 of z = x^2."""
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


HALF = mp.mpf(1) / 2


def near_erf(w):
    """The same of w = z - 1/2."""
    return erf_part(max(w + HALF, ZERO))


def near_weight(w):
    """What its error weighs."""
    return 1 / (1 + near_erf(w))


def odd_rest(function):
    """(f(x) - x) / x^3 of z = x^2."""

    def rest(z):
        x = mp.sqrt(z)
        return (function(x) - x) / x**3

    return rest


def scaled_erfc(t):
    """exp(x^2) erfc(x) (1 + 2 x) of t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return mp.exp(x * x) * mp.erfc(x) * (1 + 2 * x)


def tan_part(z):
    """tan(x) / x of z = x^2."""
    return mp.tan(mp.sqrt(z)) / mp.sqrt(z)


TAN_MIDDLE = mp.mpf(3) / 8


def near_tan(w):
    """tan(x) / x - 1 of w = x^2 - 3/8."""
    return tan_part(max(w + TAN_MIDDLE, ZERO)) - 1


LN2 = mp.log(2)
ZERO = mp.mpf("1e-30")  # where a quotient has its limit
LOG_RANGE = (mp.sqrt(2) - 1) ** 2 / (mp.sqrt(2) + 1) ** 2 * mp.mpf("1.001")

# name: function, range, degrees for float and double.
POLYNOMIALS = {
    "kExp": (lambda r: (mp.expm1(r) - r) / r**2, -0.3475, 0.3475, 5, 9),
    "kExp2": (lambda r: (mp.expm1(r * LN2) - r * LN2) / r**2, -0.5005, 0.5005, 5, 9),
    "kCosh": (lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, ZERO, 0.3475**2, 2, 5),
    "kSinh": (odd_rest(mp.sinh), ZERO, 0.3475**2, 2, 4),
    "kLog": (lambda z: 2 * odd_rest(mp.atanh)(z), ZERO, LOG_RANGE, 3, 6),
    "kAtanh": (odd_rest(mp.atanh), ZERO, 0.0445, 3, 7),
    "kSine": (odd_rest(mp.sin), ZERO, 2.475, 5, 5),
    "kShortSine": (odd_rest(mp.sin), ZERO, 0.6175, 3, 5),
    "kCosine": (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf("1e-20"), 0.6175, 3, 5),
    "kTangent": (odd_rest(mp.tan), ZERO, 0.6175, 7, 13),
    "kAsin": (odd_rest(mp.asin), ZERO, 0.2505, 5, 12),
    "kAtan": (odd_rest(mp.atan), ZERO, 0.1717, 5, 11),
    "kTanh": (odd_rest(mp.tanh), ZERO, 0.3605, 5, 10),
    "kSinhWide": (odd_rest(mp.sinh), ZERO, 1.001, 4, 7),
    "kErf": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, ZERO, 0.2505, 4, 8),
    "kCbrt": (lambda m: m ** (-mp.mpf(1) / 3), mp.sqrt(0.5), mp.sqrt(2), 3, 4),
}
ERFC_MIDDLE = mp.mpf("5.125")


def fourth_root(t):
    """The fourth root of erfc, for erf of double."""
    return mp.erfc(t + mp.mpf("1.25")) ** (mp.mpf(1) / 4)


def near_root(t):
    """The same, for erf of float where it is computed in double."""
    return mp.erfc(t + 2) ** mp.mpf("0.25")


def root_of_erfc(t):
    """The 64th root of erfc, which squared six times vanishes among floats at the end of its range."""
    return mp.erfc(t + ERFC_MIDDLE) ** (mp.mpf(1) / 64)


# Also for results of float.
IN_DOUBLE = {
    "kSine",
    "kTangent",
    "kShortErf",
    "kErfcRoot",
    "kErfNear",
    "kErfFar",
    "kShortExp",
    "kShortCbrt",
}


def cubic_power_rest(r):
    """(e^r - 1 - r - r^2 / 2) / r^3."""
    return (mp.expm1(r) - r - r * r / 2) / r**3 if abs(r) > mp.mpf("1e-10") else mp.mpf(1) / 6


def power_rest(r):
    """(e^r - 1 - r) / r^2."""
    return mp.expm1(r) / r**2 - 1 / r if abs(r) > mp.mpf("1e-15") else mp.mpf(1) / 2


CUBE = mp.mpf("0.10229")  # the largest |e| of cbrt
SQUARE = mp.mpf("0.06818")  # that of rsqrt


def cube_rest(e):
    """((1 - e)^(-2/3) - 1) / e."""
    return ((1 - e) ** (-mp.mpf(2) / 3) - 1) / e if abs(e) > ZERO else mp.mpf(2) / 3


def log_rest(base):
    """(log(1 + f) - f) / f^2 to a base."""

    def rest(f):
        return ((mp.log1p(f) - f) / f**2 if abs(f) > mp.mpf("1e-20") else -mp.mpf(1) / 2) / base

    return rest


def log_weight(f):
    """What its relative error weighs in the logarithm."""
    return f * f / mp.log1p(f) if f else 0


def odd_weight(function):
    """What a relative error of the rest of an odd function weighs in it."""
    return lambda z: mp.sqrt(z) ** 3 / function(mp.sqrt(z))


def tail_rest(tail, middle, slope, high, degrees) -> tuple:
    """P of (1 + slope a) tail(a) = 1 + u P(t), u = a / (a + middle) and t = 2 u - 1, for a from 0 to
    high; with its range, degrees and weight.
    """
    middle, slope, high = mp.mpf(middle), mp.mpf(slope), mp.mpf(high)

    def scaled(t):
        a = middle * (1 + t) / (1 - t)
        return (1 + slope * a) * tail(a)

    def rest(t):
        return (scaled(t) - 1) / ((1 + t) / 2)

    ends = mp.mpf("1e-12") - 1, (high - middle) / (high + middle)
    return rest, *ends, *degrees, lambda t: (1 + t) / 2 / scaled(t)


def erfcx(a):
    """exp(a^2) erfc(a)."""
    return mp.exp(a * a) * mp.erfc(a)


def scaled_normal_tail(a):
    """2 exp(a^2 / 2) P(X > a), X standard normal."""
    return erfcx(a / mp.sqrt(2))


HALF_TURN_MIDDLE = mp.mpf("1.9375")
ATAN_MAIN = mp.mpf("0.8125")


def half_turn(w):
    """sin(r) / r - 13/16 of w = r^2 - HALF_TURN_MIDDLE."""
    return mp.sinc(mp.sqrt(w + HALF_TURN_MIDDLE)) - 13 / mp.mpf(16)


def half_turn_rest(z):
    """(sin(r) / r - 1 + z / 8) / z of z = r^2."""
    return (mp.sinc(mp.sqrt(z)) - 1) / z + mp.mpf(1) / 8


GELU_LINEAR = 2 * mp.sqrt(2 / mp.pi)
GELU_CUBIC = GELU_LINEAR * mp.mpf("0.044715")


def print_gelu(is_float: bool) -> None:
    """What gelu_tanh counts in: 2^n e^(r + slope r + r^2 P(r)) is e^(y) of y = n unit + r."""
    kind, near = ("float", unit_near) if is_float else ("double", double_unit_near)
    unit = near(LN2, GELU_LINEAR, GELU_CUBIC)
    scale = unit / LN2
    constants = {
        "kGeluUnit": unit,
        "kGeluPerUnit": 1 / unit,
        "kGeluLinear": nearest(scale * GELU_LINEAR, 20 if is_float else 49),
        "kGeluCubic": scale * GELU_CUBIC,
        "kGeluSlope": 1 / scale - 1,
    }
    for name, value in constants.items():
        print(f"  static constexpr {kind} {name} = {text(value, is_float)};")
    rest, degree = lambda r: power_rest(r / scale) / scale**2, 4 if is_float else 9
    fit = minimax(rest, -0.3475, 0.3475, degree, lambda r: r * r)
    values = ", ".join(text(c, is_float) for c in fit)
    print(f"  static constexpr {kind} kGeluExp[] = {{{values}}};")


def fused_polynomials() -> dict:
    """For the forms that need fused operations: function, range, degrees, weight."""
    quarter, half, middle = mp.mpf("0.6175"), mp.mpf("2.468"), HALF_TURN_MIDDLE
    low, high = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1

    def atan_part(w):
        x = mp.sqrt(w + HALF)
        return (mp.atan(x) / x if x > ZERO else 1) - ATAN_MAIN

    def of_cube(e):
        return ((1 - e) ** (-mp.mpf(1) / 3) - 1) / e if abs(e) > ZERO else mp.mpf(1) / 3

    def of_square(e):
        return ((1 - e) ** -HALF - 1) / e if abs(e) > ZERO else HALF

    def fourth_root_of_erfc(t):
        return mp.erfc(t + mp.mpf("1.25")) ** mp.mpf("0.25")

    def root_weight(t):
        return 4 * mp.erfc(t + mp.mpf("1.25")) ** mp.mpf("0.75")

    return {
        "kHalfTurn": (half_turn_rest, ZERO, half, 3, 0, lambda z: z / mp.sinc(mp.sqrt(z))),
        "kHalfTurnLong": (
            half_turn,
            -middle,
            half - middle,
            0,
            8,
            lambda w: 1 / mp.sinc(mp.sqrt(w + middle)),
        ),
        "kTangent": (
            near_tan,
            -TAN_MIDDLE,
            quarter - TAN_MIDDLE,
            7,
            0,
            lambda w: 1 / (1 + near_tan(w)),
        ),
        "kLog": (log_rest(1), low, high, 8, 0, log_weight),
        "kLog2": (log_rest(LN2), low, high, 8, 0, log_weight),
        "kLog10": (log_rest(mp.log(10)), low, high, 8, 0, log_weight),
        "kCbrt": (of_cube, -CUBE, CUBE, 1, 2, lambda e: e),
        "kRsqrt": (of_square, -SQUARE, SQUARE, 1, 0, lambda e: e),
        "kExp": (power_rest, -0.3475, 0.3475, 4, 0, lambda r: r * r),
        "kExpRest": (cubic_power_rest, -0.3475, 0.3475, 4, 0, lambda r: abs(r) ** 3),
        "kTanh": (odd_rest(mp.tanh), ZERO, 0.81, 6, 0, odd_weight(mp.tanh)),
        "kAsinh": (odd_rest(mp.asinh), ZERO, 0.251, 5, 0, odd_weight(mp.asinh)),
        "kAtanh": (odd_rest(mp.atanh), ZERO, 0.251, 5, 0, odd_weight(mp.atanh)),
        "kAtan": (atan_part, -HALF, HALF, 9, 0, lambda w: 1 / (atan_part(w) + ATAN_MAIN)),
        "kAtanLong": (odd_rest(mp.atan), ZERO, mp.mpf("0.2989"), 0, 11, odd_weight(mp.atan)),
        "kErfNear": (near_erf, -HALF, HALF, 6, 0, near_weight),
        "kErfFar": (fourth_root_of_erfc, -0.25, 2.7, 8, 0, root_weight),
        "kErfcTailLong": tail_rest(erfcx, 4, "1.5", "26.5", (0, 21)),
        "kNormalTailLong": tail_rest(scaled_normal_tail, 5, 1, 13, (0, 21)),
    }


def print_fused(kind: str) -> None:
    """The constants of the forms that need fused operations."""
    is_float = kind == "float"
    digits = 24 if is_float else 53
    print(f"template <>\nstruct Fused<{kind}> {{")
    print(f"  static constexpr {kind} kInvPi = {text(1 / mp.pi, is_float)};")
    first = nearest(mp.pi, digits)
    if first > mp.pi:  # B has to be positive
        first -= mp.mpf(2) ** (mp.floor(mp.log(first, 2)) + 1 - digits)
    # Of double so short that products with numbers of 20 digits are exact.
    second = nearest(mp.pi - first, 24 if is_float else 33)
    for part, value in (("A", first), ("B", second), ("C", mp.pi - first - second)):
        print(f"  static constexpr {kind} kPi{part} = {text(value, is_float)};")
    for name, value in (("InvLn2", 1 / LN2), ("InvLn10", 1 / mp.log(10))):
        for row in two_parts(f"k{name}High", value, digits, is_float, f"k{name}Low"):
            print(f"  static constexpr {kind} {row[0]} = {row[1]};")
    for name, (function, low, high, short, long, weight) in fused_polynomials().items():
        degree = short if is_float else long
        if degree == 0:
            continue
        name = name.removesuffix("Long")
        floor = "1e-7" if name == "kErfFar" else "1e-6" if degree == 21 else "1e-3"
        fit = minimax(function, low, high, degree, weight, floor)
        in_double = not is_float
        values = ", ".join(text(c, not in_double) for c in fit)
        print(f"  static constexpr {'double' if in_double else 'float'} {name}[] = {{{values}}};")
    print_gelu(is_float)
    print("};")


def two_parts(name: str, value, digits: int, is_float: bool, low_name: str) -> list[tuple]:
    """`value` in `digits` digits, and what they leave."""
    high = nearest(value, digits)
    return [(name, text(high, is_float)), (low_name, text(value - high, is_float))]


def scalars(is_float: bool) -> list[tuple]:
    """The single constants."""
    digits = 24 if is_float else 53
    few = 16 if is_float else 42  # so that products with exponents are exact
    half = 12 if is_float else 26
    root_half = mp.sqrt(mp.mpf(1) / 2)
    low = -mp.mpf(7) / 9
    high = mp.mpf(7 if is_float else 24) / (15 if is_float else 32)
    fit = interpolation(scaled_erfc, low, high, 12 if is_float else 22)
    rows = [("kInvLn2", text(1 / LN2, is_float))]
    rows += two_parts("kLn2", LN2, digits, is_float, "kLn2Rest")
    rows += two_parts("kLn2High", LN2, few, is_float, "kLn2Low")
    rows += two_parts("kInvLn2High", 1 / LN2, half, is_float, "kInvLn2Low")
    rows += two_parts("kInvLn10High", 1 / mp.log(10), half, is_float, "kInvLn10Low")
    rows += two_parts("kLog10Of2High", mp.log10(2), few, is_float, "kLog10Of2Low")
    rows += two_parts("kHalfPi", mp.pi / 2, digits, is_float, "kHalfPiRest")
    rows += two_parts("kRootHalf", root_half, digits, is_float, "kRootHalfRest")
    rows += two_parts(
        "kGeluLinear", GELU_LINEAR, 21 if is_float else 49, is_float, "kGeluLinearRest"
    )
    rows += two_parts("kGeluCubic", GELU_CUBIC, digits, is_float, "kGeluCubicRest")
    rows += [
        ("kCbrtTwo", text(mp.cbrt(2), is_float)),
        ("kCbrtHalf", text(1 / mp.cbrt(2), is_float)),
    ]
    rows += two_parts("kErfcMiddle", fit[0], digits, is_float, "kErfcMiddleRest")
    rows.append(("kErfc[]", [text(c, is_float) for c in fit[1:]]))
    if is_float:
        root = minimax(root_of_erfc, -ERFC_MIDDLE, ERFC_MIDDLE, 18, lambda t: 1 / root_of_erfc(t))
        rows.append(("kErfcRoot[]", [text(c, False) for c in root]))
        short = interpolation(POLYNOMIALS["kErf"][0], ZERO, 0.2505, 4)
        near = minimax(erf_part, ZERO, 1.44, 7, lambda z: 1 / (1 + erf_part(z)))
        far = minimax(near_root, -0.8, 1.95, 7, lambda t: near_root(t) ** 3, "1e-7")
        rows.append(("kErfNear[]", [text(c, False) for c in near]))
        rows.append(("kErfFar[]", [text(c, False) for c in far]))
        rows.append(("kShortErf[]", [text(c, False) for c in short]))
        power = minimax(power_rest, -0.3475, 0.3475, 4, lambda r: r * r)
        cube = minimax(cube_rest, -CUBE, CUBE, 6, lambda e: e)
        rows.append(("kShortExp[]", [text(c, False) for c in power]))
        rows.append(("kShortCbrt[]", [text(c, False) for c in cube]))
    rows.append(("kTanhNear", text(mp.mpf("0.6"), is_float)))
    if not is_float:
        near = minimax(near_erf, -HALF, HALF, 11, near_weight)
        far = minimax(fourth_root, -0.25, 4.67, 20, lambda t: fourth_root(t) ** 3, "1e-9")
        rows.append(("kErfNear[]", [text(c, False) for c in near]))
        rows.append(("kErfFar[]", [text(c, False) for c in far]))
        tangent = quotient_of_one(tan_part, 0.6175, 3, 4, -HALF)
        for name, fit in zip(("kTangentAbove[]", "kTangentBelow[]"), tangent, strict=True):
            rows.append((name, [text(c, False) for c in fit]))
        # So short that the products with a number of 13 digits and with its cube are exact.
        rows += two_parts("kGeluLinearShort", GELU_LINEAR, 38, False, "kGeluLinearShortRest")
        rows += two_parts("kGeluCubicShort", GELU_CUBIC, 14, False, "kGeluCubicShortRest")
    for name, (function, low_end, high_end, short, long) in POLYNOMIALS.items():
        fit = interpolation(function, low_end, high_end, short if is_float else long)
        in_double = name in IN_DOUBLE
        rows.append((name + "[]", [text(c, is_float and not in_double) for c in fit]))
    return rows


def print_coefficients(kind: str) -> None:
    """The constants of one type."""
    print(f"template <>\nstruct Coefficients<{kind}> {{")
    for name, value in scalars(kind == "float"):
        if isinstance(value, str):
            print(f"  static constexpr {kind} {name} = {value};")
        else:
            own = "double" if name.removesuffix("[]") in IN_DOUBLE else kind
            print(f"  static constexpr {own} {name} = {{{', '.join(value)}}};")
    print("};")


def print_turn(name: str, value) -> None:
    """An angle in parts of 53 digits, and in parts of 33 for processors without fused operations."""
    print(f"struct {name} {{")
    left = value
    for part in "ABC":
        print(f"  static constexpr double k{part} = {text(nearest(left, 53), False)};")
        left -= nearest(left, 53)
    left = value
    for part in (1, 2, 3):
        short = nearest(left, 33)
        print(f"  static constexpr double kShort{part} = {text(short, False)};")
        left -= short
        if part == 1:
            print(f"  static constexpr double kShortRest = {text(left, False)};")
    print(f"  static constexpr double kShort4 = {text(left, False)};\n}};")


def main() -> None:
    """The whole header."""
    print(HEADER % text(1 / mp.pi, False), end="")
    print_turn("Pi", mp.pi)
    print_turn("HalfPi", mp.pi / 2)
    print("\ntemplate <class T>\nstruct Coefficients;")
    print_coefficients("float")
    print_coefficients("double")
    print("\n// What is used where there are fused operations.\ntemplate <class T>\nstruct Fused;")
    print_fused("float")
    print_fused("double")
    print("\n}  // namespace cuop::jit::accurate")


if __name__ == "__main__":
    main()
