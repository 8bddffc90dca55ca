"""Programs and commands in processes of their own."""

import os
import subprocess
import sys

#: For programs that import what their tests do.
TEST_PATH = {"PYTHONPATH": os.pathsep.join(sys.path)}


def run(command, variables=(), unset=(), timeout=120):
    """The finished process of a command that saw these variables, and none of those `unset`."""
    kept = {key: value for key, value in os.environ.items() if key not in unset}
    return subprocess.run(
        command,
        env=kept | dict(variables),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_with(variables, code, unset=(), timeout=120):
    """The same of a program."""
    return run([sys.executable, "-c", code], variables, unset, timeout)


def output_of(code, *arguments, **variables):
    """What a program prints, which must end well."""
    done = run([sys.executable, "-c", code, *arguments], variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_cuop(*arguments, timeout=120, **variables):
    """The finished process of `cuop ...`."""
    command = [sys.executable, "-m", "cuop.cli.main", *map(str, arguments)]
    return run(command, variables, timeout=timeout)
