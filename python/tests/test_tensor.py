"""The tensor itself: creation, conversion, exchange with NumPy, errors."""

import copy
import ctypes
import gc
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from in_threads import in_threads

import cuop

NUMPY_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
arrays = hnp.arrays(
    st.sampled_from(NUMPY_DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
)
common = settings(max_examples=80, deadline=None)


def views(array):
    """Views of an array that are not contiguous."""
    yield array
    yield array.T
    if array.ndim:
        yield array[::-1]
        yield array[..., ::2]


@common
@given(arrays)
def test_numpy_goes_in_and_out_unchanged(array):
    for view in views(array):
        np.testing.assert_array_equal(cuop.tensor(view).to_numpy(), view)
        shared = cuop.asarray(view)
        np.testing.assert_array_equal(np.asarray(shared), view)
        assert shared.shape == view.shape
        assert shared.dtype == view.dtype
        assert shared.size == view.size
        assert shared.nbytes == view.size * view.itemsize


@common
@given(arrays)
def test_dlpack_goes_in_and_out_unchanged(array):
    for view in views(array):
        tensor = cuop.from_dlpack(view)
        np.testing.assert_array_equal(np.from_dlpack(tensor), view)


def test_arrays_of_ctypes_are_buffers_without_strides():
    values = (ctypes.c_float * 3)(1, 2, 3)
    shared = cuop.asarray(values)
    values[1] = 7
    assert shared.tolist() == [1, 7, 3]
    grid = ((ctypes.c_int64 * 2) * 3)((1, 2), (3, 4), (5, 6))
    assert cuop.tensor(grid).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert cuop.asarray(ctypes.c_double(2.5)).shape == ()


def test_exchange_shares_memory_and_keeps_it_alive():
    array = np.zeros(1000)
    tensor = cuop.from_dlpack(array)
    array[3] = 7
    assert tensor.to_numpy()[3] == 7
    again = np.from_dlpack(tensor)
    again[4] = 8
    del array, tensor
    gc.collect()
    assert again[3] == 7 and again[4] == 8
    view = memoryview(cuop.ones((2, 3), device="cpu"))
    gc.collect()
    assert view.shape == (2, 3) and view.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_tensor_copies():
    array = np.zeros(3)
    tensor = cuop.tensor(array)
    array[0] = 1
    assert tensor.tolist() == [0, 0, 0]
    copy = tensor.to_numpy()
    copy[1] = 5
    assert tensor.tolist() == [0, 0, 0]


def test_read_only_memory_stays_so():
    array = np.arange(3.0)
    array.flags.writeable = False
    for tensor in (cuop.asarray(array), cuop.from_dlpack(array)):
        with pytest.raises(cuop.ExecutionError, match="read-only"):
            tensor.fill(1)
        assert not np.asarray(tensor).flags.writeable
        with pytest.raises(cuop.ExecutionError, match="read-only"):
            tensor.__dlpack__()
    assert cuop.asarray(b"abc").tolist() == [97, 98, 99]


@pytest.mark.cpu
def test_dlpack_protocol_arguments():
    tensor = cuop.ones(3)
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(cuop.ExecutionError, match="stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(cuop.DeviceError, match="to()"):
        tensor.__dlpack__(dl_device=(2, 0))
    copied = cuop.from_dlpack(tensor.__dlpack__(max_version=(1, 0), copy=True))
    copied.fill(5)
    assert tensor.tolist() == [1, 1, 1]
    capsule = tensor.__dlpack__()
    cuop.from_dlpack(capsule)
    with pytest.raises(cuop.ExecutionError, match="used before"):
        cuop.from_dlpack(capsule)
    with pytest.raises(cuop.DTypeError, match="__dlpack__"):
        cuop.from_dlpack([1, 2])


def test_python_values_choose_the_short_types():
    assert cuop.tensor([1.0, 2.0]).dtype == "float32"
    assert cuop.tensor([1, 2]).dtype == "int64"
    assert cuop.tensor(True).dtype == "bool"
    assert cuop.tensor([1j]).dtype == "complex64"
    assert cuop.tensor([[1, 2.5], [3, 4]]).shape == (2, 2)
    assert cuop.tensor([1.0], dtype="float64").dtype == np.float64
    assert cuop.tensor(np.float32(2)).dtype == "float32"
    assert cuop.tensor([]).shape == (0,)


@pytest.mark.parametrize("given", [np.array([1, 2], ">i4"), np.array([1.5], ">f8"),
                                   np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])["b"]])  # fmt: skip
