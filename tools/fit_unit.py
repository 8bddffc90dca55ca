"""A unit in which the constants of gelu_tanh are nearly floats, for the program that fits coefficients."""

import mpmath as mp


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
