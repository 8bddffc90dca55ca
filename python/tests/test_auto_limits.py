"""Limits of AutoExecutor: the smallest that works, what is in memory at a time, and bad input."""

import os
import re

import numpy as np
import pytest
from auto_methods import OTHERS, public_methods

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.auto_executor import AutoExecutor

GIB = 2**30


def noise(seed, *shape, dtype="f4"):
    values = np.random.default_rng(seed).standard_normal(shape) * 3
    if np.dtype(dtype).kind == "c":
        values = values + 1j * np.random.default_rng(seed + 1000).standard_normal(shape)
    return values.astype(dtype)


def calls(dtype):
    """(method, arrays, options) of every method, by a name."""
    a, b, line = (
        noise(1, 12, 17, dtype=dtype),
        noise(2, 17, 11, dtype=dtype),
        noise(3, 420, dtype=dtype),
    )
    prime = noise(5, 509, dtype=dtype)
    chain = [a, b, noise(4, 11, 5, dtype=dtype)]
    blocks = [noise(1, 3, 5, 4, dtype=dtype), noise(2, 3, 4, 6, dtype=dtype)]
    made = {
        "matmul": ("matmul", [a, b], {}),
        "pipelined_matmul": ("pipelined_matmul", [a, b], {"num_chunks": 2}),
        "batch_matmul": ("batch_matmul", blocks, {}),
        "tensordot": ("tensordot", [a, b], {"dims": 1}),
        "einsum": ("einsum", ["ij,jk,kl->il", *chain], {}),
        "einsum_with_path": (
            "einsum_with_path",
            ["ij,jk,kl->il", *chain],
            {"path": [(1, 2), (0, 1)]},
        ),
        "einsum of one": ("einsum", ["ij->ji", a], {}),
        "add": ("add", [a, noise(3, 17, dtype="f8")], {}),
        "transpose": ("transpose", [a], {}),
        "sum": ("sum", [a], {}),
        "mean": ("mean", [a], {"dim": 1}),
        "sum_kahan": ("sum_kahan", [a], {"dim": 0}),
        "mean_kahan": ("mean_kahan", [a], {"dim": 1, "keepdim": True}),
        "fft": ("fft", [a], {}),
        "ifft": ("ifft", [a], {"dim": 0, "n": 16}),
        "fft of a line": ("fft", [line], {}),
        "ifft of a line": ("ifft", [line], {"n": 504}),
        "fft of a prime line": ("fft", [prime], {}),
        "ifft of a line padded to twice a prime": ("ifft", [prime], {"n": 1006}),
        "irfft of a prime line": ("irfft", [line], {"n": 823}),
        "fft, padded": ("fft", [a], {"n": 21}),
        "fft between axes": ("fft", [blocks[0]], {"dim": 1, "n": 9}),
        "irfft": ("irfft", [a], {"dim": 0, "n": 9}),
        "irfft between axes": ("irfft", [blocks[0]], {"dim": 1, "n": 9}),
        "irfft of a line": ("irfft", [line], {}),
        "irfft of a line that is cut": ("irfft", [line], {"n": 300}),
        "fft2d": ("fft2d", [noise(1, 4, 5, 6, dtype=dtype)], {}),
        "fft2d, of other lengths": ("fft2d", [noise(1, 4, 5, 6, dtype=dtype)], {"s": (7, 3)}),
        "fft2d_pencil": ("fft2d_pencil", [a], {}),
    }
    if np.dtype(dtype).kind != "c":
        made |= {
            "exact sum": ("sum", [a], {"mode": "exact"}),
            "max": ("max", [a], {}),
            "min": ("min", [a], {"dim": 1}),
            "rfft": ("rfft", [a], {}),
            "rfft, padded": ("rfft", [a], {"n": 21}),
            "rfft of a line": ("rfft", [line], {}),
            "rfft of a prime line": ("rfft", [prime], {}),
        }
    if np.dtype(dtype).kind == "f":
        images, volumes = noise(1, 2, 4, 6, 5, dtype=dtype), noise(1, 1, 2, 4, 3, 4, dtype=dtype)
        weight, bias = noise(2, 6, 2, 3, 3, dtype=dtype), noise(3, 6, dtype=dtype)
        made |= {
            "matmul_mixed_precision": ("matmul_mixed_precision", [a, b], {}),
            "matmul_sparse_aware": ("matmul_sparse_aware", [a, b], {}),
            "conv2d": ("conv2d", [images, weight, bias], {"padding": 1, "groups": 2}),
            "conv2d, strides": (
                "conv2d",
                [images, noise(2, 6, 4, 3, 3, dtype=dtype)],
                {"stride": 2},
            ),
            "conv3d": ("conv3d", [volumes, noise(2, 3, 2, 3, 3, 3, dtype=dtype)], {"padding": 1}),
            "stencil_2d": (
                "stencil_2d",
                [a, noise(5, 3, 3, dtype=dtype) / np.array(16, dtype)],
                {"iterations": 5},
            ),
        }
    if dtype in ("f4", "f8"):
        made["jacobi_2d"] = ("jacobi_2d", [a, a], {"iterations": 5, "tol": 0.0})
    return made  # fmt: skip


