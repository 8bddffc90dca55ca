"""Files: mapped in, complete or absent out, and every way in which they can be bad."""

import os
import resource
import signal
import stat

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


def test_what_lies_behind_the_data_is_not_read(tmp_path):
    """As NumPy has it, which writes several arrays into one file."""
    path = tmp_path / "two.npy"
    with open(path, "wb") as file:
        np.save(file, np.arange(6.0).reshape(2, 3))
        np.save(file, np.ones(100))
        file.write(b"x" * 100)
    for array in (npy.open_npy(path), np.asarray(npy.load(path))):
        np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))


def header(text, version=(1, 0), length=None, data=bytes(64)):
    """A file whose header has this text."""
    content = text if isinstance(text, bytes) else text.encode("latin-1")
    size = len(content) if length is None else length
    prefix = size.to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + prefix + content + data


def numbers(shape, descr="'<f8'", order="False"):
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")


HOSTILE = {
    "unclosed": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,"), "not a .npy"),
    "deep": (header("(" * 9000), "not a .npy"),
    "nested": (header("{'descr': " + "[" * 60000), "holds records"),
    "expression": (numbers("(2*3,)"), "not a .npy"),
    "true": (numbers("(True,)"), "not a .npy"),
    "float": (numbers("(1.0,)"), "not a .npy"),
    "no_tuple": (numbers("(8)"), r"its shape is \(8\)"),
    "negative": (numbers("(-1,)"), "its shape is"),
    "negatives": (numbers("(-1, -8)"), "its shape is"),
    "axes": (numbers("(" + "1," * 70 + ")"), "has 70 dimensions, allowed are at most 32"),
    "large": (numbers("(0, 1" + "0" * 30 + ")"), "its shape is"),
    "digits": (numbers("(" + "9" * 5000 + ",)"), "not a .npy"),
    "product": (numbers("(4611686018427387904, 4, 0)"), "more than any memory"),
    "sizes": (numbers("(4611686018427387904, 4)"), "more than any memory"),
    "order": (numbers("(8,)", order="1"), "not a .npy"),
    "descr": (numbers("(8,)", descr="7"), "not a .npy"),
    "unknown": (numbers("(8,)", descr="'<q8'"), "holds <q8, allowed are"),
    "width": (numbers("(8,)", descr="'<f3'"), "holds <f3, allowed are"),
    "quad": (numbers("(8,)", descr="'<f16'"), "holds (float128|<f16), allowed are"),
    "record": (numbers("(8,)", descr="[('a', '<f8')]"), "holds records, allowed are"),
    "date": (numbers("(8,)", descr="'<M8[ns]'"), "allowed are"),
    "object": (numbers("(8,)", descr="'|O'"), "holds object, allowed are"),
    "columns": (numbers("(2, 4)", order="True"), "is Fortran-ordered"),
    "keys": (header("{'descr': '<f8', 'shape': (8,)}"), "its header has descr, shape"),
    "more": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (8,)}{}"), "more than one"),
    "none": (header(b""), "no dict"),
    "bytes": (header(bytes(range(256))), "not a .npy"),
    "utf8": (header("{'descr': '<f8', 'fortran_order': False, 'shäpe': (8,)}"), "not a .npy"),
    "long": (header(b" " * 70000, version=(2, 0)), "header of 70000 bytes"),
    "longer": (header(b"", version=(2, 0), length=2**32 - 1), "header of 4294967295 bytes"),
    "cut": (header(b"{", length=60000), "cut short"),
    "version": (header(b"", version=(3, 0)), "version 3.0, allowed are 1.0 and 2.0"),
    "magic": (b"\x93NUMPX" + bytes(100), "does not begin as one"),
    "stump": (b"\x93NUMPY\x01", "does not begin as one"),
    "length": (b"\x93NUMPY\x01\x00\x10", "cut short"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_in_one_line(tmp_path, name):
    content, words = HOSTILE[name]
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    for read in (npy.open_npy, cuop.load):
        with pytest.raises(cuop.FileError, match=words) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(f"load: {path} ") and len(message) < 400 and "\n" not in message


@pytest.mark.parametrize("descr", ["<f8", ">f8", ">i4", "|b1", "<c8", ">c16"])
def test_headers_of_other_writers(tmp_path, descr):
    values = np.arange(8).astype(descr)
    path = tmp_path / "x.npy"
    for text in (
        f"{{'shape': (2L, 4L), 'fortran_order': False, 'descr': '{descr}'}}",  # Python 2
        f'{{"descr":"{descr}","fortran_order":False,"shape":(2,4)}}   \n',
    ):
        path.write_bytes(header(text, version=(2, 0), data=values.tobytes()))
        np.testing.assert_array_equal(cuop.load(path).numpy(), values.reshape(2, 4))
    path.write_bytes(header(f"{{'descr': '{descr}', 'fortran_order': True, 'shape': ()}}"))
    assert cuop.load(path).shape == ()


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
        with pytest.raises(cuop.FileError, match=r"no room for .*x.npy: it needs 8388736 bytes"):
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


def test_permissions_of_a_new_file_are_those_of_an_ordinary_one(tmp_path, monkeypatch):
    def no_umask(mask):  # between two calls of it other threads would make files for everybody
        raise AssertionError("the umask of the process was changed")

    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", no_umask)
        npy.save(tmp_path / "x.npy", np.ones(1))
        monkeypatch.undo()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "x.npy").st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o777])
