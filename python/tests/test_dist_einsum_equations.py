"""einsum over 1 to 7 ranks: the equations of opt_einsum's own contraction tests, and 500 random ones, against NumPy."""

from dataclasses import dataclass

import numpy as np
import pytest
from opt_einsum.testing import build_views
from opt_einsum.tests.test_contract import tests as CONTRACTIONS
from test_distributed_einsum import in_parts, some_sharding
from test_einsum import SEARCHES, random_call

import cuop
from cuop import dist

RANKS = range(1, 8)
BLOCK = 100


@dataclass
class Call:
    """An equation, its operands and its result, which may be off by so much."""

    equation: str
    arrays: list
    expected: np.ndarray
    allowed: np.ndarray

    @classmethod
    def of(cls, equation, arrays, expected):
        scale = np.einsum(equation, *[abs(array) for array in arrays])
        return cls(equation, arrays, expected, 1e-13 * (scale + 1e-30))

    def check(self, result):
        result = np.asarray(result)
        assert result.shape == self.expected.shape, self.equation
        assert np.all(abs(result - self.expected) <= self.allowed), self.equation


def check_over_ranks(ranks, calls, seed):
    """Each call from rank 0 to rank 0, and of tensors in parts that lie anyhow."""
    rng = np.random.default_rng(seed)
    lying = [[some_sharding(rng, ranks, x.ndim) for x in call.arrays] for call in calls]

    def work(comm):
        for call, shardings in zip(calls, lying, strict=True):
            mine = [x if comm.rank == 0 else None for x in call.arrays]
            whole = dist.einsum_from_root(comm, call.equation, *mine)
            assert (whole is None) == (comm.rank != 0), call.equation
            if comm.rank == 0:
                call.check(whole)
            call.check(dist.einsum(call.equation, *in_parts(comm, call.arrays, shardings)))
        return len(calls)

    assert dist.run_ranks(work, ranks) == [len(calls)] * ranks


@pytest.fixture(scope="module")
def contractions():
    """Of opt_einsum's tests."""
    assert len(CONTRACTIONS) >= 70
    views = [[np.asarray(x) for x in build_views(equation)] for equation in CONTRACTIONS]
    return [Call.of(e, x, np.einsum(e, *x)) for e, x in zip(CONTRACTIONS, views, strict=True)]


@pytest.mark.parametrize("search", SEARCHES)
def test_contractions_of_opt_einsum(contractions, search):
    for call in contractions:
        call.check(cuop.einsum(call.equation, *call.arrays, optimize=search))


@pytest.mark.parametrize("ranks", RANKS)
def test_contractions_of_opt_einsum_over_ranks(contractions, ranks):
    check_over_ranks(ranks, contractions, ranks)


@pytest.mark.parametrize("block", range(500 // BLOCK))
@pytest.mark.parametrize("ranks", RANKS)
def test_random_equations(ranks, block):
    rng = np.random.default_rng(block)
    check_over_ranks(ranks, [Call.of(*random_call(rng)) for _ in range(BLOCK)], block)
