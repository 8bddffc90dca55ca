"""Arrays among the arguments of a call: they go beside its tensors, else to the current device."""

import ctypes

import numpy as np
import pytest

import cuop

RNG = np.random.default_rng(7)
V, W = RNG.random(12, np.float32) + 1, RNG.random(12, np.float32) + 1
M = RNG.random((4, 4), np.float32) + np.eye(4, dtype=np.float32)
N = RNG.random((4, 4), np.float32)
IMAGE, FILTER = RNG.random((2, 3, 8, 8), np.float32), RNG.random((4, 3, 3, 3), np.float32)
GAMMA = RNG.random(3, np.float32)
ROWS = np.array([2, 0, 3])
MASK = M > 0.5
FACTOR = np.float32(3)

# Calls of two arrays or more, by what they compute. Each is made with every argument as an array,
# and with each of them as a tensor in turn.
CALLS = {
    "add": (cuop.add, V, W),
    "add of a list": (cuop.add, V, list(range(12))),
    "multiply by a scalar of NumPy": (cuop.multiply, V, FACTOR),
    "where": (cuop.where, MASK, M, N),
    "clip": (cuop.clip, V, np.full(12, 1.2, np.float32), np.full(12, 1.7, np.float32)),
    "take": (cuop.take, M, ROWS),
    "take_along_axis": (cuop.take_along_axis, M, np.array([[2, 0], [1, 1], [3, 3], [0, 2]])),
    "gather": (lambda x, i: cuop.gather(x, 0, i), M, ROWS[:, None]),
    "masked_select": (cuop.masked_select, M, MASK),
    "masked_fill": (cuop.masked_fill, M, MASK, FACTOR),
    "concatenate": (lambda *parts: cuop.concatenate(parts), M, N, MASK),
    "stack": (lambda *parts: cuop.stack(list(parts), 1), M, N),
    "meshgrid": (lambda *axes: cuop.meshgrid(*axes)[0], V, W),
    "matmul": (cuop.matmul, M, N),
    "outer": (cuop.outer, V, W),
    "tensordot": (lambda a, b: cuop.tensordot(a, b, 1), M, N),
    "einsum": (lambda a, b: cuop.einsum("ij,jk->ik", a, b), M, N),
    "axpy": (lambda x, y: cuop.axpy(2, x, y), V, W),
    "gemm": (cuop.gemm, M, N),
    "gemv": (cuop.gemv, M, V[:4]),
    "conv2d": (cuop.conv2d, IMAGE, FILTER),
    "conv2d with a bias": (cuop.conv2d, IMAGE, FILTER, np.ones(4, np.float32)),
    "layer_norm": (cuop.layer_norm, IMAGE[0], np.ones((8, 8), np.float32)),
    "rms_norm": (cuop.rms_norm, M, N[0]),
    "batch_norm": (cuop.batch_norm, IMAGE, GAMMA, GAMMA),
    "batch_norm by statistics": (
        lambda x, *s: cuop.batch_norm(x, None, None, *s),
        IMAGE,
        GAMMA,
        GAMMA,
    ),
    "stencil2d": (cuop.stencil2d, M, np.ones((3, 3), np.float32)),
    "searchsorted": (cuop.searchsorted, np.sort(V), M),
    "jacobi2d": (lambda u, f: cuop.jacobi2d(u, f, iterations=2), M, N),
}
# Calls of one array.
SINGLE = {
    "exp": lambda x: cuop.exp(x),
    "sum": lambda x: cuop.sum(x),
    "cumsum": lambda x: cuop.cumsum(x, 0),
    "softmax": lambda x: cuop.softmax(x),
    "sort": lambda x: cuop.sort(x),
    "tril": lambda x: cuop.tril(x),
    "diff": lambda x: cuop.diff(x),
    "round": lambda x: cuop.round(x, 2),
    "repeat": lambda x: cuop.repeat(x, [1, 0, 2, 1], 0),
    "unique": lambda x: cuop.unique(x),
    "nonzero": lambda x: cuop.nonzero(x)[0],
    "reshape": lambda x: cuop.reshape(x, (2, 8)),
    "pad": lambda x: cuop.pad(x, 1),
    "zeros_like": lambda x: cuop.zeros_like(x),
    "copy": lambda x: cuop.copy(x),
    "scal": lambda x: cuop.scal(2, x),
    "max_pool2d": lambda x: cuop.max_pool2d(cuop.reshape(x, (1, 1, 4, 4)), 2),
    "tensor": lambda x: cuop.tensor(x),
}


@pytest.fixture
def on_gpu():
    """This thread's device is the GPU, until conftest.py's fixture sets it back."""
    cuop.set_current_device("cuda")


def as_numpy(result):
    return result.to_numpy()


