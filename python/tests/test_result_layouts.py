"""How new results lie: as their operands do, by the rules of NumPy's order "K"."""

import numpy as np
import pytest
from layouts import laid_out

import cuop

UNARY = {"exp": np.exp, "negative": np.negative, "isnan": np.isnan, "square": np.square}
BINARY = {"add": np.add, "less": np.less, "maximum": np.maximum}


def some_view(rng, shape):
    """An array of that shape, or one that is broadcast to it, with its axes in any order."""
    shape = [n if rng.random() < 0.85 else 1 for n in shape]
    shape = shape[rng.integers(len(shape) + 1) if rng.random() < 0.2 else 0 :]
    order = rng.permutation(len(shape))
    steps = rng.integers(1, 3, len(shape))
    whole = rng.standard_normal([int(shape[k] * steps[k]) for k in order]).astype(np.float32)
    return whole.transpose(np.argsort(order))[tuple(slice(None, None, int(s)) for s in steps)]


def assert_alike(result, expected):
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-5, atol=1e-6)
    if 0 in expected.shape:
        return
    for size, mine, theirs in zip(result.shape, result.strides, expected.strides, strict=True):
        if size > 1:
            assert mine * expected.itemsize == theirs, (result.strides, expected.strides)


@pytest.mark.parametrize("seed", range(60))
def test_new_results_lie_as_numpys(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(0 if seed % 10 == 0 else 1, 6, rng.integers(1, 5)).tolist()
    x, y = some_view(rng, shape), some_view(rng, shape)
    a, b = laid_out(x), laid_out(y)
    for name, function in UNARY.items():
        assert_alike(getattr(cuop, name)(a), function(x))
    for name, function in BINARY.items():
        assert_alike(getattr(cuop, name)(a, b), function(x, y))
    assert_alike(a * 2, x * np.float32(2))
    assert_alike(cuop.clip(a, -1, 1), np.clip(x, -1, 1))
    assert_alike(a.astype("float64"), x.astype(np.float64))
    assert_alike(cuop.where(a > 0, a, b), np.where(x > 0, x, y))


@pytest.mark.parametrize("size", [3, 70, 300])
def test_large_and_small_results_of_transposed_arrays(size):
    x = np.random.default_rng(1).standard_normal((size, size + 1, 3)).astype(np.float32)
    for axes in [(0, 1, 2), (1, 0, 2), (2, 1, 0), (2, 0, 1), (0, 2, 1), (1, 2, 0)]:
        turned = x.transpose(axes)
        mine = laid_out(turned)
        assert_alike(mine + mine, turned + turned)
        assert_alike(mine * mine[:1], turned * turned[:1])
        assert_alike(mine.astype("int16"), turned.astype(np.int16))
        assert_alike(cuop.flip(mine, axis=0) + mine, turned[::-1] + turned)


def test_backward_steps_are_not_repeated():
    x = cuop.flip(cuop.arange(12).reshape(3, 4), axis=(0, 1))
    assert (x + 1).strides == (4, 1)
    assert (x.T + 1).strides == (1, 4)


def test_fused_results_lie_as_the_first_operands():
    x = np.random.default_rng(2).standard_normal((40, 50)).astype(np.float32)
    a, b = laid_out(x.T), laid_out(x.T.copy())
    with cuop.fused():
        first = a * 2
        second = first + b
        sums = second.sum(axis=-1)
        total = (first - second).sum()
    assert first.strides == second.strides == (1, 50)
    np.testing.assert_allclose(first.to_numpy(), x.T * 2)
    np.testing.assert_allclose(second.to_numpy(), x.T * 3, rtol=1e-6)
    np.testing.assert_allclose(sums.to_numpy(), (x.T * 3).sum(axis=-1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total.item(), -x.sum(), rtol=1e-3, atol=1e-3)


def test_what_wants_rows_has_them():
    x = cuop.arange(6.0).reshape(2, 3).T * 1
    assert x.strides == (1, 3)
    assert x.copy().strides == (2, 1)
    assert x.reshape(6).tolist() == [0, 3, 1, 4, 2, 5]
    assert x.tobytes() == x.to_numpy().tobytes()
    assert (x.T @ x).tolist() == [[5, 14], [14, 50]]
