"""The order in which einsum multiplies, beside that of opt_einsum."""

import numpy as np
import opt_einsum
import opt_einsum.testing
import pytest

import cuop


def random_network(seed):
    """An equation of 2 to 30 tensors without sums of one tensor, which opt_einsum counts otherwise."""
    equation, shapes = opt_einsum.testing.rand_equation(
        2 + seed % 29, 2 + seed % 3, n_out=seed % 4, d_min=2, d_max=9 if seed % 2 else 4,
        seed=seed, global_dim=seed % 5 == 4,
    )  # fmt: skip
    return equation, [tuple(shape) for shape in shapes]


def cost_to_opt_einsum(equation, shapes, optimize):
    return opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=optimize)[1].opt_cost


@pytest.mark.parametrize("block", range(10))
def test_never_costlier_than_opt_einsum(block):
    """Both as opt_einsum reckons; 500 equations."""
    cheaper = 0
    for seed in range(50 * block, 50 * block + 50):
        equation, shapes = random_network(seed)
        path, info = cuop.einsum_path(equation, *shapes, shapes=True)
        ours, theirs = (cost_to_opt_einsum(equation, shapes, each) for each in (path, "auto"))
        assert ours <= theirs, (seed, equation, shapes)
        assert float(ours) == pytest.approx(info.opt_cost, rel=1e-12)
        cheaper += ours < theirs
    assert cheaper > 5


@pytest.mark.parametrize("seed", range(0, 60, 7))
def test_figures_are_those_of_opt_einsum(seed):
    equation, shapes = random_network(seed)
    path, ours = cuop.einsum_path(equation, *shapes, shapes=True)
    theirs = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=path)[1]
    assert ours.path == path and ours.eq == equation
    for name in ("opt_cost", "naive_cost", "speedup", "largest_intermediate"):
        assert getattr(ours, name) == pytest.approx(float(getattr(theirs, name)), rel=1e-12), name


@pytest.mark.parametrize(
    "search", ["optimal", "branch-1", "greedy", "dp", "auto-hq", "random-greedy"]
)
def test_paths_of_opt_einsum_are_followed(search):
    for seed in range(8):
        equation, shapes = random_network(seed)
        rng = np.random.default_rng(seed)
        arrays = [rng.random(shape) for shape in shapes]
        theirs, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=search)
        assert cuop.einsum_path(equation, *arrays, optimize=theirs)[0] == [
            tuple(sorted(pair)) for pair in theirs
        ]
        np.testing.assert_allclose(
            cuop.einsum(equation, *arrays, optimize=theirs).numpy(),
            opt_einsum.contract(equation, *arrays, optimize=theirs), rtol=1e-10,
        )  # fmt: skip


def test_arrays_or_shapes():
    shapes = [(100, 50), (50, 80), (80, 40)]
    path, info = cuop.einsum_path("ij,jk,kl->il", *shapes, shapes=True)
    again, _ = cuop.einsum_path("ij,jk,kl->il", *[np.empty(shape) for shape in shapes])
    numbers, _ = cuop.einsum_path(
        (100, 50), [0, 1], (50, 80), [1, 2], (80, 40), [2, 3], [0, 3], shapes=True
    )
    assert path == again == numbers == [(1, 2), (0, 1)]
    assert info.steps == ["jk,kl->jl", "ij,jl->il"]
    assert "largest intermediate" in str(info) and "jk,kl->jl" in str(info)
    assert cuop.einsum_path("ij->", (2, 3), shapes=True)[0] == [(0,)]


def test_limits():
    shapes = [(100, 3), (3, 2), (2, 50)]
    path = lambda **options: cuop.einsum_path("ab,bc,cd->ad", *shapes, shapes=True, **options)[0]  # noqa: E731
    assert path() == [(0, 1), (0, 1)]
    assert path(optimize=("optimal", 199)) == [(1, 2), (0, 1)]
    assert path(optimize=("auto", "max_input")) == [(0, 1), (0, 1)]  # 300 elements
    with pytest.raises(cuop.MemoryError, match="the smallest found has 150 elements"):
        path(optimize=("auto", 100))
