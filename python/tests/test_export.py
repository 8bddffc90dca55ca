"""What tensors export to other libraries, looked at in the exported structures themselves."""

import ctypes
import itertools

import numpy as np
import pytest

import cuop

pytestmark = pytest.mark.cpu

CPU, READ_ONLY, IS_COPIED = 1, 1, 2
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"] + [
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128")
]
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


class Unversioned(ctypes.Structure):
    _fields_ = [
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def exported(tensor, is_versioned=True, **arguments):
    """(capsule, managed struct, shape, strides); the struct lives as long as the capsule."""
    version = {"max_version": (1, 0)} if is_versioned else {}
    capsule = tensor.__dlpack__(**version, **arguments)
    kind, name = (Versioned, b"dltensor_versioned") if is_versioned else (Unversioned, b"dltensor")
    managed = kind.from_address(pointer_of(capsule, name))
    lists = (managed.tensor.shape, managed.tensor.strides)
    shape, strides = (tuple(each[i] for i in range(managed.tensor.ndim)) for each in lists)
    return capsule, managed, shape, strides


REVERSED = {
    "flip": lambda x: cuop.flip(x),
    "one axis": lambda x: x[:, ::-1],
    "step": lambda x: x[::-2, ::3],
    "transposed": lambda x: x.T[::-1],
}


@pytest.mark.parametrize("is_versioned", [True, False])
@pytest.mark.parametrize("name", REVERSED)
def test_negative_strides_are_exported_as_a_copy(name, is_versioned):
    x = cuop.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))
    view = REVERSED[name](x)
    for copy in ({}, {"copy": None}, {"copy": True}):
        capsule, managed, shape, strides = exported(view, is_versioned, **copy)
        assert shape == view.shape and all(stride > 0 for stride in strides)
        assert not x.data_ptr() <= managed.tensor.data < x.data_ptr() + x.nbytes
        if is_versioned:
            assert managed.flags == IS_COPIED
        np.testing.assert_array_equal(cuop.from_dlpack(capsule).numpy(), view.numpy())
    with pytest.raises(BufferError, match="negative strides"):
        exported(view, is_versioned, copy=False)
    np.testing.assert_array_equal(np.from_dlpack(view), view.numpy())
    with pytest.raises(BufferError):
        np.from_dlpack(view, copy=False)


def test_other_views_are_exported_without_a_copy():
    x = cuop.asarray(np.arange(24, dtype=np.float64).reshape(4, 6))
    for view in (x, x.T, x[1:, ::2], x[2], cuop.broadcast_to(x[:1], (3, 6)), x[::-1][:1]):
        for copy in ({}, {"copy": False}):
            _, managed, shape, strides = exported(view, **copy)
            assert managed.flags == 0 and shape == view.shape
            assert managed.tensor.data + managed.tensor.byte_offset == view.data_ptr()
            longer = [i for i, size in enumerate(shape) if size > 1]
            assert [strides[i] for i in longer] == [view.strides[i] for i in longer]
            assert min(strides) >= 0
        capsule, managed, _, _ = exported(view, copy=True)
        assert managed.flags == IS_COPIED and managed.tensor.data != view.data_ptr()
        np.testing.assert_array_equal(cuop.from_dlpack(capsule).numpy(), view.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape(dtype):
    for shape in [(), (1,), (3,), (2, 3), (0,), (0, 3), (3, 0, 2)]:
        x = cuop.ones(shape, dtype=dtype)
        for view in (x, cuop.flip(x), cuop.transpose(x)):
            for is_versioned in (True, False):
                capsule, managed, given, strides = exported(view, is_versioned)
                assert given == view.shape and all(stride >= 0 for stride in strides)
                tensor = managed.tensor
                code = 4 if dtype == "bfloat16" else CODES[x.dtype.kind]
                assert (tensor.code, tensor.bits, tensor.lanes) == (code, 8 * x.dtype.itemsize, 1)
                assert (tensor.device_type, tensor.device_id) == (CPU, 0)
                back = cuop.from_dlpack(capsule)
                assert back.dtype == dtype and back.shape == view.shape
                np.testing.assert_array_equal(
                    back.to("complex128").numpy(), view.to("complex128").numpy()
                )


def test_read_only_memory():
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    x = cuop.asarray(array)
    _, managed, _, _ = exported(x)
    assert managed.flags == READ_ONLY
    with pytest.raises(cuop.ExecutionError, match="read-only"):
        exported(x, is_versioned=False)
    for is_versioned in (True, False):  # a copy may be written to
        capsule, _, _, _ = exported(x, is_versioned, copy=True)
        cuop.from_dlpack(capsule).fill(7)
    assert array.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    capsule, managed, _, _ = exported(x[::-1])
    assert managed.flags == IS_COPIED
    with pytest.raises(BufferError, match="copy is False"):
        exported(x[::-1], copy=False)


@pytest.mark.parametrize("copy", [1, 0, "yes", []])
def test_copy_is_true_false_or_none(copy):
    for method in ("__dlpack__", "__array__"):
        with pytest.raises(cuop.DTypeError, match="copy: needed is True, False or None"):
            getattr(cuop.ones(3), method)(copy=copy)
        getattr(cuop.ones(3), method)(copy=np.True_)  # as other flags


def test_devices_that_are_asked_for():
    x = cuop.ones(3)
    assert exported(x, dl_device=(1, 0))[1].flags == 0
    assert exported(x, dl_device=[1, 0], copy=False)[1].flags == 0
    for device, copy in itertools.product([(2, 0), (1, 1), (8, 0)], [None, True, False]):
        with pytest.raises(cuop.DeviceError, match="to()"):
            x.__dlpack__(dl_device=device, copy=copy)


def test_array_with_copy_false():
    x = cuop.flip(cuop.asarray(np.arange(6.0)))
    shared = np.asarray(x, copy=False)
    assert shared.ctypes.data == x.data_ptr() and shared.strides == (-8,)
    assert np.array(x, copy=True).ctypes.data != x.data_ptr()
    assert np.asarray(x, dtype="float32").dtype == "float32"
    with pytest.raises(ValueError, match="copy"):
        np.asarray(cuop.ones(3, dtype="bfloat16"), copy=False)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype="float32", copy=False)
