"""A program runs again where the leak checker itself broke down, and only there."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "leak_checked.sh"
PASSED = "[  PASSED  ] 2 tests."
FAILED = "[  FAILED  ] 1 test."
BROKEN = "==7==LeakSanitizer has encountered a fatal error."
LEAKS = "==7==ERROR: LeakSanitizer: detected memory leaks"


@pytest.mark.parametrize(
    ("first", "status", "runs", "expected"),
    [
        ([PASSED], 0, 1, 0),
        ([PASSED, BROKEN], 23, 2, 0),
        ([PASSED, LEAKS], 23, 1, 23),
        ([FAILED, BROKEN], 23, 1, 23),
        ([FAILED], 1, 1, 1),
        (["terminated"], 134, 1, 134),
    ],
)
def test_only_a_broken_checker_is_asked_again(tmp_path, first, status, runs, expected):
    count = tmp_path / "count"
    program = tmp_path / "program.sh"
    lines = "\n".join(f"  echo '{line}' >&2" for line in first)
    program.write_text(
        f"echo run >> {count}\n"
        f"if [ $(wc -l < {count}) -eq 1 ]; then\n{lines}\n  exit {status}\nfi\necho '{PASSED}'\n",
        encoding="utf-8",
    )
    done = subprocess.run(["bash", SCRIPT, "bash", program], capture_output=True, text=True)
    assert done.returncode == expected
    assert len(count.read_text(encoding="utf-8").split()) == runs
    assert all(line in done.stdout + done.stderr for line in first)