def test_foreign_byte_orders_and_misaligned_arrays_are_copied(given):
    assert cuop.tensor(given).tolist() == given.tolist()


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1], [1, 2]], ValueError, "no regular shape"),
        (np.array(["a"]), TypeError, "<U1"),
        (np.array([object()]), TypeError, "object"),
        (np.array(["2020-01-01"], "datetime64[D]"), TypeError, "datetime64"),
        (object(), TypeError, "object"),
    ],
)
def test_what_is_no_tensor(data, error, words):
    with pytest.raises(error, match=words) as caught:
        cuop.tensor(data)
    assert isinstance(caught.value, cuop.Error)


@pytest.mark.parametrize("a", NUMPY_DTYPES)
@pytest.mark.parametrize("b", NUMPY_DTYPES)
def test_promotion_is_numpys(a, b):
    assert cuop.result_type(a, b) == np.result_type(np.dtype(a), np.dtype(b))


def test_dtype_objects():
    assert str(cuop.float32) == "float32" and repr(cuop.float32) == "cuop.float32"
    assert cuop.float32 == "float32" and cuop.float32 == np.float32 and cuop.float32 != "int8"
    assert cuop.float32 != object() and cuop.float32 != None  # noqa: E711
    assert {cuop.float32: 1}[cuop.zeros(1).dtype] == 1
    assert (cuop.bfloat16.itemsize, cuop.bfloat16.kind) == (2, "f")
    with pytest.raises(TypeError, match="'float7' is unknown; known are bool"):
        cuop.dtype("float7")


@common
@given(st.sampled_from(NUMPY_DTYPES), st.sampled_from(NUMPY_DTYPES), st.data())
def test_conversion_is_numpys(source, target, data):
    elements = {"f": st.floats(-100, 100, width=16)}.get(np.dtype(source).kind)
    array = data.draw(hnp.arrays(source, 7, elements=elements))
    if np.dtype(source).kind == "c":
        array = np.nan_to_num(array.real.clip(-100, 100)).astype(source)
    if np.dtype(target).kind == "u" and array.dtype.kind in "fc":
        array = abs(array).astype(source)
    if np.dtype(source).kind == "c" and np.dtype(target).kind not in "cb":
        with pytest.raises(cuop.DTypeError, match="would drop the imaginary part"):
            cuop.tensor(array).to(target)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's own note of what becomes infinite
        expected = array.astype(target)
    np.testing.assert_array_equal(cuop.tensor(array).to(target).to_numpy(), expected)


def test_methods():
    t = cuop.tensor(np.arange(6.0).reshape(2, 3))
    assert t.fill(2) is not None and t.tolist() == [[2] * 3] * 2
    assert t.zero().tolist() == [[0] * 3] * 2
    t.copy_from([[1, 2, 3], [4, 5, 6]])
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert t.T.is_contiguous() is False and t.T.contiguous().is_contiguous()
    assert t.reshape(3, 2).tolist() == t.reshape((3, 2)).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert t.view(-1).shape == (6,)
    assert t.clone().tolist() == t.tolist()
    assert t.to("float32").dtype == "float32" and t.to("cpu").device == "cpu"
    assert t.to(dtype="int8", device="cpu").dtype == "int8"
    assert cuop.tensor([3]).item() == 3 and float(cuop.tensor(2.5)) == 2.5
    assert int(cuop.tensor(7)) == 7 and bool(cuop.tensor([1])) and complex(cuop.tensor(1j)) == 1j
    assert [10, 20][cuop.tensor(1)] == 20
    assert len(t) == 2 and t.strides == (3, 1) and t.device == cuop.current_device()
    assert "float64" in repr(t) and "bfloat16" in repr(cuop.ones(2, "bfloat16"))