def test_a_replaced_file_passes_its_permissions_on(tmp_path, mode):
    path = tmp_path / "x.npy"
    npy.save(path, np.zeros(1))
    path.chmod(mode)
    with files.replace_file(path, "test") as file:
        file.write(b"private")
        (temporary,) = set(os.listdir(tmp_path)) - {"x.npy"}
        assert stat.S_IMODE(os.stat(tmp_path / temporary).st_mode) == 0o600
    assert path.read_bytes() == b"private"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_a_replaced_file_keeps_its_owner(tmp_path):
    path = tmp_path / "x.npy"
    npy.save(path, np.zeros(1))
    os.chown(path, 12345, 54321)
    npy.save(path, np.ones(1))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_group_that_cannot_be_kept_leaves_no_rights_to_another(tmp_path, monkeypatch):
    def refuse(handle, owner, group):
        raise PermissionError

    path = tmp_path / "x.npy"
    monkeypatch.setattr(os, "fchown", refuse)
    for before, after in [(0o660, 0o600), (0o664, 0o644), (0o666, 0o666)]:
        npy.save(path, np.zeros(1))
        path.chmod(before)
        npy.save(path, np.ones(1))
        assert stat.S_IMODE(path.stat().st_mode) == after


def test_outputs_under_links_that_lead_nowhere(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "a" / "x.npy"):
        with pytest.raises(cuop.FileError, match="loop"):
            npy.save(path, np.ones(1))
        with pytest.raises(cuop.FileError, match="loop"):
            files.check_writable(path, "save")
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    npy.save(tmp_path / "dangling", np.ones(1))
    assert (tmp_path / "dangling").is_symlink() and np.load(tmp_path / "made") == 1
    longest = tmp_path / ("n" * 251 + ".npy")
    npy.save(longest, np.ones(1))
    assert np.load(longest) == 1
    with pytest.raises(cuop.FileError, match="File name too long"):
        npy.save(tmp_path / ("n" * 300), np.ones(1))


def test_progress_reaches_the_end(tmp_path):
    seen = []
    npy.save(tmp_path / "x.npy", np.ones(5 << 20), seen.append)
    assert seen == sorted(seen) and seen[0] < 1 and seen[-1] == 1


@pytest.mark.parametrize("size", [0, 1, 20_000_000])
def test_progress_rises_to_one(tmp_path, size):
    fractions = []
    cuop.save(tmp_path / "x.npy", np.zeros(size, np.uint8), fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0 and (size <= 1 or fractions[0] < 1.0)
    assert all(0 < fraction <= 1 for fraction in fractions)
    assert cuop.load(tmp_path / "x.npy").shape == (size,)
