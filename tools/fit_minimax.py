"""Polynomials with the smallest largest error, for the programs that fit coefficients."""

import mpmath as mp


def minimax(function, low, high, degree: int, weight, floor="1e-3") -> list:
    """The coefficients with the smallest largest weighted error (E. Remez, 1934), lowest power first.

    The weight counts as `floor` times its largest value where it is less.
    """
    low, high, count, steps = mp.mpf(low), mp.mpf(high), degree + 2, 400
    grid = [(low + high - (high - low) * mp.cos(mp.pi * k / steps)) / 2 for k in range(steps + 1)]
    values = [function(x) for x in grid]
    weights = [abs(mp.mpf(weight(x))) for x in grid]
    least = max(weights) * mp.mpf(floor)
    weights = [max(each, least) for each in weights]
    chosen = [round(steps * k / (count - 1)) for k in range(count)]
    for _ in range(9):
        rows = [
            [*(grid[k] ** j for j in range(degree + 1)), (-1) ** i / weights[k]]
            for i, k in enumerate(chosen)
        ]
        result = list(mp.lu_solve(mp.matrix(rows), mp.matrix([values[k] for k in chosen])))[:-1]
        errors = [
            w * (mp.polyval(result[::-1], x) - y)
            for x, y, w in zip(grid, values, weights, strict=True)
        ]
        peaks = []
        for k, error in enumerate(errors):
            if not peaks or (error >= 0) != (errors[peaks[-1]] >= 0):
                peaks.append(k)
            elif abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = k
        while len(peaks) > count:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < count or peaks == chosen:
            break
        chosen = peaks
    return result
