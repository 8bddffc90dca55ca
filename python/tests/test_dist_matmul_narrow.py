"""16-bit products over ranks: partial sums are float32, the result is rounded once."""

import numpy as np
import pytest
from random_arrays import random_array, rounded

import cuop
from cuop import dist

RANKS = [1, 2, 3, 4, 7]
EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def product(comm, a, b, dtype, **options):
    line = dist.Mesh.line(comm.size)
    lying = [dist.Sharding(line, dist.P(None, "r")), dist.Sharding(line, dist.P("r", None))]
    parts = [
        dist.DistTensor.from_root(
            comm, cuop.tensor(each, dtype) if comm.rank == 0 else None
        ).redistribute(sharding)
        for each, sharding in zip((a, b), lying)
    ]
    result = dist.matmul(*parts, **options)
    assert str(result.dtype).endswith(dtype)
    return np.asarray(result.astype("float64").gather_all()), dist.last_report().plan


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("inner", [0, 1, 5, 64, 331])
def test_sums_are_rounded_once(dtype, ranks, inner):
    """Halves of the sums that cancel: rounded to 16 bits they would leave errors of whole numbers."""
    rng = np.random.default_rng(inner)
    a, b = (random_array(rng, shape, dtype) for shape in ((4, inner), (inner, 3)))
    if inner > 1:
        a[:, : inner // 2] += a.dtype.type(40)
        a[:, inner - inner // 2 :] -= a.dtype.type(40)
        b += b.dtype.type(8)
        a, b = rounded(a, dtype), rounded(b, dtype)
    wide = [each.astype("float64") for each in (a, b)]
    exact, scale = wide[0] @ wide[1], abs(wide[0]) @ abs(wide[1])
    bound = 1.01 * EPSILON[dtype] * abs(exact) + 1e-6 * scale + 1e-7

    def work(comm):
        found = []
        for strategy in ("", "k_split") if comm.size > 1 else ("",):
            found.append(product(comm, a, b, dtype, strategy=strategy))
        whole = found[0][1].memory_per_rank
        with pytest.raises(cuop.errors.Error, match="no plan fits") as error:
            product(comm, a, b, dtype, memory_limit=0)
        least = int(str(error.value).split(" bytes)")[0].split("(")[-1])
        found.append(product(comm, a, b, dtype, memory_limit=least))
        assert found[-1][1].memory_per_rank <= least <= whole
        return found

    for result, plan in dist.run_ranks(work, ranks)[0]:
        assert np.all(abs(result - exact) <= bound), plan.explain()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,kj->ki", "ij->i", "ij,jk,kl->il", "ij,ij->"])
def test_einsum_rounds_sums_over_ranks_once(dtype, ranks, equation):
    """The long index j lies over all ranks, so that each has a part of every sum."""
    rng = np.random.default_rng(3)
    sizes = {"i": 4, "j": 331, "k": 3, "l": 5}
    terms = equation.split("->")[0].split(",")
    arrays = [random_array(rng, [sizes[name] for name in term], dtype) for term in terms]
    for array, term in zip(arrays, terms):
        if "j" in term:
            along = np.moveaxis(array, term.index("j"), 0)
            if array is arrays[0]:
                along[:165] += array.dtype.type(40)
                along[-165:] -= array.dtype.type(40)
            else:
                along += array.dtype.type(8)
    arrays = [rounded(array, dtype) for array in arrays]
    wide = [array.astype("float64") for array in arrays]
    exact = np.einsum(equation, *wide)
    scale = np.einsum(equation, *map(abs, wide))
    # ij,jk is rounded before it meets kl.
    roundings = np.einsum("ik,kl->il", abs(wide[0] @ wide[1]), abs(wide[2])) if len(wide) > 2 else 0
    bound = 1.01 * EPSILON[dtype] * (abs(exact) + 2 * roundings) + 1e-6 * scale + 1e-7

    def work(comm):
        line = dist.Mesh.line(comm.size)
        parts = []
        for array, term in zip(arrays, terms):
            split = dist.P(*("r" if name == "j" else None for name in term))
            whole = cuop.tensor(array, dtype) if comm.rank == 0 else None
            there = dist.DistTensor.from_root(comm, whole)
            parts.append(there.redistribute(dist.Sharding(line, split)))
        result = dist.einsum(equation, *parts, strategy="split")
        return np.asarray(result.astype("float64").gather_all()), dist.last_report().plan

    result, plan = dist.run_ranks(work, ranks)[0]
    assert np.all(abs(result - exact) <= bound), plan.explain()
