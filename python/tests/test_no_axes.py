"""An empty tuple of axes means no axis wherever NumPy says so, and masks with empty axes."""

import itertools

import numpy as np
import pytest

import cuop

pytestmark = pytest.mark.cpu

SHAPES = [(), (1,), (3,), (1, 1), (2, 3), (0, 2), (1, 2, 1)]

FUNCTIONS = {
    "squeeze": (cuop.squeeze, np.squeeze),
    "roll": (lambda x, axis: cuop.roll(x, 1, axis), lambda x, axis: np.roll(x, 1, axis)),
    "roll by nothing": (
        lambda x, axis: cuop.roll(x, (), axis),
        lambda x, axis: np.roll(x, (), axis),
    ),
    "flip": (cuop.flip, np.flip),
    "transpose": (cuop.transpose, np.transpose),
    "permute_dims": (cuop.permute_dims, np.permute_dims),
    "fftshift": (cuop.fft.fftshift, np.fft.fftshift),
    "ifftshift": (cuop.fft.ifftshift, np.fft.ifftshift),
    "tile": (cuop.tile, np.tile),
}
for name in ("sum", "mean", "prod", "max", "min", "any", "all", "var", "std"):
    FUNCTIONS[name] = (getattr(cuop, name), getattr(np, name))
    FUNCTIONS[f"{name} method"] = (
        lambda x, axis, name=name: getattr(x, name)(axis),
        getattr(np, name),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_empty_tuples_of_axes(name, shape):
    ours, numpys = FUNCTIONS[name]
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    rolls = name.startswith("roll") or name.endswith("shift")
    for axis in ((), []):
        try:
            # Of no dimension NumPy's roll, which the shifts call, cannot do it at all.
            expected = array if rolls and shape == () else numpys(array, tuple(axis))
        except ValueError:
            with pytest.raises(cuop.ShapeError):
                ours(cuop.asarray(array), axis)
            continue
        result = ours(cuop.asarray(array), axis)
        assert result.shape == np.shape(expected)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_empty_axes_elsewhere():
    a, b = np.arange(2.0), np.arange(3.0)
    np.testing.assert_array_equal(
        cuop.tensordot(a, b, axes=((), ())).numpy(), np.tensordot(a, b, axes=((), ()))
    )
    np.testing.assert_array_equal(cuop.tensordot(a, b, axes=0).numpy(), np.tensordot(a, b, axes=0))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(cuop.fft.fftn(x, axes=()).numpy(), np.fft.fftn(x, axes=()))
    part = cuop.PartialReduction("sum", "float64")
    states = part.fold(x, axis=())
    assert states.shape[:-1] == (2, 3)
    np.testing.assert_array_equal(part.finish(states, 1).numpy(), x)
    assert part.finish(part.fold(x), 6).item() == 15


@pytest.mark.parametrize("axes", [3, -1, 2**40, 2**63 - 1, -(2**63), True + 2])
def test_tensordot_of_more_axes_than_there_are(axes):
    with pytest.raises(cuop.ShapeError, match="tensordot: axes"):
        cuop.tensordot(cuop.ones((2, 2)), cuop.ones((2, 2)), axes=axes)


SIZES = [0, 1, 2]


@pytest.mark.parametrize("ndim", [1, 2])
def test_masks_with_empty_axes_as_in_numpy(ndim):
    """Every pair of small shapes of a mask and what it is laid on, read and written."""
    for shape in itertools.product(SIZES, repeat=2):
        for mask_shape in itertools.product(SIZES, repeat=ndim):
            array, mask = np.ones(shape), np.ones(mask_shape, bool)
            tensor = cuop.asarray(array.copy())
            try:
                expected = array[mask]
            except IndexError:
                for use in (
                    lambda t, m: t[m],
                    lambda t, m: t.__setitem__(m, 5.0),
                    lambda t, m: t[m, ...],
                ):
                    with pytest.raises(cuop.IndexError, match="mask"):
                        use(tensor, mask)
                continue
            for given in (mask, cuop.asarray(mask)):
                assert tensor[given].shape == expected.shape, (shape, mask_shape)
                tensor[given] = 5.0
            array[mask] = 5.0
            np.testing.assert_array_equal(tensor.numpy(), array)
