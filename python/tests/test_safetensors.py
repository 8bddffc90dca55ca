"""Tensors of .safetensors files: mapped, read-only, and every way in which a file can be bad."""

import os

import numpy as np
import pytest
from safetensors_files import NAMES, bfloat16, content, write

import cuop
from cuop import dist, safetensors
from cuop.array_files import array_file
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.auto_executor import AutoExecutor


def random_array(random, dtype, shape):
    return (random.normal(size=shape) * 10).astype(dtype)


@pytest.mark.parametrize("padding", [0, 1, 7])  # with which elements do not lie at multiples
def test_every_dtype_and_shape(tmp_path, padding):
    random = np.random.default_rng(1)
    arrays = {
        f"{dtype} {shape}": random_array(random, dtype, shape)
        for dtype in NAMES
        for shape in [(), (0,), (7,), (3, 0, 2), (4, 5)]
    }
    halves = np.array([[1.0, -2.5, 3e38], [0.0, np.inf, -0.0]])
    path = write(
        tmp_path / "x.safetensors", {**arrays, "b": bfloat16(halves)}, {"made by": "ä"}, padding
    )
    found = safetensors.open(path)
    assert list(found) == [*arrays, "b"] and len(found) == len(arrays) + 1
    assert found.metadata == {"made by": "ä"} and found.path == path
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype.name and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name].numpy(), array)
        with pytest.raises(cuop.ExecutionError, match="read-only"):
            found[name].fill(0)
    assert found["b"].dtype == "bfloat16" and found.info["b"].dtype == "BF16"
    expected = (halves.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(found["b"].to("float32").numpy(), expected)
    with pytest.raises(KeyError):
        found["absent"]
    assert "absent" not in found and found.get("absent") is None


def test_what_is_opened_is_not_read_whole(tmp_path):
    size = 1 << 33
    header = {"big": {"dtype": "BF16", "shape": [size], "data_offsets": [0, 2 * size]}}
    path = tmp_path / "big.safetensors"
    path.write_bytes(content(header, padding=-len(content(header)) % 8))
    os.truncate(path, path.stat().st_size + 2 * size)  # sparse: 16 GiB that nobody has
    assert safetensors.open(path)["big"].shape == (size,)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(cuop.FileError, match=f"is truncated: its tensors need {2 * size} bytes"):
        safetensors.open(path)


def test_a_file_that_is_cut_off_later(tmp_path):
    array = np.ones((1 << 19,), np.float64)
    path = write(tmp_path / "x.safetensors", {"a": array})
    tensor = safetensors.open(path)["a"]
    np.testing.assert_array_equal(tensor.numpy()[:3], [1, 1, 1])
    file = array_file(f"{path}:a")
    file.check_whole(tensor)
    os.truncate(path, 1 << 12)
    with pytest.raises(cuop.FileError, match="was cut off"):
        file.check_whole(tensor)
    with pytest.raises(cuop.FileError, match="was cut off by another program"):
        tensor.sum()


def test_holes_and_data_behind_all_tensors_are_nobodys(tmp_path):
    header = {
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [6, 8]},
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [1, 4]},
        "none": {"dtype": "F64", "shape": [0, 3], "data_offsets": [2, 2]},
    }
    path = tmp_path / "x.safetensors"
    path.write_bytes(content(header, bytes(range(12))))
    found = safetensors.open(path)
    assert [found[name].tolist() for name in ("a", "b", "none")] == [[1, 2, 3], [6, 7], []]
    path.write_bytes(content({}, b"rest"))
    assert dict(safetensors.open(path)) == {}


def one(dtype="U8", shape="[4]", offsets="[0, 4]", more=""):
    return f'{{"a": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}{more}}}}}'


