"""tools/check_stable_api.py names what is not in Python's stable interface, and nothing else."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent / "check_stable_api.py"


def checked(folder):
    """Exit code and output of the tool."""
    run = subprocess.run(
        [sys.executable, str(TOOL), str(folder)], capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout


def test_names_of_other_interfaces_are_found_with_their_place(tmp_path):
    """PyTuple_GET_ITEM stands in a macro that is there, and is not there itself."""
    text = "// PyObject_CallNoArgs_ in words\n\nvoid f() {\n  PyTuple_GET_ITEM(x, 0);\n}\n"
    (tmp_path / "a.cpp").write_text(text, encoding="utf-8")
    code, said = checked(tmp_path)
    assert code == 1
    assert "a.cpp:4: PyTuple_GET_ITEM is not in Python's stable interface" in said
    assert "in words" not in said and "1 findings" in said


def test_the_stable_interface_is_not(tmp_path):
    """Functions, macros, objects and what came with 3.12."""
    text = "PyObject_Call(a, b, c); Py_DECREF(a); PyExc_TypeError; PyObject_Vectorcall(a);\n"
    (tmp_path / "a.h").write_text(text, encoding="utf-8")
    assert checked(tmp_path) == (0, "check_stable_api: 4 names, 0 findings\n")
