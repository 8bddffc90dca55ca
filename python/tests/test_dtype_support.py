"""The table of dtypes in docs/concepts.md against what the operations do."""

import pathlib
import re

import pytest

import cuop

DTYPES = {
    "bool": ["bool"],
    "integers": [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)],
    "float16, bfloat16": ["float16", "bfloat16"],
    "float32, float64": ["float32", "float64"],
    "complex": ["complex64", "complex128"],
}
CALLS = {
    "matmul": lambda one: cuop.matmul(one(2, 2), one(2, 2)),
    "einsum": lambda one: cuop.einsum("ij,jk->ik", one(2, 2), one(2, 2)),
    "scal": lambda one: cuop.scal(1, one(2)),
    "axpy": lambda one: cuop.axpy(1, one(2), one(2)),
    "dot": lambda one: cuop.dot(one(2), one(2)),
    "gemv": lambda one: cuop.gemv(one(2, 2), one(2)),
    "symm": lambda one: cuop.symm(one(2, 2), one(2, 2)),
    "trsm": lambda one: cuop.trsm(one(2, 2), one(2, 2)),
    "conv1d": lambda one: cuop.conv1d(one(1, 1, 2), one(1, 1, 1)),
    "conv2d": lambda one: cuop.conv2d(one(1, 1, 2, 2), one(1, 1, 1, 1)),
    "conv3d": lambda one: cuop.conv3d(one(1, 1, 2, 2, 2), one(1, 1, 1, 1, 1)),
    "max_pool2d": lambda one: cuop.max_pool2d(one(1, 1, 2, 2), 2),
    "global_max_pool": lambda one: cuop.global_max_pool(one(1, 1, 2)),
    "avg_pool2d": lambda one: cuop.avg_pool2d(one(1, 1, 2, 2), 2),
    "global_avg_pool": lambda one: cuop.global_avg_pool(one(1, 1, 2)),
    "stencil2d": lambda one: cuop.stencil2d(one(2, 2), one(1, 1)),
    "jacobi2d": lambda one: cuop.jacobi2d(one(2, 2), one(2, 2), iterations=1),
    "fft": lambda one: cuop.fft.fft(one(2)),
    "ifft": lambda one: cuop.fft.ifft(one(2)),
    "rfft": lambda one: cuop.fft.rfft(one(2)),
}


def table():
    """(operation, dtype, what the table says of the two)."""
    text = (pathlib.Path(__file__).parents[2] / "docs" / "concepts.md").read_text()
    lines = text[text.index("| operation |") :].split("\n\n")[0].splitlines()
    columns = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    for line in lines[2:]:
        names, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for name in re.findall("`(.*?)`", names):
            for column, cell in zip(columns, cells, strict=True):
                yield from ((name, dtype, cell) for dtype in DTYPES[column])


def test_the_table_has_a_row_for_every_operation_and_a_cell_for_every_dtype():
    rows = [(name, dtype) for name, dtype, _ in table()]
    assert sorted(rows) == sorted((name, d) for name in CALLS for ds in DTYPES.values() for d in ds)


@pytest.mark.parametrize(("name", "dtype", "promise"), list(table()))
def test_every_cell_is_true(name, dtype, promise):
    def call():
        return CALLS[name](lambda *shape: cuop.ones(shape, dtype=dtype))

    if not promise:
        with pytest.raises(cuop.DTypeError, match=name if name != "rfft" else "rfft.*real"):
            call()
        return
    result = call()
    if name == "dot":
        assert result == 2
        return
    result_dtype = str(result.dtype).split(".")[-1]
    if promise.startswith("in "):
        real = {"complex64": "float32", "complex128": "float64"}.get(result_dtype, result_dtype)
        assert real == promise.removeprefix("in ")
    elif name not in ("fft", "ifft", "rfft"):
        assert result_dtype == dtype
