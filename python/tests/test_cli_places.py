"""The `cuop` command and the places it looks at: caches, files without an end, numbers that are too long."""

import os
import subprocess
import sys

import pytest
from test_cli import cuop, in_cache

import cuop as library


def test_looking_at_a_cache_makes_nothing(tmp_path):
    folder = tmp_path / "new" / "cache"
    for command in (["cache", "info"], ["cache", "ls"], ["cache", "clear"], ["tune", "info"],
                    ["tune", "ls"], ["tune", "clear"]):  # fmt: skip
        done = in_cache(str(folder), *command)
        assert done.returncode == 0, done.stderr
        if command[1] == "info":
            assert "usable" in done.stdout and str(folder) in done.stdout
        assert list(tmp_path.iterdir()) == [], command


def test_a_relative_cache_stays_where_the_process_began(tmp_path):
    code = (
        "import os, cuop; before = cuop.tuning_info()['directory']; os.mkdir('below'); "
        "os.chdir('below'); assert cuop.tuning_info()['directory'] == before; print(before)"
    )
    environment = {**os.environ, "CUOP_CACHE_DIR": "kept"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'kept'}\n"


def test_a_relative_home_of_caches_is_ignored(tmp_path):
    environment = {**os.environ, "CUOP_CACHE_DIR": "", "XDG_CACHE_HOME": "x", "HOME": str(tmp_path)}
    environment.pop("GENESIS_KERNEL_CACHE_DIR", None)
    code = "import cuop; print(cuop.tuning_info()['directory'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path / '.cache/cuop'}\n", done.stderr


def test_files_without_an_end_are_not_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in ("/dev/zero", pipe):
        done = cuop("cache", "import", file)
        assert done.returncode == 1
        assert done.stderr == f"cuop: error: kernel cache: {file} is no file that 'export' wrote\n"
        done = cuop("plan", "matmul", 3, 4, 5, "--machine", file)
        assert done.returncode == 1
        assert done.stderr == f"cuop: error: plan: {file} is no ordinary file\n"


@pytest.mark.parametrize("option", ["--axis", "--iterations"])
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_numbers_beyond_64_bits_are_wrong_usage(tmp_path, option, number):
    name = "sum" if option == "--axis" else "stencil"
    done = cuop("run", name, tmp_path / "x.npy", "-o", tmp_path / "o.npy", option, number)
    assert done.returncode == 2, done.stderr
    assert f"'{number}' was given; needed is a whole number" in done.stderr
    assert "of 64 bits" in done.stderr


def test_sizes_beyond_64_bits_say_so():
    for text in ("99999999999GB", "1e30", "8388608TB", "9223372036854775808"):
        with pytest.raises(library.ExecutionError, match=f"'{text}' is more bytes than 64 bits"):
            library.set_memory_limit(text)
    with pytest.raises(library.ExecutionError, match="'-1' is not a size"):
        library.set_memory_limit("-1")


def test_ctrl_c_before_a_command_has_begun_is_no_traceback():
    code = (
        "import signal, os, sys, cuop.cli.main as command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have them ignored\n"
        "for number in (signal.SIGHUP, signal.SIGTERM): signal.signal(number, signal.SIG_DFL)\n"
        "command._application = lambda: os.kill(os.getpid(), int(sys.argv[1])) or signal.pause()\n"
        "command.main()"
    )
    for number, expected in ((2, 130), (15, 143), (1, 129)):
        done = subprocess.run(
            [sys.executable, "-c", code, str(number)], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (expected, "")


def test_a_count_of_threads_that_is_too_large_says_its_row():
    done = subprocess.run(
        [sys.executable, "-c", "import cuop; print([r['current'] for r in cuop.env_table() "
         "if r['name'] == 'CUOP_THREADS'])"],
        env={**os.environ, "CUOP_THREADS": "99999999"}, capture_output=True, text=True,
    )  # fmt: skip
    assert "CUOP_THREADS: 99999999 is too many, allowed are 0 to 65536" in done.stdout