def result_of(call, limit, ranks=1):
    """The result on rank 0 in so many bytes a device, and what was done."""
    method, arrays, options = call

    def work(comm):
        gib = None if limit is None else (limit + 0.5) / GIB
        auto = AutoExecutor(MPIManager(comm), verbose=False, max_per_gpu_gb=gib)
        mine = [x if auto.is_master or isinstance(x, str) else None for x in arrays]
        return getattr(auto, method)(*mine, **options), auto.last_report

    return dist.run_ranks(work, ranks)[0]


def smallest_of(call, ranks=1):
    """What the error of a limit of one byte says would do."""
    with pytest.raises(MPIError) as caught:
        result_of(call, 1, ranks)
    found = re.search(
        r"smallest tiles need (\d+) bytes \(.*\) on a device, 1 may be used", str(caught.value)
    )
    assert found, caught.value
    return int(found[1])


#: What a library of a real GPU takes is its own affair; the simulated ones want the most that plans allow for.
on_the_host_or_simulated = pytest.mark.skipif(
    cuop.current_device() != cuop.Device("cpu")
    and "simulator" not in os.environ.get("CUOP_LIBRARY_PATH", ""),
    reason="convolutions of a real GPU may take more than the smallest tile",
)


@on_the_host_or_simulated
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i4", "u1", "?"])
def test_the_smallest_limit_works_and_no_smaller_one(dtype):
    for name, call in calls(dtype).items():
        whole, _ = result_of(call, None)
        smallest = smallest_of(call)
        result, report = result_of(call, smallest)
        assert report.peak <= smallest, name
        assert result.dtype == whole.dtype, name
        assert np.isfinite(np.asarray(whole, "c16")).all(), name
        scale = np.max(np.abs(np.asarray(whole, "c16"))) + 1
        rtol = 1e-2 if dtype == "f2" else 1e-4
        np.testing.assert_allclose(result, whole, rtol=rtol, atol=rtol * scale, err_msg=name)
        with pytest.raises(MPIError, match=f"smallest tiles need {smallest} bytes"):
            result_of(call, smallest - 1)


def test_every_method_is_looked_at():
    methods = {call[0] for call in calls("f8").values()}
    assert public_methods() == methods | OTHERS


@on_the_host_or_simulated
def test_the_smallest_limit_of_several_ranks():
    for name, call in calls("f4").items():
        smallest = smallest_of(call, 3)
        result, report = result_of(call, smallest, 3)
        assert report.peak <= smallest, name
        whole, _ = result_of(call, None)
        scale = np.max(np.abs(whole)) + 1
        np.testing.assert_allclose(result, whole, rtol=1e-4, atol=1e-4 * scale, err_msg=name)