def test_method_errors():
    t = cuop.zeros((2, 3))
    with pytest.raises(cuop.ShapeError, match="6 elements, needed is 1"):
        t.item()
    with pytest.raises(cuop.ShapeError, match=r"source has shape \(2,\), the tensor \(2, 3\)"):
        t.copy_from([1, 2])
    with pytest.raises(cuop.ShapeError, match="cannot be seen"):
        t.T.view(6)
    with pytest.raises(cuop.ShapeError, match="do not fill"):
        t.reshape(4, 2)
    with pytest.raises(TypeError, match="no length"):
        len(cuop.tensor(1))
    with pytest.raises(TypeError, match="no integer"):
        [1][cuop.tensor(0.0)]
    with pytest.raises(TypeError, match="bfloat16"):
        cuop.zeros(2, "bfloat16").to_numpy()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(cuop.zeros(2, "bfloat16", device="cpu"))
    with pytest.raises(cuop.DeviceError, match="'cpu', 'cuda' and 'cuda:N'"):
        t.to(device="gpu")


@pytest.mark.parametrize("shape", [(-1,), (2**40, 2**40), (2**61, 8), (1,) * 33, "abc", 1.5])
def test_impossible_shapes(shape):
    with pytest.raises((cuop.ShapeError, cuop.DTypeError)):
        cuop.zeros(shape)


def test_out_of_memory_is_an_error_and_not_the_end():
    with pytest.raises(MemoryError, match="bytes were asked") as caught:
        cuop.empty(2**45)
    assert caught.value.requested == 2**47
    assert cuop.ones(3).tolist() == [1, 1, 1]


def test_like_is_numpys():
    x = np.arange(6, dtype="float16").reshape(2, 3)
    for source in (x, cuop.tensor(x)):
        for name, value in (("zeros_like", 0), ("ones_like", 1)):
            made = getattr(cuop, name)(source)
            assert made.dtype == cuop.float16 and (made.to_numpy() == value).all()
            assert getattr(cuop, name)(source, dtype="int8", device="cpu").dtype == cuop.int8
        assert cuop.empty_like(source, "float64").shape == (2, 3)
        full = cuop.full_like(source, 7)
        np.testing.assert_array_equal(full.to_numpy(), np.full_like(x, 7))
    with pytest.raises(OverflowError, match="int8"):
        cuop.full_like(x, 1000, dtype="int8")


def test_creation_is_numpys():
    np.testing.assert_array_equal(cuop.eye(3).to_numpy(), np.eye(3, dtype="float32"))
    np.testing.assert_array_equal(cuop.eye(2, m=4, k=1).to_numpy(), np.eye(2, 4, 1))
    np.testing.assert_array_equal(cuop.arange(5).to_numpy(), np.arange(5))
    np.testing.assert_array_equal(cuop.arange(7, 0, -3).to_numpy(), np.arange(7, 0, -3))
    np.testing.assert_allclose(
        cuop.arange(0, 1, 0.1, dtype="float64").to_numpy(), np.arange(0, 1, 0.1)
    )
    for endpoint in (True, False):
        np.testing.assert_allclose(
            cuop.linspace(-1, 2, 7, "float64", endpoint=endpoint).to_numpy(),
            np.linspace(-1, 2, 7, endpoint=endpoint), rtol=1e-15, atol=1e-15)  # fmt: skip
    np.testing.assert_allclose(
        cuop.logspace(0, 3, 5, 2.0).to_numpy(), np.logspace(0, 3, 5, base=2.0), rtol=1e-6
    )
    assert cuop.linspace(1, 2, 1).tolist() == [1] and cuop.linspace(1, 2, 0).shape == (0,)
    for dtype in ("int32", "float32"):
        np.testing.assert_array_equal(
            cuop.linspace(-5, 0, 4, dtype).to_numpy(), np.linspace(-5, 0, 4, dtype=dtype)
        )
    for indexing in ("xy", "ij"):
        ours = cuop.meshgrid([1, 2, 3], [4, 5], [6.0], indexing=indexing)
        theirs = np.meshgrid([1, 2, 3], [4, 5], [6.0], indexing=indexing)
        assert len(ours) == len(theirs)
        for o, t in zip(ours, theirs):
            np.testing.assert_array_equal(o.to_numpy(), t)
    with pytest.raises(cuop.ExecutionError, match="'xy' or 'ij'"):
        cuop.meshgrid([1], indexing="zz")
    with pytest.raises(cuop.ExecutionError, match="step"):
        cuop.arange(0, 1, 0)


