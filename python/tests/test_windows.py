"""Flatten and View: other shapes of the same elements, and windows of a tensor."""

import numpy as np
import pytest

import cuop

kinds = pytest.mark.parametrize("kind, dtype", [("Float", np.float32), ("Double", np.float64)])


def make(name, kind, *args, **options):
    return getattr(cuop, name + kind)(*args, **options)


@kinds
def test_flatten(kind, dtype):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(dtype)
    flatten = make("Flatten", kind)
    for start, shape in [(0, (24,)), (1, (2, 12)), (2, (2, 3, 4)), (-2, (2, 12))]:
        y = cuop.zeros(shape, dtype)
        assert flatten.forward(x, y, start) is y
        np.testing.assert_array_equal(np.asarray(y), x.reshape(shape))
    # Without start_dim: the constructor's, or 1 when y asks for it.
    assert flatten.forward(x, cuop.zeros(24, dtype)).shape == (24,)
    np.testing.assert_array_equal(flatten.forward(x, cuop.zeros((2, 12), dtype)), x.reshape(2, 12))
    two = make("Flatten", kind, start_dim=2)
    with pytest.raises(cuop.ShapeError, match=r"y has shape \(2, 12\), needed is \(2, 3, 4\) for"):
        two.forward(x, cuop.zeros((2, 12), dtype))
    with pytest.raises(cuop.ShapeError, match=r"needed is \(24,\) or \(2, 12\) \(start_dim=1\)"):
        flatten.forward(x, cuop.zeros((3, 8), dtype))
    t = cuop.tensor(x)
    alias = t.view(2, 12)
    assert flatten.forward(t, alias, 1) is alias  # y may be x's own memory
    np.testing.assert_array_equal(np.asarray(alias), x.reshape(2, 12))


@kinds
def test_view_copies_a_window(kind, dtype):
    x = np.arange(12, dtype=dtype).reshape(3, 4)
    view = make("View", kind)
    y = cuop.zeros((2, 3), dtype)
    assert view.forward(x, y, 5, (2, 3)) is y
    assert y.tolist() == [[5, 6, 7], [8, 9, 10]]
    view.set_offset(2)
    view.set_shape((2, 3))
    assert view.forward(x, y).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert view.forward(x.T, y).tolist() == [[8, 1, 5], [9, 2, 6]]
    with pytest.raises(cuop.ShapeError, match="6 elements from offset 7 leave the tensor"):
        view.forward(x, y, 7)
    with pytest.raises(cuop.ShapeError, match=f"View{kind}: offset is -1"):
        view.set_offset(-1)
    with pytest.raises(cuop.ShapeError, match=r"has shape \(2, 3\), needed is \(3, 2\)"):
        view.forward(x, y, 0, (3, 2))


@kinds
def test_view_takes_an_offset_of_each_axis(kind, dtype):
    x = np.arange(3 * 4 * 5, dtype=dtype).reshape(3, 4, 5)
    view = make("View", kind)
    y = cuop.zeros((2, 2, 3), dtype)
    box = x[1:3, 2:4, 1:4]
    np.testing.assert_array_equal(view.forward(x, y, [1, 2, 1], [2, 2, 3]), box)
    view.set_offset([1, 2, 1])
    np.testing.assert_array_equal(view.forward(x, cuop.zeros((2, 2, 3), dtype)), box)
    view.set_shape((2, 2, 3))
    np.testing.assert_array_equal(view.forward(x, y), box)
    # An offset of the call wins, an integer counts elements, and views need no copy first.
    np.testing.assert_array_equal(view.forward(x, y, (0, 0, 0)), x[:2, :2, :3])
    assert view.forward(x, y, 5).tolist() == x.ravel()[5:17].reshape(2, 2, 3).tolist()
    turned = np.ascontiguousarray(x.transpose(2, 1, 0)).T
    np.testing.assert_array_equal(view.forward(turned, y), box)
    t = cuop.tensor(x)
    np.testing.assert_array_equal(view.forward(t, t.view((0, 0, 0), (2, 2, 3))), box)  # overlapping
    assert view.cost(x, y) == (0.0, 2 * box.nbytes)
    empty = view.forward(x, cuop.zeros((0, 4, 5), dtype), [3, 0, 0], [0, 4, 5])
    assert empty.shape == (0, 4, 5)


@kinds
def test_offsets_of_axes_that_leave_the_tensor_are_refused(kind, dtype):
    x = cuop.tensor(np.arange(12, dtype=dtype).reshape(3, 4))
    view = make("View", kind)
    y = cuop.zeros((2, 3), dtype)
    refusals = [
        (
            ([2, 0], [2, 3]),
            r"window of shape \(2, 3\) at offset \(2, 0\) leaves axis 0 of .*\(3, 4\)",
        ),
        (([0, 2], [2, 3]), r"at offset \(0, 2\) leaves axis 1"),
        (([2**63 - 1, 0], [2, 3]), r"leaves axis 0"),
        (([0, 0], [2, -3]), r"-3"),
        (([0, -1], [2, 3]), r"offset is \(0, -1\), needed is 0 or more of each axis"),
        (([0], [2, 3]), r"have 1 and 2 entries; needed is one for each of the 2 axes"),
        (([0, 0], [6]), r"have 2 and 1 entries"),
    ]
    for arguments, text in refusals:
        with pytest.raises(cuop.ShapeError, match=text):
            view.forward(x, y, *arguments)
        with pytest.raises(cuop.ShapeError, match=text):
            cuop.view(x, arguments[1], arguments[0])
    with pytest.raises(cuop.ShapeError, match=rf"View{kind}: offset is \(-1, 0\)"):
        view.set_offset([-1, 0])
    for wrong in (True, 1.5, "ab", [0.5, 0]):
        with pytest.raises(cuop.DTypeError, match="offset: an integer or a sequence of integers"):
            view.set_offset(wrong)
    assert y.tolist() == [[0] * 3] * 2


def test_tensor_view_is_a_window_without_a_copy():
    t = cuop.arange(12)
    for window in (t.view((2, 3), offset=5), t.view(2, 3, offset=5), t.view(5, (2, 3))):
        assert window.tolist() == [[5, 6, 7], [8, 9, 10]]
    window.fill(0)
    assert t.tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 11]
    assert t.view(3, 4).shape == t.view((3, 4)).shape == (3, 4)
    square = t.view(3, 4)
    boxes = [square.view((1, 1), (2, 3)), square.view((2, 3), offset=(1, 1))]
    boxes += [square.view(2, 3, offset=[1, 1]), cuop.view(square, (2, 3), (1, 1))]
    for box in boxes:
        assert box.tolist() == square[1:3, 1:4].tolist()
    box.fill(7)
    assert square.tolist() == [[0, 1, 2, 3], [4, 7, 7, 7], [0, 7, 7, 7]]
    out = cuop.zeros((2, 3), dtype=t.dtype)
    assert cuop.view(square, (2, 3), (1, 1), out=out) is out and out.tolist() == [[7] * 3] * 2
    with pytest.raises(cuop.ShapeError, match="leave the tensor, which has 12"):
        t.view(10, (3,))
