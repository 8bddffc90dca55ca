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


def test_installed_headers_are_plain():
    for installed in ("src/cuop/core/dtype.h", "src/cuop/core/half.h"):  # public, and a part
        assert findings(installed, "#include <vector>", '#include "cuop/core/dims.h"') == []
        assert findings(installed, "#include <unistd.h>")
        assert findings(installed, "#ifdef NDEBUG", "#endif")
    for other in ("src/cuop/core/dtype.cpp", "src/cuop/ops/fft/fft_kernels.h"):
        assert findings(other, "#include <unistd.h>", "#ifdef NDEBUG", "#endif") == []


def tree(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(finding) for finding in check_layers.check_tree(root)]


def including(*names: str) -> str:
    return "#pragma once\n" + "".join(f'#include "cuop/core/{name}"\n' for name in names)


def names(*letters: str) -> str:
    return "".join(f"cuop/core/{letter}.h\n" for letter in letters)


# a, which is public, includes b, and b includes c; nothing includes d but its source.
LISTED = {
    "cuop/core/a.h": including("b.h"),
    "cuop/core/b.h": including("c.h"),
    "cuop/core/c.h": including(),
    "cuop/core/d.h": including(),
    "cuop/core/d.cpp": including("d.h"),
    "public_headers.txt": names("a"),
    "public_parts.txt": names("b", "c"),
}


def test_lists_that_fit_the_headers_are_right(tmp_path):
    assert tree(tmp_path, LISTED) == []
    both_public = {"public_headers.txt": names("a", "c"), "public_parts.txt": names("b")}
    assert tree(tmp_path, both_public) == []


@pytest.mark.parametrize(("header_list", "first"), [("public_headers", "a"), ("public_parts", "b")])
def test_lists_name_headers_in_order(tmp_path, header_list, first):
    tree(tmp_path, LISTED)
    text = LISTED[f"{header_list}.txt"]
    line = len(text.splitlines())
    for wrong in ("cuop/core/d.cpp", "cuop/core/gone.h"):
        (found,) = tree(tmp_path, {f"{header_list}.txt": f"{text}{wrong}\n"})
        assert found == f"src/{header_list}.txt:{line + 1}: {wrong} is no header below src/"
    (found,) = tree(tmp_path, {f"{header_list}.txt": text + names(first)})
    assert f"src/{header_list}.txt:{line + 1}: cuop/core/{first}.h is not in" in found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"public_parts.txt": names("c")}, "src/cuop/core/a.h:2: "),
        ({"public_parts.txt": names("b")}, "src/cuop/core/b.h:2: "),  # needed through a part
        ({"cuop/core/c.h": including("d.h")}, "src/cuop/core/c.h:2: "),
    ],
)
def test_what_public_headers_need_is_listed(tmp_path, changed, expected):
    tree(tmp_path, LISTED)
    (found,) = tree(tmp_path, changed)
    assert found.startswith(expected) and "internal" in found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"public_parts.txt": names("b", "c", "d")}, "d.h is needed by no public header"),
        ({"cuop/core/b.h": including()}, "c.h is needed by no public header"),
        ({"public_headers.txt": names("a", "b")}, "b.h is public already"),
    ],
)
def test_parts_are_what_public_headers_need_and_no_more(tmp_path, changed, expected):
    tree(tmp_path, LISTED)
    (found,) = tree(tmp_path, changed)
    assert found.startswith("src/public_parts.txt:") and expected in found


def installed(root: Path, *left_out: str, **changed: str) -> list[str]:
    """Of a folder in which the headers of LISTED were installed, with changes by file."""
    tree(root, LISTED)
    folder = root / "include"
    files = {"a": "", "b": "", "c": "", "cuop": '#include "cuop/core/a.h"\n', **changed}
    for name, text in files.items():
        path = folder / ("cuop" if name == "cuop" else "cuop/core") / f"{name}.h"
        path.parent.mkdir(parents=True, exist_ok=True)
        if name not in left_out:
            path.write_text(text)
    return [str(finding) for finding in check_layers.check_installed(root, folder)]


def test_installed_is_what_the_lists_name(tmp_path):
    assert installed(tmp_path / "right") == []
    (found,) = installed(tmp_path / "more", d="")
    assert found == "cuop/core/d.h:1: is installed, but no list names it"
    for name, path in (("a", "cuop/core/a.h"), ("c", "cuop/core/c.h"), ("cuop", "cuop/cuop.h")):
        assert installed(tmp_path / name, name) == [f"{path}:1: is not installed"]


def test_the_umbrella_includes_the_public_headers(tmp_path):
    (found,) = installed(tmp_path, cuop='#include "cuop/core/a.h"\n#include "cuop/core/b.h"\n')
    assert found == "cuop/cuop.h:1: includes cuop/core/b.h, which is not public"
    assert installed(tmp_path, cuop="") == ["cuop/cuop.h:1: does not include cuop/core/a.h"]


def test_a_circle_is_found_through_headers_and_sources(tmp_path):
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


def test_command_checks_an_installed_folder(tmp_path):
    installed(tmp_path)
    command = [sys.executable, TOOLS / "check_layers.py", tmp_path, "--installed"]
    for folder, code in (("include", 0), ("src", 1)):
        run = subprocess.run([*command, tmp_path / folder], capture_output=True, text=True)
        assert run.returncode == code
        assert ("cuop/cuop.h:1: is not installed" in run.stdout) == bool(code)


def test_the_house_keeps_the_rule():
    assert [str(f) for f in check_layers.check_tree(TOOLS.parent)] == []
