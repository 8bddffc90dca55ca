"""Generated pages are what the code says."""

import re
import sys
from pathlib import Path

import cuop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import generate_docs  # noqa: E402


def test_committed_pages_are_current():
    assert generate_docs.outdated() == [], "make docs writes them anew"


def test_every_variable_has_its_row():
    page = generate_docs.environment_page()
    rows = [line for line in page.splitlines() if line.startswith("| `CU")]
    assert len(rows) == len(cuop.env_table())
    for row, line in zip(cuop.env_table(), rows):
        assert row["name"] in line
        assert row["what"] in line
        assert row["what"].endswith(".")


def test_every_variable_of_the_struct_is_read():
    """One that its list leaves out keeps its default, whatever the environment says."""
    text = (generate_docs.ROOT / "src/cuop/core/env.h").read_text()
    declared = re.findall(r'EnvField<[\w:]+> \w+\{\s*"(\w+)"', text)
    assert len(declared) > 20
    assert sorted(declared) == sorted(row["name"] for row in cuop.env_table())


def test_an_old_page_is_noticed(tmp_path):
    assert generate_docs.outdated(tmp_path) == ["docs/environment.md", "docs/functions.md"]
    page = tmp_path / "docs/environment.md"
    page.parent.mkdir()
    page.write_text(generate_docs.environment_page())
    assert generate_docs.outdated(tmp_path) == ["docs/functions.md"]
    (tmp_path / "docs/functions.md").write_text(generate_docs.functions_page())
    assert generate_docs.outdated(tmp_path) == []
    page.write_text("old")
    assert generate_docs.outdated(tmp_path) == ["docs/environment.md"]
