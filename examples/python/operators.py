"""Operator objects: prepared once, called with preallocated outputs, checked against NumPy."""

import numpy as np

import cuop

cuop.manual_seed(1)


def check(name, given, expected, tolerance=1e-5):
    expected = np.asarray(expected)
    error = np.abs(given.to_numpy() - expected).max() / max(1.0, np.abs(expected).max())
    print(f"{name:18} largest error {error:.1e}")
    assert error < tolerance, name


def made(*shape):
    tensor = cuop.random(shape)
    return tensor, tensor.to_numpy()


# Vectors.
(x, nx), (y, ny) = made(1000), made(1000)
cuop.AxpyFloat(2.0).forward(x, y)
check("Axpy", y, 2 * nx + ny)
cuop.ScalFloat(0.5).forward(x)
check("Scal", x, 0.5 * nx)
assert abs(cuop.DotFloat().forward(x, x) - float((0.5 * nx) @ (0.5 * nx))) < 1e-2

# Products. A weight is copied when it is set.
(a, na), (b, nb) = made(30, 40), made(40, 50)
c = cuop.zeros((30, 50))
gemm = cuop.GemmFloat(False, False, 1.5, 0.0)
gemm.set_weight(b)
gemm.forward(a, c)
check("Gemm", c, 1.5 * na @ nb)
gemv = cuop.GemvFloat(True)
gemv.set_weight(a)
(v, nv), result = made(30), cuop.zeros((40,))
gemv.forward(v, result)
check("Gemv transposed", result, na.T @ nv)

square, n_square = made(30, 30)
triangle = np.tril(n_square) + 6 * np.eye(30, dtype="float32")
symmetric = np.triu(n_square) + np.triu(n_square, 1).T
symm = cuop.SymmFloat(0, 1)  # left, upper
symm.set_weight(square)
out = cuop.zeros((30, 40))
symm.forward(a, out)
check("Symm", out, symmetric @ na)
trsm = cuop.TrsmFloat(0, 1, 0, 0, 1.0)  # left, lower
trsm.set_matrix_a(triangle)
trsm.forward(a, out)
check("Trsm", out, np.linalg.solve(triangle, na), 1e-4)

# Networks.
images, n_images = made(2, 3, 16, 16)
weight, n_weight = made(8, 3, 3, 3)
conv = cuop.Convolution2DFloat(3, 8, 3, 3, pad_h=1, pad_w=1)
conv.set_weight(weight)
conv.set_bias(np.zeros(8, "float32"))
features = cuop.zeros((2, 8, 16, 16))
conv.forward(images, features)
padded = np.pad(n_images, ((0, 0), (0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
check("Convolution2D", features, np.einsum("nchwij,ocij->nohw", windows, n_weight), 1e-4)

active = cuop.zeros_like(features)
cuop.ReluFloat().forward(features, active)
check("Relu", active, np.maximum(features.to_numpy(), 0))
pooled = cuop.zeros((2, 8, 8, 8))
cuop.MaxPool2DFloat(2, 2).forward(active, pooled)
check("MaxPool2D", pooled, active.to_numpy().reshape(2, 8, 8, 2, 8, 2).max((3, 5)))
flat = cuop.zeros((2, 512))
cuop.FlattenFloat().forward(pooled, flat, start_dim=1)
check("Flatten", flat, pooled.to_numpy().reshape(2, 512))
normal = cuop.zeros((2, 512))
layer_norm = cuop.LayerNormFloat()
layer_norm.set_gamma(np.ones(512, "float32"))
layer_norm.forward(flat, normal)
f = flat.to_numpy()
check(
    "LayerNorm",
    normal,
    (f - f.mean(1, keepdims=True)) / np.sqrt(f.var(1, keepdims=True) + 1e-5),
    1e-4,
)
chances = cuop.zeros((2, 512))
cuop.SoftmaxFloat().forward(normal, chances)
check("Softmax rows", cuop.sum(chances, axis=1), np.ones(2))

# An operator without its weight says which call is missing.
try:
    cuop.GemmFloat().forward(a, c)
except cuop.ExecutionError as error:
    print("as expected:", error)
print("operators: all checks hold")
