"""Tensors: making them, looking into them, computing, and passing them on without a copy."""

import numpy as np

import cuop

print("device:", cuop.current_device())

# Made from numbers, sizes, ranges and chance.
x = cuop.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype="float32")
zeros, ones = cuop.TensorFloat((2, 3)), cuop.ones((2, 3), "float64")
assert x.shape == (2, 3) and x.size == 6 and x.ndim == 2 and x.nbytes == 24
assert zeros.to_numpy().sum() == 0 and ones.to_numpy().sum() == 6
grid_x, grid_y = cuop.meshgrid(
    cuop.linspace(0, 1, 5), cuop.arange(3, dtype="float32"), indexing="ij"
)
assert grid_x.shape == grid_y.shape == (5, 3)

cuop.manual_seed(7)
first = cuop.random((1000,), mean=2.0, std=0.5)
cuop.manual_seed(7)
assert np.array_equal(first.to_numpy(), cuop.random((1000,), mean=2.0, std=0.5).to_numpy())

# Views share memory; arithmetic broadcasts and promotes as NumPy's does.
row = x[1]
row.fill(10.0)
assert x[1, 2].item() == 10.0
y = x * 2 + cuop.tensor([1, 2, 3])
np.testing.assert_allclose(y.to_numpy(), x.to_numpy() * 2 + np.array([1, 2, 3]))
assert (y > 20).to_numpy().tolist() == [[False] * 3, [True] * 3]
assert x[x > 5].to_numpy().tolist() == [10.0] * 3
product = x @ x.T
np.testing.assert_allclose(product.to_numpy(), x.to_numpy() @ x.to_numpy().T)

# To NumPy and back; other types; other devices.
x.copy_from(np.arange(6).reshape(2, 3))
assert x.dtype == cuop.float32 and np.asarray(x.to("cpu"))[1, 2] == 5.0
half = x.to("float16")
assert half.dtype == cuop.float16 and half.to("float64").to_numpy().sum() == 15.0

# A wrong call says what was given and what is allowed, and loses nothing.
try:
    cuop.matmul(x, x)
except cuop.ShapeError as error:
    print("as expected:", error)
assert x.to_numpy().sum() == 15.0
print("tensors: all checks hold")