def test_lists_of_products_within_a_limit():
    pairs = [(noise(i, 30, 41), noise(i + 9, 41, 20)) for i in range(3)]
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=2048 / GIB)
    for result, (a, b) in zip(auto.matmul_batch(pairs), pairs, strict=True):
        np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4)
        assert auto.last_report.peak <= 2048
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=1.5 / GIB)
    with pytest.raises(MPIError, match="smallest tiles need"):
        auto.matmul_batch(pairs)


X, LINE = np.ones((4, 6)), np.ones(6)
#: Arrays of each method whose shapes do not fit, with what is said of them.
MISFITS = [
    ("matmul", [X, X], {}, "matmul: shapes (4, 6) and (4, 6) do not fit"),
    ("matmul", [LINE, X], {}, "matmul"),
    ("pipelined_matmul", [X, X], {}, "do not fit"),
    ("matmul_mixed_precision", [X, X], {}, "do not fit"),
    ("matmul_sparse_aware", [X, X], {}, "do not fit"),
    ("batch_matmul", [np.ones((2, 3, 4)), np.ones((3, 4, 5))], {}, "batch_matmul"),
    ("tensordot", [X, X], {"dims": 1}, "tensordot"),
    ("tensordot", [X, X], {"dims": 3}, "tensordot"),
    ("einsum", ["ij,jk->ik", X, X], {}, "einsum"),
    ("einsum", ["ij,jk->ik", X], {}, "einsum"),
    ("einsum_with_path", ["ij,jk->ik", X, X.T], {"path": [(0, 5)]}, "einsum"),
    ("add", [X, X.T], {}, "add"),
    ("transpose", [X], {"dim0": 2}, "transpose"),
    ("sum", [X], {"dim": -3}, "axis -3 is out of range"),
    ("mean", [X], {"dim": (0, 0)}, "mean"),
    ("max", [np.ones((0, 3))], {}, "no elements"),
    ("min", [X], {"dim": 5}, "axis 5 is out of range"),
    ("sum_kahan", [X], {"dim": 2}, "axis 2 is out of range"),
    ("mean_kahan", [X], {"dim": 2}, "axis 2 is out of range"),
    ("fft", [X], {"dim": 2}, "axis 2 is out of range"),
    ("fft", [LINE], {"dim": 1}, "axis 1 is out of range"),
    ("fft", [LINE], {"n": -3}, "must be 1 or more"),
    ("fft", [np.ones(())], {}, "fft"),
    ("ifft", [np.ones(0)], {}, "must be 1 or more"),
    ("ifft", [LINE], {"norm": "none"}, "norm"),
    ("rfft", [LINE], {"dim": -2}, "axis -2 is out of range"),
    ("rfft", [LINE.astype("c8")], {}, "rfft: real input is needed"),
    ("irfft", [LINE], {"dim": 1}, "axis 1 is out of range"),
    ("irfft", [np.ones(1)], {}, "must be 1 or more"),
    ("fft2d", [LINE], {}, "fft2d"),
    ("fft2d", [X], {"dim": (0, 0)}, "fft2d"),
    ("fft2d", [X], {"dim": (0, 2)}, "axis 2 is out of range"),
    ("fft2d_pencil", [np.ones((2, 3, 4))], {}, "a grid of 2 dimensions is needed"),
    ("conv2d", [np.ones((1, 2, 5, 5)), np.ones((1, 3, 3, 3))], {}, "conv2d"),
    ("conv2d", [np.ones((1, 2, 5, 5)), np.ones((1, 2, 7, 7))], {}, "conv2d"),
    ("conv3d", [np.ones((1, 2, 5, 5)), np.ones((1, 2, 3, 3, 3))], {}, "conv"),
    ("stencil_2d", [X, np.ones((2, 3))], {}, "odd"),
    ("stencil_2d", [LINE], {}, "2 dimensions"),
    ("stencil_2d", [X], {"iterations": -1}, "-1"),
    ("stencil_2d", [X], {"boundary": "open"}, "open"),
    ("jacobi_2d", [X, X.T], {}, "jacobi_2d: grid (4, 6) and rhs (6, 4)"),
    ("jacobi_2d", [X, X], {"dx": 0.0}, "dx"),
    ("jacobi_2d", [X, X], {"iterations": -1}, "-1"),
]


