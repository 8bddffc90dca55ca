"""Mistakes are planted where they were chosen, sleep until they are named, and are told apart."""

import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tools.mutants import choice, kinds, nearest, trial  # noqa: E402


def function(text, tmp_path):
    file = tmp_path / "python/cuop/sample.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_shares_follow_the_weights_and_add_up():
    areas = list(choice.AREAS)
    for count in (1, 7, 20, 200, 250):
        shares = choice.shares(count, areas)
        assert sum(shares.values()) == count
    assert choice.shares(10, ["tune"]) == {"tune": 10}
    assert choice.shares(6, ["memory", "python"]) == {"memory": 3, "python": 3}


def test_a_seed_names_the_same_lines_wherever_they_stand(tmp_path):
    lines = [f"    if a > {i}:\n        a = {i}\n    b = 0\n    b = 1\n" for i in range(20)]
    function("def f(a):\n" + "".join(lines) + "    return a\n", tmp_path)
    first = choice.choose(tmp_path, 5, ["python"], 3)
    assert len(first) == 5
    function("import os\n\n\ndef f(a):\n" + "".join(lines) + "    return a\n", tmp_path)
    moved = choice.choose(tmp_path, 5, ["python"], 3)
    assert [(m.id, m.original) for m in moved] == [(m.id, m.original) for m in first]
    assert [m.line for m in moved] == [m.line + 3 for m in first]
    other = choice.choose(tmp_path, 5, ["python"], 4)
    assert [m.original for m in other] != [m.original for m in first]


def test_only_code_that_runs_gets_mistakes(tmp_path):
    file = function(
        'X = 1\n\n\ndef f(a):\n    """if a:\n    while a:\n    """\n    return a\n', tmp_path
    )
    assert choice.places(file) == [7]


@pytest.mark.parametrize(
    "kind, line",
    [
        (kinds.python_condition, "if a > 1:"),
        (kinds.python_operand, "if a > 1 and a < 3:"),
        (kinds.python_operand, "if a == 1 or a == 3:"),
    ],
)
def test_a_mistake_sleeps_until_it_is_named(kind, line):
    planted, _ = kind(f"    {line}", 5, random.Random(1))

    def answers(text, named):
        names = {"_mutant": lambda number: named and number == 5}
        source = f"def f(a):\n{text}\n        return True\n    return False\n"
        exec(source, names)
        return [names["f"](a) for a in range(5)]

    true = answers(f"    {line}", False)
    assert answers(planted, False) == true
    assert answers(planted, True) != true


def test_no_part_of_a_comparison_is_compared():
    def planted(line):
        return kinds.other_comparison(f"  if ({line}) return;", 5, random.Random(1))

    for line in ("looks % k == 0", "a + b == c", "a == b + c", "a & b == c", "f(x) * y != z"):
        assert planted(line) is None, line
    for line in ("a == b", "a.b() != c && d", "a || b->c == d"):
        assert planted(line) is not None, line


def test_the_failing_test_is_named():
    gtest = "[ RUN      ] A.b\n[  FAILED  ] Levels/A.b/3, where GetParam() = 1 (2 ms)\n"
    assert trial.failed_test(gtest) == ["googletest", "Levels/A.b/3"]
    assert trial.failed_test("[ RUN      ] A.b\n[       OK ] A.b\n[ RUN      ] A.c\n") == [
        "googletest",
        "A.c",
    ]
    output = "FAILED python/tests/test_x.py::test_y[a b - c] - AssertionError: - no\n"
    assert trial.failed_test(output)[0] == "pytest"
    assert trial.failed_test(output)[1].startswith("python/tests/test_x.py::test_y[a b")
    assert trial.failed_test("Segmentation fault\n") == []


def place(tmp_path):
    tree = tmp_path / "mutants/tree"
    tree.mkdir(parents=True)
    return trial.Place(ROOT, tree, "none")


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    here = place(tmp_path)
    mark = tmp_path / "late"
    command = ["sh", "-c", f"(sleep 2; touch '{mark}') & sleep 100"]
    assert trial.run(here, command, 1, 0.2) == (None, "")
    assert trial.run(here, ["sleep", "2.2"], 1, 60)[0] == 0
    assert not mark.exists()


def test_a_command_hears_which_mistake_is_awake(tmp_path):
    here = place(tmp_path)
    assert trial.run(here, ["sh", "-c", "echo $CUOP_MUTANT; exit 3"], 7, 60) == (3, "7\n")
    assert trial.run(here, ["sh", "-c", "kill -SEGV $$"], 7, 60)[0] == -11


def test_what_fails_without_a_mistake_too_is_not_caught(tmp_path, monkeypatch):
    here = place(tmp_path)
    always = "echo '[  FAILED  ] A.b (1 ms)'; exit 1"
    awake = 'test "$CUOP_MUTANT" = -1 && exit 0; ' + always
    once = f'test -e "{tmp_path}/once" && exit 0; touch "{tmp_path}/once"; ' + always
    times = trial.Times({})
    for text, outcome in (
        (always, "unclear"),
        (awake, "caught"),
        (once, "survived"),
        ("exit 0", "survived"),
    ):
        command = ["sh", "-c", text]
        monkeypatch.setattr(trial.Place, "commands", lambda self, name, c=command: [c])
        monkeypatch.setattr(trial.Place, "googletest", lambda self, test, c=command: c)
        assert trial.look(here, 7, "x.py", times).outcome == outcome


def test_what_fails_without_a_mistake_is_left_out_of_all_that_follows(tmp_path):
    here = place(tmp_path)

    def command():
        broken = [name for name in ("A.a", "A.b") if name not in here.left_out]
        text = f"echo '[  FAILED  ] {broken[0]} (1 ms)'; exit 1" if broken else "echo passed"
        return ["sh", "-c", text]

    assert trial.passing_output(here, command) == "passed\n"
    assert here.left_out == {"A.a", "A.b"}
    assert here.googletest("*-C.c")[1] == "--gtest_filter=*-C.c:A.a:A.b"
    with pytest.raises(SystemExit, match="tests fail without a mistake"):
        trial.passing_output(here, lambda: ["sh", "-c", "echo no name; exit 1"])


@pytest.mark.parametrize("area", choice.AREAS)
def test_every_file_has_tests_near_it(area):
    for file in choice.files_of(area, ROOT):
        name = file.relative_to(ROOT).as_posix()
        assert trial.Place(ROOT, ROOT, "none").commands(name), name
        if name.startswith("src/"):
            assert nearest.googletest_filters(ROOT, name), name
