"""einsum within a limit of memory: indices are sliced, results are NumPy's, the promise is kept."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_einsum import laid_out, random_call, widened

import cuop

ERRORS = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}


def peak_of(call, device="cpu"):
    """What it returns and the bytes of the device that it took at a time."""
    gc.collect()
    before = cuop.memory_allocated(device)
    cuop.reset_peak_memory_stats(device)
    result = call()
    return result, cuop.max_memory_allocated(device) - before


def least_limit(call):
    """The smallest that the error names."""
    with pytest.raises(
        cuop.MemoryError, match=r"the memory limit is 0 bytes; at least \d+"
    ) as error:
        call(0)
    return int(str(error.value).split("at least ")[1].split(" ")[0])


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["bool", "int8", "int64", *ERRORS]),
    share=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    with_out=st.booleans(),
)
def test_random_equations(seed, dtype, share, with_out):
    rng = np.random.default_rng(seed)
    equation, arrays, expected = random_call(rng, dtype)
    arrays = [laid_out(rng, array) for array in arrays]
    tensors = [cuop.asarray(array) for array in arrays]
    out = cuop.zeros(expected.shape, dtype, device="cpu") if with_out else None
    call = lambda limit: cuop.einsum(equation, *tensors, memory_limit=limit, out=out)  # noqa: E731
    _, whole = peak_of(lambda: call(None))
    try:
        call(0)
        least = 0  # a view, or an output without an element
    except cuop.MemoryError:
        least = least_limit(call)
        with pytest.raises(cuop.MemoryError, match=f"at least {least} are needed"):
            call(least - 1)
    limit = int(least + share * max(0, whole - least))
    result, peak = peak_of(lambda: call(limit))
    assert peak <= limit
    result = np.asarray(result)
    assert result.shape == expected.shape and result.dtype == dtype
    if dtype not in ERRORS:
        np.testing.assert_array_equal(result, expected)
        return
    scale = np.einsum(equation, *[abs(array) for array in widened(arrays)])
    least = 2.0**-14 if dtype == "float16" else 1e-30  # below that float16 has fewer digits
    assert np.all(abs(result - expected) <= len(arrays) * ERRORS[dtype] * np.maximum(scale, least))


NETWORK = "abcd,cdef,efgh,ghab->"


@pytest.mark.parametrize("size", [1, 2, 5, 7, 8])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_large_intermediates(size, share):
    """All of it at once has tensors of size^4 and more; slices have less."""
    rng = np.random.default_rng(size)
    arrays = [rng.random((size,) * 4) for _ in range(4)]
    expected = np.einsum(NETWORK, *arrays, optimize=True)
    _, whole = peak_of(lambda: cuop.einsum(NETWORK, *arrays))
    call = lambda limit: cuop.einsum(NETWORK, *arrays, memory_limit=limit)  # noqa: E731
    limit = max(least_limit(call), int(share * whole))
    result, peak = peak_of(lambda: call(limit))
    assert peak <= limit
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_the_plan_says_what_is_sliced():
    shapes = [(64, 4096), (4096, 4096), (4096, 32)]
    path, whole = cuop.einsum_path("ij,jk,kl->il", *shapes, shapes=True, dtype="float64")
    assert whole.slices == 1 and whole.sliced == {} and whole.added_flops == 0
    assert whole.peak_bytes == 8 * (64 * 32 + 4096 * 32) and "slices" not in str(whole)
    limit = 300_000
    path, info = cuop.einsum_path(
        "ij,jk,kl->il", *shapes, shapes=True, dtype="float64", memory_limit=limit
    )
    assert info.peak_bytes <= limit < whole.peak_bytes
    assert set(info.sliced) == {"j"} and info.slices == info.sliced["j"]
    # One piece fewer would not fit; partial sums of i x l are added, nothing is made again.
    assert info.added_flops == (info.slices - 1) * 64 * 32
    piece = -(-4096 // (info.slices - 1))
    assert 8 * (2 * 64 * 32 + 32 * piece) > limit
    assert f"slices                {info.slices} (j in {info.slices})" in str(info)
    assert f"flops added by them   {info.added_flops:.4g}"[:26] in str(info)
    arrays = [np.random.default_rng(1).random(shape) for shape in shapes]
    there = [cuop.tensor(array) for array in arrays]
    call = lambda: cuop.einsum("ij,jk,kl->il", *there, memory_limit=limit)  # noqa: E731
    result, peak = peak_of(call, cuop.current_device())
    assert peak == info.peak_bytes
    np.testing.assert_allclose(result.numpy(), np.linalg.multi_dot(arrays), rtol=1e-11)


def test_an_index_of_the_output_is_placed():
    rng = np.random.default_rng(2)
    a, b, c = rng.random((3, 40, 50)), rng.random((3, 50, 60)), rng.random((3, 60, 2))
    path, info = cuop.einsum_path("bij,bjk,bkl->bil", a, b, c, optimize=False)
    _, sliced = cuop.einsum_path("bij,bjk,bkl->bil", a, b, c, optimize=False, memory_limit=30000)
    assert info.peak_bytes > 30000 >= sliced.peak_bytes and set(sliced.sliced) & set("bil")
    np.testing.assert_allclose(
        cuop.einsum("bij,bjk,bkl->bil", a, b, c, optimize=False, memory_limit="30000").numpy(),
        a @ b @ c,
        rtol=1e-12,
    )


def test_an_order_that_is_given_stays():
    arrays = [np.random.default_rng(3).random((20, 20)) for _ in range(3)]
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)]):
        info = cuop.einsum_path("ij,jk,kl->il", *arrays, optimize=path, memory_limit=5000)[1]
        assert info.path == path and info.slices > 1
        np.testing.assert_allclose(
            cuop.einsum("ij,jk,kl->il", *arrays, optimize=path, memory_limit=5000).numpy(),
            np.linalg.multi_dot(arrays),
        )


def test_sixteen_bit_slices_are_added_in_float32():
    """Of 2048 ones and a limit that makes many slices: a float16 that counts up would stay at 2048."""
    ones = cuop.ones((4096,), "float16")
    row = cuop.ones((1, 4096), "float16")
    least = least_limit(lambda limit: cuop.einsum("k,ik,k->i", ones, row, ones, memory_limit=limit))
    result = cuop.einsum("k,ik,k->i", ones, row, ones, memory_limit=least)
    assert result.tolist() == [4096.0]


def test_limits_that_are_met_slice_nothing():
    arrays = [np.ones((30, 30)) for _ in range(3)]
    peak = cuop.einsum_path("ij,jk,kl->il", *arrays)[1].peak_bytes
    assert cuop.einsum_path("ij,jk,kl->il", *arrays, memory_limit=peak)[1].slices == 1
    assert cuop.einsum_path("ij,jk,kl->il", *arrays, memory_limit=peak - 1)[1].slices > 1


def test_operands_that_are_converted_count():
    a, b = cuop.ones((100, 100), "float32"), cuop.ones((100, 100), "float64")
    call = lambda limit: cuop.einsum("ij,jk->ik", a, b, memory_limit=limit)  # noqa: E731
    result, peak = peak_of(lambda: call(120_000), cuop.current_device())
    assert 80_000 < peak <= 120_000 and np.all(result.numpy() == 100)
