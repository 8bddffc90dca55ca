"""Methods and properties of tensors that NumPy's and PyTorch's arrays have."""

import gc
import weakref

import numpy as np
import pytest

import cuop

RNG = np.random.default_rng(3)
CUBE = RNG.standard_normal((2, 3, 4)).astype("float32")
COMPLEX = (RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))).astype("complex64")

#: name: what is called on a tensor as on an array of NumPy
SAME = {
    "copy": lambda x: x.copy(),
    "transpose": lambda x: x.transpose(),
    "transpose by numbers": lambda x: x.transpose(2, 0, 1),
    "transpose by a tuple": lambda x: x.transpose((2, 0, 1)),
    "transpose by None": lambda x: x.transpose(None),
    "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x[::-1].ravel(),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze all": lambda x: x[:1, :1].squeeze(),
    "round": lambda x: x.round(),
    "round to decimals": lambda x: x.round(2),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "clip above": lambda x: x.clip(max=0.25),
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "take": lambda x: x.take([2, 0], axis=1),
    "take of all": lambda x: x.take([[5, -1]]),
    "nonzero": lambda x: x.clip(0).nonzero()[1],
    "argsort": lambda x: x.argsort(1),
    "mT": lambda x: x.mT,
    "itemsize": lambda x: x.itemsize,
    "tobytes": lambda x: x.T.tobytes(),
    "to_device": lambda x: x.to_device("cpu") if isinstance(x, cuop.Tensor) else x,
    "astype": lambda x: x.astype("int32"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_numpys_arrays_do_too(name):
    got, wanted = SAME[name](cuop.tensor(CUBE)), SAME[name](CUBE)
    if not isinstance(got, cuop.Tensor):
        assert got == wanted
        return
    assert got.dtype == str(wanted.dtype) and got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)


#: name: a method, and the function that it is
FUNCTIONS = {
    "moveaxis": (lambda x: x.moveaxis((0, 1), (1, 2)), lambda x: np.moveaxis(x, (0, 1), (1, 2))),
    "expand_dims": (lambda x: x.expand_dims((0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda x: x[..., None]),
    "permute": (lambda x: x.permute(1, 2, 0), lambda x: x.transpose(1, 2, 0)),
    "broadcast_to": (lambda x: x.broadcast_to((5, 2, 3, 4)), lambda x: np.stack([x] * 5)),
    "expand": (lambda x: x.expand(5, -1, 3, -1), lambda x: np.stack([x] * 5)),
    "flip": (lambda x: x.flip(1), lambda x: np.flip(x, 1)),
    "roll": (lambda x: x.roll(2, 1), lambda x: np.roll(x, 2, 1)),
    "tile": (lambda x: x.tile((2, 1)), lambda x: np.tile(x, (2, 1))),
    "tril": (lambda x: x.tril(-1), lambda x: np.tril(x, -1)),
    "triu": (lambda x: x.triu(1), lambda x: np.triu(x, 1)),
    "clamp": (lambda x: x.clamp(min=0), lambda x: np.maximum(x, 0)),
    "abs": (lambda x: x.abs(), np.abs),
    "exp": (lambda x: x.exp(), np.exp),
    "isnan": (lambda x: x.isnan(), np.isnan),
    "logical_not": (lambda x: x.logical_not(), np.logical_not),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 7), lambda x: np.where(x > 0, 7, x)),
    "masked_select": (lambda x: x.masked_select(x > 0), lambda x: x[x > 0]),
    "gather": (
        lambda x: x.gather(1, cuop.zeros((2, 1, 4), "int64")),
        lambda x: np.take_along_axis(x, np.zeros((2, 1, 4), "int64"), 1),
    ),
    "take_along_axis": (
        lambda x: x.take_along_axis(x.argsort(1), 1),
        lambda x: np.sort(x, 1),
    ),
    "cpu": (lambda x: x.cpu(), lambda x: x),
    "numel": (lambda x: x.numel(), lambda x: x.size),
    "dim": (lambda x: x.dim(), lambda x: x.ndim),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_pytorchs_tensors_do_or_functions(name):
    method, function = FUNCTIONS[name]
    got, wanted = method(cuop.tensor(CUBE)), function(CUBE)
    if not isinstance(got, cuop.Tensor):
        assert got == wanted
        return
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5)


def test_every_elementwise_function_of_one_argument_is_a_method():
    values = {"bool": [True, False], "float32": [0.25, 0.5], "int32": [1, 2]}
    for row in cuop.elementwise_table():
        if len(row["parameters"]) != 1 or row["name"] in ("real", "imag"):
            continue
        dtype = next(d for d in ["float32", "int32", "bool"] if d in row["dtypes"])
        x = cuop.tensor(values[dtype], dtype=dtype)
        wanted = getattr(cuop, row["name"])(x)
        out = cuop.empty(wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(getattr(x, row["name"])().numpy(), wanted.numpy())
        assert getattr(x, row["name"])(out=out) is out


def test_views_share_memory_and_copies_do_not():
    x = cuop.tensor(CUBE)
    for view in [x.transpose(), x.ravel(), x.swapaxes(0, 1), x.unsqueeze(0), x.mT, x.real]:
        view.fill(3)
        assert cuop.all(x == 3)
        x.fill(0)
    for other in [x.copy(), x.astype("float32"), cuop.astype(x, "float32")]:
        other.fill(3)
        assert not cuop.any(x)
    assert x.astype("float32", copy=False).data_ptr() == x.data_ptr()
    assert cuop.astype(x, "float32", copy=False).data_ptr() == x.data_ptr()
    assert x.cpu().cpu().device == "cpu"


def test_parts_of_complex_numbers_are_views():
    x, array = cuop.tensor(COMPLEX), COMPLEX.copy()
    for t, a in [(x, array), (x.T[::-2], array.T[::-2])]:
        np.testing.assert_array_equal(t.real.numpy(), a.real)
        np.testing.assert_array_equal(t.imag.numpy(), a.imag)
        t.real *= 2
        a.real *= 2
        t.imag = 5
        a.imag = 5
        t[1:].imag = cuop.arange(t.shape[1])
        a[1:].imag = np.arange(a.shape[1])
        np.testing.assert_array_equal(x.numpy(), array)
    real = cuop.tensor([1.0, 2.0])
    real.real = [3, 4]
    assert real.tolist() == [3, 4] and real.imag.tolist() == [0, 0]
    with pytest.raises(cuop.DTypeError, match="imag: a float32 tensor has no imaginary part"):
        real.imag = 1
    with pytest.raises(cuop.ShapeError):
        x.real = [1, 2, 3]


def test_weak_references_end_with_the_tensor():
    x = cuop.ones(3)
    reference = weakref.ref(x)
    by_name = weakref.WeakValueDictionary({"x": x})
    ended = []
    weakref.finalize(x, ended.append, "x")
    assert reference() is x and by_name["x"] is x
    del x
    gc.collect()
    assert reference() is None and not by_name and ended == ["x"]


def test_round_and_divmod_of_python():
    x = cuop.tensor([2.567, -0.5, 1.5], dtype="float64")
    assert round(x).tolist() == [3, 0, 2]
    assert round(x, 1).tolist() == [2.6, -0.5, 1.5]
    quotient, rest = divmod(cuop.tensor([7, -7]), 3)
    assert quotient.tolist() == [2, -3] and rest.tolist() == [1, 2]
    quotient, rest = divmod(20, cuop.tensor([7, -7]))
    assert quotient.tolist() == [2, -3] and rest.tolist() == [6, -1]
    with pytest.raises(TypeError, match="divmod"):
        divmod(cuop.tensor([1]), "a")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("decimals", [-400, -308, -2, -1, 1, 3, 5, 30, 400])
def test_rounding_to_decimals_is_numpys(dtype, decimals):
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 15, 25, -35, 0.125, 2.675, 1e300, 1e-300, 6e4]
    with np.errstate(all="ignore"):
        x = np.concatenate([edges, RNG.standard_normal(50) * 100]).astype(dtype)
        if dtype.startswith("complex"):
            x = x + 1j * x[::-1]
        is_wide = dtype in ("float64", "complex128") or abs(decimals) > 10
        wide = np.stack([x.real, x.imag]).astype("float64" if is_wide else "float32")
        if decimals > 0:  # beyond 52 bits there is no such place, and NumPy errs
            power = wide.dtype.type(10.0 ** min(decimals, 308))
            has_places = (np.abs(wide * power) < 2 ** (52 if is_wide else 23)) & (decimals < 300)
            wanted = np.where(has_places, np.round(wide, min(decimals, 300)), wide)
        else:
            wanted = np.where(np.isfinite(wide), np.round(wide, max(decimals, -308)), wide)
        got = cuop.round(cuop.tensor(x), decimals).numpy()
        assert got.dtype == dtype
        parts = np.stack([got.real, got.imag])
        np.testing.assert_array_equal(parts, wanted.astype(parts.dtype))
        is_number = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(parts)[is_number], np.signbit(wanted)[is_number])