def test_views_are_numpys():
    array = np.arange(24).reshape(2, 3, 4)
    t = cuop.asarray(array)
    np.testing.assert_array_equal(
        np.asarray(cuop.permute_dims(t, (2, 0, 1))), array.transpose(2, 0, 1)
    )
    np.testing.assert_array_equal(np.asarray(cuop.transpose(t)), array.T)
    np.testing.assert_array_equal(np.asarray(cuop.swapaxes(t, 0, -1)), array.swapaxes(0, -1))
    np.testing.assert_array_equal(np.asarray(cuop.moveaxis(t, 0, 2)), np.moveaxis(array, 0, 2))
    np.testing.assert_array_equal(
        np.asarray(cuop.broadcast_to(t, (5, 2, 3, 4))), np.broadcast_to(array, (5, 2, 3, 4)))  # fmt: skip
    assert cuop.squeeze(cuop.zeros((1, 3, 1))).shape == (3,)
    assert cuop.squeeze(cuop.zeros((1, 3, 1)), 0).shape == (3, 1)
    assert cuop.expand_dims(t, -1).shape == (2, 3, 4, 1)


def test_several_threads():
    def work(seed):
        array = np.random.default_rng(seed).normal(size=(50, 60))
        for _ in range(50):
            np.testing.assert_array_equal(cuop.tensor(array).T.contiguous().to_numpy(), array.T)

    in_threads(*(partial(work, seed) for seed in range(6)))


def test_errors_are_also_pythons():
    assert issubclass(cuop.ShapeError, ValueError)
    assert issubclass(cuop.DTypeError, TypeError)
    assert issubclass(cuop.MemoryError, MemoryError)
    for name in cuop.errors.__all__:
        kind = UserWarning if name.endswith("Warning") else cuop.Error
        assert issubclass(getattr(cuop, name), kind)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "bfloat16"])
def test_pickling_keeps_elements_shape_dtype_and_device(dtype, protocol):
    x = cuop.tensor(np.arange(6).reshape(2, 3), dtype)
    for view in (x, x.T, x[:, ::2], x[1:1], x[0, 1]):
        again = pickle.loads(pickle.dumps(view, protocol))
        assert (again.shape, again.dtype, again.device) == (view.shape, view.dtype, view.device)
        assert again.is_contiguous() and cuop.equal(again, view).all().item()
    assert pickle.loads(pickle.dumps(x.device, protocol)) == x.device


def test_a_damaged_pickle_is_refused():
    function, (elements, *rest) = cuop.ones(3).__reduce__()
    with pytest.raises(cuop.ShapeError, match="11 bytes were stored, a tensor of shape .* has 12"):
        function(elements[:-1], *rest)


def test_copies_share_no_memory():
    x = cuop.ones(3)
    shallow, deep = copy.copy(x), copy.deepcopy({"a": x, "b": [x]})
    assert deep["a"] is deep["b"][0] is not x
    x.zero()
    assert shallow.tolist() == deep["a"].tolist() == [1, 1, 1]


def test_formats_as_its_element_does():
    assert f"{cuop.tensor(2.0) / 3:.3f}" == "0.667"
    assert f"{cuop.tensor([7], dtype='int32'):>4d}" == "   7"
    x = cuop.tensor([1.0, 2.0])
    assert f"{x}" == str(x)
    with pytest.raises(cuop.ShapeError, match="2 elements"):
        f"{x:.3f}"
    with pytest.raises(ValueError, match="format"):
        f"{cuop.tensor(1.0):q}"


def test_contains_what_some_element_equals():
    x = cuop.tensor([[1.0, 2.0], [3.0, float("nan")]])
    assert 3 in x and 4 not in x and float("nan") not in x
    assert np.array([9.0, 2.0]) in x  # broadcast, as NumPy does
    assert 1 not in cuop.zeros((0, 3))
    assert "a" not in x and None not in x


@pytest.mark.parametrize(
    ("call", "who"),
    [
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (complex, "complex"),
        ("{:.2f}".format, "format"),
    ],
)
def test_several_elements_are_no_number(call, who):
    several = cuop.tensor([1.0, 2, 3])
    with pytest.raises(
        cuop.ShapeError, match=f"^{who}: the tensor has 3 elements, needed is 1"
    ) as caught:
        call(several)
    assert ("any() or all()" in str(caught.value)) == (who == "bool")
    with pytest.raises(cuop.ShapeError, match="^index: the tensor has 2 elements"):
        range(3)[cuop.tensor([1, 2])]
    with pytest.raises(cuop.ShapeError, match="^item: the tensor has 3 elements, needed is 1$"):
        several.item()
