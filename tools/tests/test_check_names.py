"""One name in a namespace has one definition, and the checker says where a second stands."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))

import check_names  # noqa: E402


def tree(root: Path, **files: str) -> Path:
    (root / "src").mkdir()
    for name, text in files.items():
        (root / "src" / f"{name}.h").write_text(
            f"namespace cuop {{\n{text}\n}}  // namespace cuop\n"
        )
    return root


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("class Wire {};", "struct Wire { int way; };"),
        ("struct Wire final : Base {};", "enum class Wire : int { kPlain };"),
        ("struct alignas(64) Wire {};", "class Wire\n    : public Base {};"),
        ("inline constexpr int kBytes = 16;", "inline constexpr int64_t kBytes = 16;"),
        ("inline constexpr int kSizes[] = {1};", "inline constexpr int kSizes[] = {2};"),
    ],
)
def test_two_definitions_are_found_with_their_places(tmp_path, first, second):
    (found,) = check_names.check_tree(tree(tmp_path, a=first, b=second))
    assert str(found).startswith("src/a.h:2: cuop::") and str(found).endswith(
        "defined in src/b.h:2 as well"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("class Wire {};", "class Wire;"),
        ("class Wire {};", "namespace mpi {\nclass Wire {};\n}  // namespace mpi"),
        ("class Wire {};", "namespace {\nclass Wire {};\n}  // namespace"),
        ("struct Wire {};", "template <>\nstruct Wire<int> {};"),
        ("struct Wire {};", "struct Wire* made();"),
        ("enum class Form : int { kPlain };", "enum class Form : int;"),
        ("struct Outer {\n  struct Side {};\n};", "struct Other {\n  struct Side {};\n};"),
    ],
)
def test_declarations_and_names_of_other_scopes_are_not(tmp_path, first, second):
    assert check_names.check_tree(tree(tmp_path, a=first, b=second)) == []


def test_the_command_exits_by_what_it_found(tmp_path):
    tree(tmp_path, a="class Wire {};", b="class Wire {};")
    run = subprocess.run(
        [sys.executable, TOOLS / "check_names.py", tmp_path], capture_output=True, text=True
    )
    assert run.returncode == 1 and "check_names: src and python/src, 1 findings" in run.stdout


def test_the_house_keeps_the_rule():
    assert check_names.check_tree(check_names.HOUSE) == []
