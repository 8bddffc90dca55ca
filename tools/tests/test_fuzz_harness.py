"""The harness of the fuzzers: a crash and a hang are told by their call, and the others go on."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import os, sys, time
sys.path.insert(0, {tools!r})
import fuzz_harness
from fuzz_harness import Case, main

fuzz_harness._LONGEST_CALL = 2.0

def endless():
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass

def deaf():
    while True:
        endless()

def make(random):
    made.append(1)
    number = fuzz_harness_first + len(made) - 1
    works = {{3: os.abort, 5: endless, 6: lambda: os._exit(7), 9: endless, 10: deaf}}
    work = works.get(number, lambda: None)
    return Case(
        f"call({{number}})", lambda: work() or ("words: none" if number == 8 else ""), number in (9, 10)
    )

made = []
fuzz_harness_first = int(sys.argv[sys.argv.index("--first") + 1]) if "--first" in sys.argv else 0
main("A test.", lambda: make)
"""


def test_findings_are_told_by_their_call(tmp_path):
    script = tmp_path / "fuzz.py"
    script.write_text(_PROGRAM.format(tools=str(Path(__file__).parents[1])))
    command = [sys.executable, script, "--calls", "12", "--seed", "4", "--seconds", "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    for finding in (
        "crash: SIGABRT call\n    --seed 4 --only 3: call(3)",
        "hang: call\n    --seed 4 --only 5: call(5)",
        "crash: exit code 7 call\n    --seed 4 --only 6: call(6)",
        "words: none\n    --seed 4 --only 8: call(8)",
        "long: call\n    --seed 4 --only 9: call(9)",  # heard the interrupt
    ):
        assert finding in done.stdout
    assert done.stdout.endswith("12 calls, seed 4: 2 crash, 2 hang, 2 long, 1 words\n")


def test_the_same_seed_gives_the_same_calls(tmp_path):
    command = [sys.executable, Path(__file__).parents[1] / "fuzz_npy.py", "--seed", "1"]
    said = [
        subprocess.run(
            [*command, "--only", "17"], capture_output=True, text=True, timeout=60, cwd=tmp_path
        ).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1] and "NUMPY" in said[0]
    assert not list(tmp_path.iterdir())  # what the call writes is not left where it is made