@pytest.mark.parametrize("limit", [None, 600])
def test_what_does_not_fit_is_said_and_the_next_call_works(limit):
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=None if limit is None else limit / GIB)
    for method, arrays, options, words in MISFITS:
        with pytest.raises((MPIError, cuop.Error)) as caught:
            getattr(auto, method)(*arrays, **options)
        assert words in str(caught.value), (method, options, str(caught.value))
        assert auto.sum(LINE) == 6
    assert {method for method, *_ in MISFITS} == {call[0] for call in calls("f8").values()}


#: Numbers for which a method has no arithmetic.
NO_KERNEL = [
    ("max", [X.astype("c16")], "max"),
    ("min", [X.astype("c8")], "min"),
    ("rfft", [X.astype("c16")], "real input is needed"),
    ("stencil_2d", [X.astype("i8")], "a floating grid is needed"),
    ("jacobi_2d", [X.astype("i4")] * 2, "needed is float32 or float64"),
    ("jacobi_2d", [X.astype("f2")] * 2, "needed is float32 or float64"),
    ("matmul_mixed_precision", [X.astype("i4"), X.T.astype("i4")], "int32"),
    ("conv2d", [np.ones((1, 2, 5, 5), "?"), np.ones((1, 2, 3, 3), "?")], "bool"),
]


@pytest.mark.parametrize("method", sorted({call[0] for call in calls("f8").values()}))
@pytest.mark.parametrize(
    "array", [np.array(["a", "b"]), np.array([{}, 1]), np.ones(3, "g"), np.ones(2, "M8[s]")]
)
def test_arrays_that_are_none_of_numbers(method, array):
    equation = ["i->i"] if method.startswith("einsum") else []
    more = [array] if method in ("matmul", "batch_matmul", "tensordot", "add", "conv2d", "conv3d", "jacobi_2d",
                                 "matmul_mixed_precision", "matmul_sparse_aware", "pipelined_matmul") else []  # fmt: skip
    with pytest.raises(MPIError, match=r"tensor|dtype"):
        getattr(AutoExecutor(verbose=False), method)(*equation, array, *more)


@pytest.mark.parametrize(("method", "arrays", "words"), NO_KERNEL)
@pytest.mark.parametrize("limit", [None, 6000])
def test_dtypes_without_a_kernel(method, arrays, words, limit):
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=None if limit is None else limit / GIB)
    with pytest.raises(MPIError, match=re.escape(words)):
        getattr(auto, method)(*arrays)


@pytest.mark.parametrize("method", sorted({call[0] for call in calls("f8").values()}))
def test_files_that_are_missing_or_cut_off(tmp_path, method):
    call = next(call for call in calls("f8").values() if call[0] == method)
    _, arrays, options = call
    texts = [x for x in arrays if isinstance(x, str)]
    arrays = [x for x in arrays if not isinstance(x, str)]
    files = [tmp_path / f"{i}.npy" for i in range(len(arrays))]
    for file, array in zip(files, arrays, strict=True):
        np.save(file, array)
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=16384 / GIB)
    expected = result_of(call, None)[0]
    result = getattr(auto, method)(*texts, *files, **options)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    for i, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes(content[:-5])
        with pytest.raises(MPIError, match=rf"{i}\.npy is truncated"):
            getattr(auto, method)(*texts, *files, **options)
        file.write_bytes(b"numbers")
        with pytest.raises(MPIError, match=rf"{i}\.npy is not a \.npy file"):
            getattr(auto, method)(*texts, *files, **options)
        file.unlink()
        with pytest.raises(MPIError, match=rf"{i}\.npy"):
            getattr(auto, method)(*texts, *files, **options)
        file.write_bytes(content)