BAD = {
    "empty": (b"", "shorter than 8 bytes"),
    "stump": (b"1234567", "shorter than 8 bytes"),
    "long": (content("{}", length=2**64 - 1), "header of 18446744073709551615 bytes, allowed"),
    "longer": (content("{}", length=100_000_001), "header of 100000001 bytes"),
    "cut": (content("{}", length=100), "its header is cut short"),
    "no text": (content(b'{"\xff": 1}'), "is not UTF-8"),
    "list": (content("[1]"), "is no JSON object"),
    "spaces": (content(" {}"), "is no JSON object"),
    "nothing": (content(""), "is no JSON object"),
    "open": (content("{"), "cannot be read as JSON"),
    "more": (content("{} {}"), "cannot be read as JSON"),
    "deep": (content('{"a": ' + "[" * 100_000), "cannot be read as JSON"),
    "digits": (content(one(shape="[" + "9" * 5000 + "]")), "cannot be read as JSON"),
    "nan": (content('{"a": NaN}'), "its header has NaN"),
    "twins": (content('{"a": {}, "a": {}}'), "its header has 'a' twice"),
    "twin fields": (content(one(more=', "dtype": "I8"')), "its header has 'dtype' twice"),
    "metadata": (content({"__metadata__": {"a": 1}}), "no object of texts"),
    "metadata list": (content({"__metadata__": []}), "no object of texts"),
    "number": (content({"a": 1}), "'a' has not dtype, shape and data_offsets alone"),
    "fields": (content(one(more=', "x": 1')), "has not dtype, shape and data_offsets alone"),
    "dtype": (content({"a": {"dtype": 1, "shape": [], "data_offsets": [0, 1]}}), "is no text"),
    "shape": (content(one(shape='"4"')), "has the shape '4'; needed"),
    "negative": (content(one(shape="[-1]")), r"has the shape \[-1\]"),
    "fraction": (content(one(shape="[4.0]")), r"has the shape \[4.0\]"),
    "truth": (content(one(shape="[true]")), r"has the shape \[True\]"),
    "axes": (content(one(shape=str([1] * 33))), "at most 32 sizes"),
    "backwards": (content(one(offsets="[4, 0]"), bytes(9)), r"the data_offsets \[4, 0\]"),
    "below": (content(one(offsets="[-4, 0]"), bytes(9)), r"the data_offsets \[-4, 0\]"),
    "three": (content(one(offsets="[0, 4, 4]"), bytes(9)), r"the data_offsets \[0, 4, 4\]"),
    "beyond": (content(one(), bytes(3)), "is truncated: its tensors need 4 bytes of data, .* has 3"),
    "far": (content(one("F9", offsets=f"[0, {2**62}]"), bytes(3)), "is truncated"),
    "size": (content(one(dtype="F16"), bytes(4)), r"has 4 bytes of data, \[4\] F16 needs 8"),
    "product": (content(one(shape=str([2**62, 4, 0]), offsets="[0, 0]")), "more than any memory"),
    "overlap": (
        content(
            {
                "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                "b": {"dtype": "U8", "shape": [4], "data_offsets": [3, 7]},
            },
            bytes(7),
        ),
        "'a' and 'b' overlap",
    ),
    "same": (
        content(
            {
                name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for name in ("a", "b")
            },
            bytes(4),
        ),
        "overlap",
    ),
    "surrogate": (content('{"\\ud800": 1}'), r"'\\ud800' has not dtype"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, name):
    data, words = BAD[name]
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(cuop.FileError, match=words) as caught:
        safetensors.open(path)
    message = str(caught.value)
    assert message.startswith(f"load: {path} ") and len(message) < 400 and "\n" not in message
    message.encode()


def test_numbers_that_cuop_has_not_are_refused_when_they_are_asked_for(tmp_path):
    header = {
        "old": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},
        "a": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
    }
    path = tmp_path / "x.safetensors"
    path.write_bytes(content(header, bytes(6)))
    found = safetensors.open(path)
    assert found["a"].tolist() == [0, 0] and found.info["old"].shape == (4,)
    with pytest.raises(cuop.DTypeError, match="'old' holds 'F8_E4M3', allowed are BOOL, U8"):
        found["old"]


def test_files_that_cannot_be_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in [
        (tmp_path / "absent", "cannot be read: No such file"),
        (tmp_path, "no ordinary file"),
        (tmp_path / "pipe", "no ordinary file"),
    ]:
        with pytest.raises(cuop.FileError, match=words):
            safetensors.open(path)


def test_names_of_tensors_in_files(tmp_path):
    path = write(tmp_path / "m.safetensors", {"a:b//c/": np.arange(3), "x": np.ones(2)})
    assert array_file(f"{path}:a:b//c/").open().tolist() == [0, 1, 2]
    assert array_file(f"{path}:x").text == f"{path}:x"
    for name, words in [
        (path, r"holds tensors by name; one is given as m.safetensors:NAME, there are 'a:b"),
        (f"{path}:y", "has no tensor 'y';.*there are 'a:b//c/', 'x'$"),
        (f"{path}x:y", "No such file"),
    ]:
        with pytest.raises(cuop.FileError, match=words):
            array_file(name).open()
    many = write(tmp_path / "many.safetensors", {str(i): np.ones(1) for i in range(99)})
    with pytest.raises(cuop.FileError, match=r"'9', \.\.\. \(99 in all\)"):
        array_file(many).open()
    np.save(tmp_path / "n.npy", np.arange(4))
    assert array_file(tmp_path / "n.npy").open().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("ranks", [1, 3])
def test_auto_executor_takes_names(tmp_path, ranks):
    random = np.random.default_rng(2)
    a, b = random.normal(size=(300, 1100)), random.normal(size=(1100, 90)).astype("f4")
    path = write(tmp_path / "w.safetensors", {"layer:a": a, "b": b})  # mapped

    def product(comm, *names):
        auto = AutoExecutor(MPIManager(comm), verbose=False, max_per_gpu_gb=64 / 2**20)
        result = auto.matmul(*(names if auto.is_master else [None] * 2))
        return result, auto.last_report.peak

    result, peak = dist.run_ranks(
        lambda comm: product(comm, f"{path}:layer:a", f"{path}:b"), ranks
    )[0]
    assert type(result) is cuop.Tensor and peak <= 64 * 1024
    np.testing.assert_allclose(result.numpy(), a @ b.astype("f8"), rtol=1e-9, atol=1e-9)
    with pytest.raises(MPIError, match="has no tensor 'c'"):
        dist.run_ranks(lambda comm: product(comm, f"{path}:layer:a", f"{path}:c"), ranks)
