"""The dependency checker finds what it must, and only that."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))

import check_layers  # noqa: E402


def findings(path: str, *lines: str) -> list[str]:
    text = "\n".join(["#pragma once", *lines]) + "\n"
    return [str(finding) for finding in check_layers.check_text(path, text)]


def test_upward_include_names_both_layers_and_the_line():
    (found,) = findings("src/cuop/core/tensor.h", "", '#include "cuop/ops/fft/fft.h"')
    assert found.startswith("src/cuop/core/tensor.h:3: ")
    assert "core" in found and "ops" in found


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/cuop/ops/fft/fft.cpp", "cuop/ops/copy/copy.h"),
        ("src/cuop/ops/fft/fft.cpp", "cuop/core/error.h"),
        ("src/cuop/dist/mesh.h", "cuop/dist/comm/communicator.h"),
        ("src/cuop/dist/plan/plan.h", "cuop/dist/mesh.h"),
        ("src/cuop/dist/exec/run.cpp", "cuop/ops/matmul/matmul.h"),
    ],
)
def test_own_and_lower_layers_are_allowed(path, include):
    assert findings(path, f'#include "{include}"') == []


@pytest.mark.parametrize(("lower", "upper"), list(zip(check_layers.ORDER, check_layers.ORDER[1:])))
def test_every_step_up_is_refused(lower, upper):
    def folder(layer):
        return f"cuop/{layer}"

    assert findings(f"src/{folder(lower)}/a.cpp", f'#include "{folder(upper)}/b.h"')
    if lower not in check_layers.FORBIDDEN.get(upper, ()):
        assert findings(f"src/{folder(upper)}/a.cpp", f'#include "{folder(lower)}/b.h"') == []


@pytest.mark.parametrize("pure", ["plan", "cost"])
@pytest.mark.parametrize("include", ["cuop/dist/comm/communicator.h", "cuop/backend/runtime.h"])
def test_planners_know_no_communicator_and_no_runtime(pure, include):
    (found,) = findings(f"src/cuop/dist/{pure}/a.cpp", f'#include "{include}"')
    assert "pure" in found


def test_folder_without_layer_is_reported():
    assert findings("src/cuop/misc/a.cpp", '#include "cuop/core/error.h"')
    assert findings("src/cuop/core/a.cpp", '#include "cuop/misc/a.h"')


@pytest.mark.parametrize(
    ("include", "home"),
    [
        ("mpi.h", "src/cuop/dist/comm/mpi_module.cpp"),
        ("dnnl.h", "src/cuop/backend/cpu/dnn.cpp"),
        ("oneapi/dnnl/dnnl.hpp", "src/cuop/backend/cpu/dnn.cpp"),
        ("fftw3.h", "src/cuop/backend/cpu/fft.cpp"),
        ("cuda.h", "src/cuop/backend/cuda/driver.cpp"),
        ("nanobind/nanobind.h", "python/src/module.cpp"),
        ("gtest/gtest.h", "tests/core/dims_test.cpp"),
    ],
)
def test_third_party_headers_stay_with_their_adapter(include, home):
    line = f"#include <{include}>"
    assert findings(home, line) == []
    (found,) = findings("src/cuop/ops/fft/fft.cpp", line)
    assert include in found and "third-party" in found


def test_unknown_header_is_reported():
    (found,) = findings("src/cuop/core/a.cpp", "#include <boost/any.hpp>")
    assert "boost/any.hpp" in found


def test_public_headers_are_plain():
    public = "src/cuop/core/dtype.h"
    assert findings(public, "#include <vector>", '#include "cuop/core/half.h"') == []
    assert findings(public, "#include <unistd.h>")
    assert findings(public, "#ifdef NDEBUG", "#endif")
    for other in ("src/cuop/core/dtype.cpp", "src/cuop/ops/fft/fft_kernels.h"):
        assert findings(other, "#include <unistd.h>", "#ifdef NDEBUG", "#endif") == []


def test_public_headers_include_no_internal_ones():
    for internal in ("cuop/ops/fft/fft_kernels.h", "cuop/backend/cpu/thread_pool.h"):
        (found,) = findings("src/cuop/ops/fft/fft.h", f'#include "{internal}"')
        assert "internal" in found
        assert findings("src/cuop/ops/fft/fft_kernels.h", f'#include "{internal}"') == []
        assert findings("src/cuop/ops/fft/fft.cpp", f'#include "{internal}"') == []


def tree(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(finding) for finding in check_layers.check_tree(root)]


def test_the_list_of_public_headers_names_headers_in_order(tmp_path):
    header = "#pragma once\n"
    found = tree(
        tmp_path,
        {
            "public_headers.txt": "cuop/core/b.h\ncuop/core/a.h\ncuop/core/gone.h\n",
            "cuop/core/a.h": header,
            "cuop/core/b.h": header,
        },
    )
    assert len(found) == 2
    assert "public_headers.txt:2" in found[0] and "order" in found[0]
    assert "public_headers.txt:3" in found[1] and "gone.h" in found[1]


def test_a_circle_is_found_through_headers_and_sources(tmp_path):
    def including(*names):
        return "#pragma once\n" + "".join(f'#include "cuop/core/{n}"\n' for n in names)

    files = {
        "cuop/core/a.h": including(),
        "cuop/core/a.cpp": including("a.h", "b.h"),
        "cuop/core/b.h": including("c.cuh"),
        "cuop/core/c.cuh": including(),
        "cuop/core/d.cpp": including("a.h"),
    }
    assert tree(tmp_path, files) == []
    (found,) = tree(tmp_path, {"cuop/core/c.cpp": including("a.h")})
    assert "cuop/core/a -> cuop/core/b -> cuop/core/c -> cuop/core/a" in found


def test_header_without_guard_and_long_file_are_reported():
    assert any("#pragma once" in str(f) for f in check_layers.check_text("src/cuop/core/a.h", ""))
    limit = check_layers.LINE_LIMIT
    assert list(check_layers.check_text("python/a.py", "x\n" * limit)) == []
    assert len(list(check_layers.check_text("python/a.py", "x\n" * (limit + 1)))) == 1


def test_command_exits_by_what_it_found(tmp_path):
    source = tmp_path / "src/cuop/core/a.cpp"
    source.parent.mkdir(parents=True)
    for text, code in (("#include <vector>\n", 0), ('#include "cuop/ops/a.h"\n', 1)):
        source.write_text(text)
        command = [sys.executable, TOOLS / "check_layers.py", tmp_path]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == code
        assert ("src/cuop/core/a.cpp:1: " in run.stdout) == bool(code)


def test_the_house_keeps_the_rule():
    assert [str(f) for f in check_layers.check_tree(TOOLS.parent)] == []