def test_rounding_integers_is_exact():
    for dtype in ["int8", "int64", "uint8", "uint64"]:
        limits = np.iinfo(dtype)
        for x in [0, 5, 15, 25, 26, 14, limits.max // 10 * 9, limits.min // 10 * 9]:
            for places in range(1, 21):
                unit = 10**places
                below, rest = divmod(x, unit)
                wanted = (below + (2 * rest > unit or (2 * rest == unit and below % 2))) * unit
                if limits.min <= wanted <= limits.max:
                    got = cuop.tensor(x, dtype=dtype).round(-places)
                    assert got.dtype == dtype and got.item() == wanted, (dtype, x, places)
    assert cuop.round(cuop.tensor([7]), 3).tolist() == [7]
    assert cuop.round(2.567, 2).item() == 2.57
    out = cuop.empty(1)
    assert cuop.round([2.25], 1, out) is out and out.item() == pytest.approx(2.2)
    with pytest.raises(cuop.DTypeError, match="round: dtype bool"):
        cuop.round([True], 1)


def test_text_of_empty_tensors_tells_the_shape():
    for shape, text in [((0, 3), "[], shape=(0, 3)"), (0, "[]"), ((), "1."), ((1, 1), "[[1.]]")]:
        assert repr(cuop.ones(shape, device="cpu")) == f"tensor({text}, dtype=float32)"


@pytest.mark.parametrize("call, error, words", [
    (lambda x: x.transpose(0, 0, 1), cuop.ShapeError, "transpose"),
    (lambda x: x.transpose("a"), cuop.DTypeError, "transpose: axes: an integer or"),
    (lambda x: x.permute(0, None), cuop.DTypeError, "permute: axes: an integer or"),
    (lambda x: x.expand(-1), cuop.ShapeError, "expand: sizes"),
    (lambda x: x[0, 0].mT, cuop.ShapeError, "at least 2 dimensions"),
    (lambda x: x.unsqueeze(7), cuop.ShapeError, "unsqueeze: axis 7 is out of range"),
    (lambda x: x.expand_dims((0, 0)), cuop.ShapeError, "expand_dims: an axis is given twice"),
    (lambda x: x.moveaxis((0, 1), 2), cuop.ShapeError, "source names 2 axes and destination 1 places"),
    (lambda x: x.cuda("cpu0"), cuop.DeviceError, "cuda: device"),
])  # fmt: skip
def test_errors_name_the_method(call, error, words):
    with pytest.raises(error, match=words):
        call(cuop.tensor(CUBE))
