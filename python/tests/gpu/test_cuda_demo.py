"""The main job on GPUs, checked beside NumPy and SciPy."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("choice", [["--device", "cuda"], []], ids=["asked for", "by itself"])
def test_demo_runs_on_gpus(tmp_path, choice):
    report = tmp_path / "report.html"
    command = ["-m", "cuop.cli.main", "demo", *choice, "--ranks", "3", "-o", str(report)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 ranks (thread, cuda)" in done.stdout
    assert done.stdout.count("holds") == 6 and "FAILED" not in done.stdout
    assert report.stat().st_size > 0
