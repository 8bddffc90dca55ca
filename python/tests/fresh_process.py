"""Programs in processes of their own, for tests of what the environment says."""

import os
import subprocess
import sys


def run_with(variables, code, unset=()):
    """The finished process of a program that saw these variables, and none of those `unset`."""
    kept = {key: value for key, value in os.environ.items() if key not in unset}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
