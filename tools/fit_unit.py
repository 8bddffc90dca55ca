"""A unit in which the constants of gelu_tanh are nearly floats or doubles, for the program that fits coefficients."""

import mpmath as mp
import numpy as np


def lack(constant: int, digits: int) -> float:
    """By how much of itself a whole number differs from the nearest one of so many binary digits."""
    step = 1 << (constant.bit_length() - digits)
    left = constant % step
    return min(left, step - left) / constant


def unit_near(base, linear, cubic):
    """A float near `base`, with which times linear / base and cubic / base are nearly floats, the first one of
    20 digits: nothing has to be said of what they lack.
    """
    bits, digits = 120, 24
    first, second = (int(mp.nint(each / base * 2**bits)) for each in (linear, cubic))
    middle = int(base * 2**digits)
    return mp.mpf(2) ** -digits * min(
        range(middle - middle // 32, middle + middle // 32),
        key=lambda n: max(lack(n * first, 20), lack(n * second, digits)),
    )


def double_unit_near(base, linear, cubic):
    """The same of double, the first one of 49 digits: the best of the 2^28 doubles from `base` on."""
    block, digits = 1 << 22, 53
    first, steps = int(base * 2**digits), np.arange(block, dtype=np.uint64)

    def lacks(constant, kept: int):
        """A function of a block: by how much of itself n constant / base differs from kept digits."""
        unit = mp.mpf(2) ** (mp.floor(mp.log(constant, 2)) + 1 - kept)
        share = constant / base / unit / 2**digits
        place, step = (int(mp.nint(share * n % 1 * 2**64)) for n in (first, 1))
        grown = steps * np.uint64(step)  # a unit is 2^64, in which it wraps

        def of_block(i: int):
            left = grown + np.uint64((place + step * block * i) % 2**64)
            return np.abs(left.view(np.int64)) * float(unit / constant / 2**64)

        return of_block

    of_linear, of_cubic = lacks(linear, 49), lacks(cubic, digits)
    best = []
    for i in range(64):
        lack_of_both = np.maximum(of_linear(i), of_cubic(i))
        k = int(lack_of_both.argmin())
        best.append((lack_of_both[k], first + block * i + k))
    return mp.mpf(2) ** -digits * min(best)[1]
