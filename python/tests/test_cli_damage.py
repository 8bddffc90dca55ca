"""`cuop run --resume` where the files beside the output are damaged, no files, or have long names."""

import json
import os

import numpy as np
import pytest
from test_cli import cuop
from test_cli_resume import head_of, journal_of, kill_when, write_lines
from test_cli_tiled import operands, result_of


@pytest.fixture
def files(tmp_path):
    return operands(tmp_path)


@pytest.mark.parametrize("damage", ["tile", "head", "bytes"])
def test_a_damaged_journal_ends_no_run_and_spoils_no_result(tmp_path, files, damage):
    a, _ = files
    expected = np.load(a).T
    np.save(tmp_path / "part.npy", np.full((170, 90), 7.0))
    os.rename(tmp_path / "part.npy", tmp_path / ".out.npy.cuop-part")
    journal = journal_of(tmp_path)
    write_lines(journal, map(json.dumps, [head_of(tmp_path, a), [[0, 0], [170, 25], []]]))
    text = journal.read_bytes()
    head, tile = text.splitlines(keepends=True)
    journal.write_bytes(
        {
            "tile": head + tile.replace(b"170", b"999"),
            "head": head.replace(b"[0, ", b"[5, ", 1) + tile,
            "bytes": head + b"\xff\xfe\0" + tile[3:],
        }[damage]
    )
    result = result_of(tmp_path, "transpose", a, "--resume")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("kind", ["part", "tiles"])
def test_what_is_no_file_of_a_run_is_not_waited_for(tmp_path, files, kind):
    a, _ = files
    beside = tmp_path / f".out.npy.cuop-{kind}"
    os.mkfifo(beside)
    for more in ([], ["--resume"]):
        np.testing.assert_array_equal(result_of(tmp_path, "transpose", a, *more), np.load(a).T)
        (tmp_path / "out.npy").unlink()
        os.mkfifo(beside)
    beside.unlink()
    beside.mkdir()
    for more in ([], ["--resume"]):
        done = cuop(
            "run", "transpose", a, "-o", tmp_path / "out.npy", "--memory-limit", "16K", *more
        )
        assert done.returncode == 1, done.stdout
        assert done.stderr == f"cuop: error: save: {beside} cannot be removed: Is a directory\n"


@pytest.mark.parametrize("letter", ["x", "\u00e4"])
def test_an_output_may_have_the_longest_name(tmp_path, files, letter):
    a, _ = files
    out = tmp_path / (letter * (250 // len(letter.encode())) + ".npy")
    arguments = ["run", "transpose", a, "-o", out, "--memory-limit", "2K", "--resume"]
    kill_when(lambda: any(tmp_path.glob(".*tiles")), arguments, None)
    done = cuop(*arguments)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(out), np.load(a).T)
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []
