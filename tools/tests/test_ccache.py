"""A precompiled header from the cache is one of the very headers that are there, comments and all."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "ccache.sh"
SETTINGS = {"CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}

pytestmark = pytest.mark.skipif(
    not (shutil.which("ccache") and shutil.which("g++")), reason="needs ccache and g++"
)


@pytest.fixture
def compile_with_header(tmp_path, monkeypatch):
    """Precompiles first.h through the cache and compiles a program that includes it once more."""
    for name, value in {**SETTINGS, "CCACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "all.hxx").write_text('#include "first.h"\n', encoding="utf-8")
    (tmp_path / "all.hxx.cxx").write_text("", encoding="utf-8")
    (tmp_path / "program.cpp").write_text('#include "first.h"\nFirst first;\n', encoding="utf-8")

    def run(command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    def compile_both(comment, through=("sh", SCRIPT)):
        text = f"#pragma once\n// {comment}\nclass First {{}};\n"
        (tmp_path / "first.h").write_text(text, encoding="utf-8")
        options = ["-x", "c++-header", "-include", tmp_path / "all.hxx", "-MD", "-MF", "all.d"]
        made = run([*through, "g++", *options, "-o", "all.hxx.gch", "-c", "all.hxx.cxx"])
        assert made.returncode == 0, made.stderr
        return run(["g++", "-Winvalid-pch", "-include", "all.hxx", "-c", "program.cpp"])

    return compile_both


def cache_hits():
    counted = subprocess.run(
        ["ccache", "--print-stats"], capture_output=True, text=True, check=True
    )
    values = dict(line.split("\t") for line in counted.stdout.splitlines())
    return int(values["direct_cache_hit"]) + int(values["preprocessed_cache_hit"])


def test_a_changed_comment_makes_the_precompiled_header_anew(compile_with_header):
    for comment in ("one", "another, longer"):
        done = compile_with_header(comment)
        assert done.returncode == 0, done.stderr
    assert cache_hits() == 0


def test_the_same_text_comes_from_the_cache(compile_with_header):
    for comment in ("one", "another, longer", "one"):
        assert compile_with_header(comment).returncode == 0
    assert cache_hits() == 1


def test_what_was_cached_for_other_text_is_not_handed_out(compile_with_header, tmp_path):
    for comment in ("one", "another, longer"):
        compile_with_header(comment, through=["ccache"])
        (tmp_path / "all.hxx.gch").unlink()
    done = compile_with_header("another, longer")
    assert done.returncode == 0, done.stderr
