"""Files: mapped in, complete or absent out, and every way in which they can be bad."""

import os
import resource
import signal

import numpy as np
import pytest

import cuop
from cuop import files, npy


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (4, 5)])
def test_round_trip(tmp_path, dtype, shape):
    array = np.random.default_rng(1).normal(size=shape).astype(dtype)
    path = tmp_path / "x.npy"
    npy.save(path, cuop.asarray(array))
    np.testing.assert_array_equal(np.load(path), array)
    tensor = npy.load(path)
    assert tensor.dtype == dtype and tensor.shape == shape
    np.testing.assert_array_equal(tensor.to_numpy(), array)


def test_what_is_loaded_is_read_only_and_not_read_whole(tmp_path):
    path = tmp_path / "big.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 33,)}
        )
        file.truncate(file.tell() + (8 << 33))  # sparse: 64 GiB that nobody has
    tensor = npy.load(path)
    assert tensor.shape == (1 << 33,)
    with pytest.raises(cuop.ExecutionError, match="read-only"):
        tensor.fill(0)


def test_views_are_saved_in_c_order(tmp_path):
    array = np.arange(12).reshape(3, 4)
    for view in (array.T, array[::-1, ::2], np.asfortranarray(array)):
        npy.save(tmp_path / "v.npy", view)
        np.testing.assert_array_equal(npy.open_npy(tmp_path / "v.npy"), view)


def write_npy(path, array):
    np.save(path, array, allow_pickle=True)
    return path


def test_bad_inputs(tmp_path):
    bad = {
        "missing": (tmp_path / "absent.npy", "cannot be read: No such file"),
        "directory": (tmp_path, "no ordinary file"),
        "fortran": (
            write_npy(tmp_path / "f.npy", np.asfortranarray(np.ones((2, 3)))),
            "Fortran-ordered, allowed is C order",
        ),
        "object": (
            write_npy(tmp_path / "o.npy", np.array([{}, 1], dtype=object)),
            "object, allowed are bool, integer, float and complex",
        ),
        "text": (write_npy(tmp_path / "t.npy", np.array(["a"])), "<U1, allowed are"),
        "record": (write_npy(tmp_path / "r.npy", np.zeros(2, [("a", "f4")])), "allowed are"),
    }
    whole = write_npy(tmp_path / "w.npy", np.ones(100)).read_bytes()
    for name, content, words in [
        ("short", whole[:-1], r"truncated: \(100,\) float64 needs 800 bytes of data, .* has 799"),
        ("header", whole[:40], "is not a .npy file"),
        ("empty", b"", "is not a .npy file"),
        ("negative", whole.replace(b"(100,)", b"(-10,)"), r"its shape is \(-10,\)"),
        ("noise", b"PK\x03\x04" + bytes(200), "is not a .npy file"),
    ]:
        path = tmp_path / f"{name}.npy"
        path.write_bytes(content)
        bad[name] = (path, words)
    for path, words in bad.values():
        with pytest.raises(cuop.FileError, match=words) as caught:
            npy.open_npy(path)
        assert isinstance(caught.value, OSError)
    assert npy.open_npy(tmp_path / "w.npy").sum() == 100


def test_outputs_that_cannot_be_written(tmp_path):
    for path, words in [
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "such" / "x.npy", "cannot be written: No such file"),
        ("/proc/x.npy", "cannot be written"),
    ]:
        with pytest.raises(cuop.FileError, match=words):
            npy.save(path, np.ones(3))
        with pytest.raises(cuop.FileError, match=words):
            files.check_writable(path, "save")
    assert os.listdir(tmp_path) == []


def test_only_ordinary_files_are_read_or_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(cuop.FileError, match="no ordinary file"):
        npy.open_npy(pipe)
    with pytest.raises(cuop.FileError, match="no ordinary file"):
        npy.save(pipe, np.ones(3))
    target, link = tmp_path / "x.npy", tmp_path / "link.npy"
    npy.save(target, np.zeros(3))
    link.symlink_to(target)
    npy.save(link, np.ones(3))
    assert link.is_symlink() and np.load(target).tolist() == [1, 1, 1]


def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "x.npy"
    npy.save(path, np.arange(3))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(cuop.FileError, match="no room for .*x.npy"):
            npy.save(path, np.ones(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert os.listdir(tmp_path) == ["x.npy"]
    assert np.load(path).tolist() == [0, 1, 2]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with files.replace_file(tmp_path / "x", "test") as file:
            file.write(b"half")
            raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    npy.save(tmp_path / "x.npy", np.ones(1))
    (tmp_path / "y").write_bytes(b"")
    assert os.stat(tmp_path / "x.npy").st_mode == os.stat(tmp_path / "y").st_mode


def test_progress_reaches_the_end(tmp_path):
    seen = []
    npy.save(tmp_path / "x.npy", np.ones(5 << 20), seen.append)
    assert seen == sorted(seen) and seen[0] < 1 and seen[-1] == 1
