"""The compiled kernels on disk: `cuop cache` and what it stands on. No GPU is needed to compile."""

import os
import re

import pytest
from fresh_process import run_cuop, run_with

import cuop
from cuop import _core


def run(tmp_path, *arguments, check=True):
    """`cuop cache ...` in a process whose cache lies in tmp_path."""
    done = run_cuop("cache", *arguments, CUOP_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 or not check, done.stderr
    return done


def kernels(listing):
    """Name and key of each row; when it was last used differs."""
    rows = [re.split(r"\s{2,}|\t", line) for line in listing.splitlines()[2:]]
    return [(row[0], row[-1]) for row in rows]


needs_compiler = pytest.mark.skipif(
    not any(row.name == "NVRTC" and row.is_found for row in cuop.system_info()),
    reason="needs NVRTC",
)


@needs_compiler
def test_kernels_are_made_listed_moved_and_removed(tmp_path):
    first, second, archive = tmp_path / "first", tmp_path / "second", tmp_path / "kernels"
    warm = ("warm", "add", "max", "--dtype", "float32", "--arch", "sm_90a")
    assert "3 kernels ready" in run(first, *warm).stdout
    assert "3 kernels ready" in run(first, *warm).stdout
    listing = run(first, "ls").stdout
    assert "add sm_90a" in listing and "max sm_90a" in listing
    assert len(listing.splitlines()) == 2 + 3
    about = run(first, "info").stdout
    assert str(first / "kernels") in about and "usable" in about
    assert "3 kernels written" in run(first, "export", str(archive)).stdout
    assert "3 kernels taken" in run(second, "import", str(archive)).stdout
    assert sorted(kernels(run(second, "ls").stdout)) == sorted(kernels(listing))
    assert "3 kernels removed" in run(second, "clear").stdout
    assert "0 kernels removed" in run(second, "clear").stdout
    os.chmod(first / "kernels", 0o777)
    assert "can be written by other users" in run(first, "info").stdout


def test_wrong_use_is_said(tmp_path):
    (tmp_path / "text").write_text("no kernels")
    failed = run(tmp_path, "import", str(tmp_path / "text"), check=False)
    assert failed.returncode == 1 and "is no file that 'export' wrote" in failed.stderr
    if cuop.device_count("cuda") == 0:
        failed = run(tmp_path, "warm", "add", check=False)
        assert failed.returncode == 1
        assert "kernel_cache_warm: there is no GPU to compile for (" in failed.stderr
        assert "name an architecture, such as sm_90a" in failed.stderr
    failed = run(tmp_path, "warm", "no_such_operation", "--arch", "sm_90a", check=False)
    assert failed.returncode == 1 and "no_such_operation" in failed.stderr


def test_settings_reach_the_compiler(tmp_path):
    before = cuop.get_global_jit_config()
    try:
        config = cuop.get_global_jit_config()
        config.cache_dir, config.max_cache_size = str(tmp_path), 12345
        cuop.set_global_jit_config(config)
        about = _core.kernel_cache_info()
        assert about["directory"] == str(tmp_path / "kernels")
        assert about["max_bytes"] == 12345
    finally:
        cuop.set_global_jit_config(before)


@needs_compiler
def test_nothing_is_compiled_while_python_ends(tmp_path):
    """The handler was registered before cuop's own: it is called after that."""
    code = """
import atexit
def late():
    print("asked")
    _core.kernel_cache_warm(["add"], ["float32"], "sm_90a")
atexit.register(late)
from cuop import _core
assert _core.kernel_cache_warm(["max"], ["float32"], "sm_90a") > 0
"""
    ended = run_with({"CUOP_CACHE_DIR": str(tmp_path)}, code)
    assert (ended.returncode, ended.stdout) == (0, "asked\n")
    assert "is not compiled: the process ends" in ended.stderr