@pytest.mark.parametrize("name", CALLS)
def test_arrays_go_beside_the_tensors_of_their_call(name):
    function, *arrays = CALLS[name]
    wanted = as_numpy(function(*arrays))
    for i in range(len(arrays)):
        mixed = list(arrays)
        mixed[i] = cuop.tensor(arrays[i], device="cuda")
        result = function(*mixed)
        assert result.device == "cuda:0"
        np.testing.assert_allclose(as_numpy(result), wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_alone_go_to_the_current_device(name, on_gpu):
    function, *arrays = CALLS[name]
    result = function(*arrays)
    assert result.device == "cuda:0"
    cuop.set_current_device("cpu")
    np.testing.assert_allclose(as_numpy(result), as_numpy(function(*arrays)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", SINGLE)
def test_an_array_alone_goes_to_the_current_device(name, on_gpu):
    result = SINGLE[name](M)
    assert result.device == "cuda:0"
    cuop.set_current_device("cpu")
    wanted = SINGLE[name](M)
    assert wanted.device == "cpu"
    np.testing.assert_allclose(as_numpy(result), as_numpy(wanted), rtol=2e-5, atol=1e-6)


@pytest.mark.usefixtures("on_gpu")
def test_tensors_of_the_cpu_keep_their_call_on_the_cpu():
    here = cuop.tensor(V, device="cpu")
    assert (here + W).device == cuop.add(W, here).device == "cpu"
    assert cuop.exp(here).device == cuop.tensor(here).device == "cpu"
    assert cuop.concatenate([W, here]).device == "cpu"


def test_operators_of_python_take_arrays_on_either_side():
    there = cuop.tensor(V, device="cuda")
    for result, wanted in [
        (there + W, V + W),
        (W - there, W - V),
        (there * list(range(12)), V * np.arange(12)),
        (there < W, V < W),
        (cuop.tensor(M, device="cuda") @ N, M @ N),
        (N @ cuop.tensor(M, device="cuda"), N @ M),
    ]:
        assert result.device == "cuda:0"
        np.testing.assert_allclose(as_numpy(result), wanted, rtol=1e-5)
    there += W
    assert there.device == "cuda:0"
    np.testing.assert_allclose(as_numpy(there), V + W, rtol=1e-6)


def test_keys_and_values_of_an_assignment_go_beside_the_tensor():
    there, wanted = cuop.tensor(M, device="cuda"), M.copy()
    there[ROWS, [0, 1, 2]] = wanted[ROWS, [0, 1, 2]] = np.array([7, 8, 9])
    there[MASK] = wanted[MASK] = 5
    there[0] = wanted[0] = [1, 2, 3, 4]
    there[1] = wanted[1] = np.float64(0.5)
    np.testing.assert_array_equal(as_numpy(there), wanted)
    np.testing.assert_array_equal(as_numpy(there[MASK]), wanted[MASK])
    which = np.array([[3, 2, 1, 0]])
    cuop.put_along_axis(there, which, np.zeros((1, 4), np.float32), 0)
    np.put_along_axis(wanted, which, 0, 0)
    np.testing.assert_array_equal(as_numpy(there), wanted)


def test_an_output_says_where_as_well():
    out = cuop.empty(12, device="cuda")
    assert cuop.add(V, W, out=out) is out
    np.testing.assert_array_equal(as_numpy(out), V + W)
    square = cuop.empty((4, 4), device="cuda")
    np.testing.assert_allclose(as_numpy(cuop.matmul(M, N, out=square)), M @ N, rtol=1e-5)
    halves = [cuop.tensor(V[:6], device="cuda"), V[6:]]
    np.testing.assert_array_equal(as_numpy(cuop.concatenate(halves, out=out)), V)


def test_operator_objects_take_arrays_beside_their_outputs():
    y = cuop.tensor(W, device="cuda")
    assert cuop.AxpyFloat(2).forward(V, y) is y
    np.testing.assert_allclose(as_numpy(y), 2 * V + W, rtol=1e-6)
    product = cuop.JITMatMulFloat()
    product.set_weight(cuop.tensor(N, device="cuda"))
    out = cuop.empty((4, 4), device="cuda")
    np.testing.assert_allclose(as_numpy(product.forward(M, out)), M @ N, rtol=1e-5)
    np.testing.assert_allclose(as_numpy(product.forward(M.tolist(), M, out)), M @ M, rtol=1e-5)


@pytest.mark.usefixtures("on_gpu")
def test_weights_of_operator_objects_go_to_the_current_device():
    product = cuop.GemmFloat()
    product.set_weight(N)
    out = cuop.empty((4, 4))
    np.testing.assert_allclose(as_numpy(product.forward(M, out)), M @ N, rtol=1e-5)
    assert cuop.DotFloat().forward(V, W) == pytest.approx(float(V @ W), rel=1e-6)
    norm = cuop.BatchNormFloat()
    norm.set_gamma(GAMMA.tolist())
    normed = norm.forward(IMAGE, cuop.empty(IMAGE.shape))
    wanted = IMAGE * GAMMA[:, None, None] / np.sqrt(1 + 1e-5)
    np.testing.assert_allclose(as_numpy(normed), wanted, rtol=1e-5)


def test_buffers_and_arrays_of_every_layout_are_taken():
    there = cuop.tensor(V, device="cuda")
    fixed = V.copy()
    fixed.flags.writeable = False
    for array in (
        V[::-1][::-1],
        np.repeat(V, 3)[::3],
        V.astype(V.dtype.newbyteorder()),
        fixed,
        memoryview(V),
        (ctypes.c_float * 12)(*V),
    ):
        np.testing.assert_array_equal(as_numpy(cuop.add(there, array)), 2 * V)


def test_gpu_arrays_of_other_libraries_say_where_too():
    held = cuop.tensor(V, device="cuda")

    class Foreign:
        __cuda_array_interface__ = held.__cuda_array_interface__

    result = cuop.add(W, Foreign())
    assert result.device == "cuda:0"
    np.testing.assert_array_equal(as_numpy(result), V + W)
    # A tensor's device comes before theirs, and is another: nothing is moved in silence.
    with pytest.raises(cuop.DeviceError, match=r"add: .*cpu and cuda:0"):
        cuop.add(cuop.tensor(W), Foreign())


def test_an_array_that_changes_after_the_call_does_not_change_the_result(on_gpu):
    array = np.ones(1 << 20, np.float32)
    result = cuop.add(array, array)
    array[:] = 7
    np.testing.assert_array_equal(as_numpy(result), np.full(1 << 20, 2, np.float32))


@pytest.mark.usefixtures("on_gpu")
def test_asarray_shares_an_arrays_memory_and_takes_a_device():
    array = V.copy()
    shared = cuop.asarray(array)
    array[0] = 9
    assert shared.device == "cpu"
    assert shared[0].item() == 9
    for data in ([1.0, 2.0], (1, 2), 3.5, True, 2j):
        assert cuop.asarray(data).device == "cuda:0"
        assert cuop.asarray(data, device="cpu").device == "cpu"
    there = cuop.asarray(array, device="cuda")
    assert there.device == "cuda:0"
    assert cuop.asarray(there, device="cuda").data_ptr() == there.data_ptr()
    with pytest.raises(cuop.DeviceError, match="asarray: device"):
        cuop.asarray(array, device="tpu")


@pytest.mark.usefixtures("on_gpu")
def test_numbers_alone_go_to_the_output_or_the_current_device():
    result = cuop.add(1, 2)
    assert (result.device, result.item()) == ("cuda:0", 3)
    assert cuop.multiply(2, 3, out=cuop.empty((), "int64", device="cpu")).device == "cpu"
    cuop.set_current_device("cpu")
    assert cuop.add(1, 2).device == "cpu"
    assert cuop.multiply(2, 3, out=cuop.empty((), "int64", device="cuda")).item() == 6


def test_signed_and_unsigned_integers_are_compared_on_the_gpu():
    signed = np.array([2**63 - 1, -1, 0])
    there = cuop.tensor(signed, device="cuda")
    for other, equal, less in [
        (2**63, [False] * 3, [True] * 3),
        (np.array([2**63, 0, 0], np.uint64), [False, False, True], [True, True, False]),
    ]:
        assert (there == other).device == "cuda:0"
        here = cuop.tensor(signed, device="cpu")
        assert (there == other).tolist() == (here == other).tolist() == equal
        assert (there < other).tolist() == (here < other).tolist() == less


TWO = [
    lambda a, b: a + b,
    lambda a, b: cuop.where(a > 0, a, b),
    lambda a, b: cuop.concatenate([a, b]),
    lambda a, b: cuop.add(a, a, out=b),
    lambda a, b: cuop.matmul(a, b),
    lambda a, b: cuop.axpy(1, a, b),
    lambda a, b: cuop.take(a, cuop.argsort(b)),
    lambda a, b: a[b > 0],
    lambda a, b: cuop.AxpyFloat().forward(a, b),
    lambda a, b: cuop.masked_fill(a, b > 0, 1),
]


@pytest.mark.parametrize("call", TWO)
def test_tensors_of_two_devices_are_refused_in_words(call):
    here, there = cuop.tensor(V, device="cpu"), cuop.tensor(W, device="cuda")
    for a, b in ((here, there), (there, here)):
        with pytest.raises(cuop.DeviceError) as error:
            call(a, b)
        assert "cpu" in str(error.value)
        assert "cuda:0" in str(error.value)


@pytest.mark.usefixtures("on_gpu")
def test_errors_of_arrays_are_the_same_as_on_the_cpu():
    with pytest.raises(cuop.DTypeError, match="add: x2: a NumPy array of dtype <U1"):
        cuop.add(V, np.array(["a"]))
    with pytest.raises(cuop.ShapeError, match="add"):
        cuop.add(cuop.tensor(V), W[:5])


@pytest.mark.parametrize("name", ["running_mean", "running_var"])
def test_training_changes_no_copy_of_the_statistics(on_gpu, name):
    statistics = GAMMA.copy()
    for x in (IMAGE, cuop.tensor(IMAGE)):
        with pytest.raises(cuop.DeviceError, match="batch_norm.*cuda:0.*cpu"):
            cuop.batch_norm(x, training=True, **{name: statistics})
    np.testing.assert_array_equal(statistics, GAMMA)
    there = cuop.tensor(GAMMA)
    cuop.batch_norm(IMAGE, training=True, **{name: there})
    assert there.device == cuop.Device("cuda") and not np.array_equal(there.to_numpy(), GAMMA)
