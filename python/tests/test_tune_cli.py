"""`cuop tune` as a shell user meets it: what it measures, stores, shows and refuses."""

import re

import pytest
from fresh_process import run_cuop

pytest.importorskip("typer")

ROW = re.compile(
    r"^(\w+ [\dx]+ float\d\d)\s+(\S+)\s+(default|[\d.]+ %)\s+(measured|disk|put off)\s+[\d.]+ ms$",
    re.MULTILINE,
)


@pytest.fixture
def cuop_tune(tmp_path):
    """cuop tune with a cache of its own; `rows` are the lines of what was measured."""

    def run(*arguments, **environment):
        kept = {"CUOP_CACHE_DIR": str(tmp_path / "cache")}
        done = run_cuop("tune", *arguments, **kept | environment)
        done.rows = ROW.findall(done.stdout)
        return done

    return run


def stored(cuop_tune):
    """The lines of `cuop tune ls` about softmax."""
    return [line for line in cuop_tune("ls").stdout.splitlines() if "JITSoftmaxFloat" in line]


CASE = ("ops", "softmax", "--size", "5x7", "--dtype", "float32")


def test_what_is_measured_is_stored_shown_and_forgotten(cuop_tune, tmp_path):
    done = cuop_tune(*CASE, "--details")
    assert done.returncode == 0, done.stderr
    ((case, fastest, gain, source),) = done.rows
    assert (case, source) == ("softmax 5x7 float32", "measured")
    assert fastest in ("tiled", "simple")
    assert gain.endswith(" %") if fastest == "simple" else gain == "default"
    assert f"stored in {tmp_path / 'cache'}" in done.stdout
    assert "tiled:" in done.stdout and "simple:" in done.stdout  # the details
    assert "measuring softmax 5x7 float32" in done.stderr

    assert cuop_tune(*CASE).rows == [(case, fastest, gain, "disk")]
    (entry,) = stored(cuop_tune)
    assert entry.startswith(fastest)
    assert re.search(r"^choices\s+1$", cuop_tune("info").stdout, re.MULTILINE)
    assert cuop_tune("clear").stdout == "1 choice removed\n"
    assert stored(cuop_tune) == []


def test_every_operator_has_a_case_that_runs(cuop_tune):
    from cuop.cli import tuned

    for name, operator in tuned.OPERATORS.items():
        sizes = "x".join("3" for _ in operator.sizes)
        done = cuop_tune("ops", name, "--size", sizes)
        assert done.returncode == 0, done.stderr
        assert [row[0] for row in done.rows] == [
            f"{name} {sizes} float32",
            f"{name} {sizes} float64",
        ]
        for shape in operator.defaults:
            assert len(shape) == len(operator.sizes)


def test_frozen_it_measures_nothing(cuop_tune):
    done = cuop_tune(*CASE, CUOP_TUNE_FROZEN="1")
    assert [row[2:] for row in done.rows] == [("default", "put off")]
    assert "frozen" in done.stderr
    assert stored(cuop_tune) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing"], "'nothing' was given; allowed are gemm, gemv"),
        (["gemm", "--size", "3x3"], "'3x3' was given; gemm needs MxNxK"),
        (["gemm", "--size", "3x3x0"], "gemm needs MxNxK"),
        (["--size", "3x3"], "it needs the one operator"),
        (["conv2d", "--size", "1x1x1x2x3"], "a kernel of 3 does not fit an edge of 2"),
        (["gemm", "--device", "nowhere"], "nowhere"),
        (["gemm", "--dtype", "float16"], "float16 is a choice among a GPU's libraries"),
        (
            ["relu", "--dtype", "bfloat16"],
            "relu: there is no choice in bfloat16; known are float32",
        ),
        (["conv2d", "--dtype", "complex64"], "conv2d: there is no choice in complex64"),
    ],
)
def test_what_cannot_be_measured_is_refused(cuop_tune, arguments, message):
    done = cuop_tune("ops", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def all_memory():
    """A size of as many bytes as the host has."""
    import cuop

    return f"{cuop.get_memory_info('cpu')[1] // 8}x1"


@pytest.mark.parametrize("size", ["99999999x99999999", "99999999999999999999x9", all_memory()])
def test_what_has_no_room_is_an_error_in_words(cuop_tune, size):
    done = cuop_tune("ops", "relu", "--size", size)
    assert done.returncode == 1
    assert f"cuop: error: tune ops: there is no room for {size} numbers" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cpu
def test_on_the_cpu_no_library_is_searched_for():
    import cuop

    called = []
    found = cuop.tune_libraries(lambda: called.append(cuop.matmul(*2 * [cuop.ones((3, 3))])))
    assert called[0].numpy().tolist() == [[3.0] * 3] * 3
    assert (found["source"], found["text"], found["is_complete"]) == ("", "", True)
    with pytest.raises(ZeroDivisionError):
        cuop.tune_libraries(lambda: 1 / 0)
    with pytest.raises(cuop.ExecutionError, match="rounds is 0, needed is 1 to 1000"):
        cuop.tune_libraries(lambda: None, rounds=0)
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(cuop.ExecutionError, match="seconds is .*, needed is more than 0"):
            cuop.tune_libraries(lambda: None, seconds=seconds)
