"""The search among libraries' algorithms in the dtypes that have no JIT wrapper."""

import numpy as np
import pytest
from fresh_process import run_cuop

import cuop

pytestmark = pytest.mark.usefixtures("own_cache")


def operand(dtype, *shape):
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * values[::-1]
    return cuop.tensor(values, dtype)


def calls(dtype):
    a, b = operand(dtype, 37, 21), operand(dtype, 21, 19)
    yield "gemm", cuop.matmul, (a, b)
    yield "gemm", cuop.matmul, (operand(dtype, 3, 9, 5), operand(dtype, 3, 5, 7))
    if not dtype.startswith("complex"):
        yield "conv", cuop.conv2d, (operand(dtype, 2, 3, 9, 8), operand(dtype, 4, 3, 3, 3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "complex128"])
def test_products_and_convolutions_are_searched_for_stored_and_right(dtype):
    count = 0
    for kind, function, arguments in calls(dtype):
        on_gpu = [argument.to("cuda") for argument in arguments]
        before = cuop.tuning_info()["searches"]
        found = cuop.tune_libraries(lambda: function(*on_gpu))  # noqa: B023
        assert found["source"] == "measured", found["text"]
        assert found["is_complete"] and found["fastest"]
        assert f"{kind} {dtype}" in found["text"]
        assert found["made_in_ms"] > 0
        assert cuop.tuning_info()["searches"] == before + 1
        count += 1
        assert len(cuop.tuning_choices()) == count
        # By the winner, and by what the CPU answers.
        result, expected = function(*on_gpu).to("cpu"), function(*arguments)
        tolerance = {"float16": 4e-3, "bfloat16": 4e-2, "complex64": 1e-5}.get(dtype, 1e-13)
        wide = "complex128" if dtype.startswith("complex") else "float64"
        difference = result.astype(wide).numpy() - expected.astype(wide).numpy()
        assert (
            np.abs(difference).max()
            <= tolerance * (1 + np.abs(expected.astype(wide).numpy())).max()
        )
        again = cuop.tune_libraries(lambda: function(*on_gpu))  # noqa: B023
        assert (again["source"], again["fastest"]) == ("disk", "stored")
        assert again["gain"] == pytest.approx(found["gain"], rel=1e-5)  # stored with six digits


def test_frozen_nothing_is_measured():
    a = operand("float16", 8, 8).to("cuda")
    cuop.set_tuning_frozen(True)
    try:
        found = cuop.tune_libraries(lambda: cuop.matmul(a, a))
    finally:
        cuop.set_tuning_frozen(False)
    assert found["source"] == "put off"
    assert "the tuner is frozen" in found["text"]
    assert cuop.tuning_choices() == []


def test_where_no_library_has_a_choice():
    x = cuop.ones((4,), device="cuda")
    found = cuop.tune_libraries(lambda: cuop.exp(x))
    assert (found["source"], found["fastest"], found["gain"]) == ("", "", 0.0)


def test_cuop_tune_ops_takes_these_dtypes(tmp_path):
    def tune(*arguments):
        kept = str(tmp_path / "of_the_command")
        return run_cuop("tune", *arguments, timeout=300, CUOP_CACHE_DIR=kept)

    for name, size, dtype in (
        ("gemm", "9x8x7", "float16"),
        ("matmul", "2x4x8x6", "complex64"),
        ("conv2d", "1x2x3x6x3", "bfloat16"),
    ):
        arguments = ("ops", name, "--size", size, "--dtype", dtype, "--device", "cuda:0")
        for source in ("measured", "disk"):
            done = tune(*arguments)
            assert done.returncode == 0, done.stderr
            (row,) = [line for line in done.stdout.splitlines() if f"{name} {size} {dtype}" in line]
            assert source in row
    assert len([line for line in tune("ls").stdout.splitlines() if " on " in line]) == 3
