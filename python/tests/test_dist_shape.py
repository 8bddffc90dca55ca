"""reshape, var, std and masks of DistTensors beside NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dist_arithmetic import RANKS, parted, shardings

import cuop
from cuop import dist

ERRORS = cuop.errors


def same(parts, expected, what=""):
    assert parts.shape == expected.shape and parts.dtype == expected.dtype.name, what
    np.testing.assert_array_equal(parts.gather_all().to_numpy(), expected, err_msg=str(what))


@pytest.mark.parametrize("ranks", RANKS)
def test_reshape_is_numpys(ranks):
    array = np.arange(60, dtype=np.int32).reshape(12, 5)
    shapes = [(60,), (5, 12), (3, 4, 5), (-1, 10), (1, 60, 1), (2, 2, 3, 5), (12, -1)]

    def work(comm):
        for sharding in shardings(comm, 2):
            x = parted(comm, array, sharding)
            with dist.strict():
                for shape in shapes:
                    y = x.reshape(shape)
                    same(y, array.reshape(shape), (sharding, shape))
                    same(x.reshape(*shape), array.reshape(shape))
                    same(y.reshape(12, 5), array, (sharding, shape))
                    same(x.T.reshape(shape), array.T.reshape(shape), (sharding, shape))
                    same(x[1::2].reshape(-1), array[1::2].reshape(-1))
        one = parted(comm, array[:1, :1], dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        same(one.reshape(()), array[0, 0].reshape(()))
        same(one.reshape(()).reshape(1, 1, 1), array[:1, :1, None])

    dist.run_ranks(work, ranks)


def test_reshape_keeps_what_is_split():
    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x = parted(comm, np.arange(84.0).reshape(7, 4, 3), rows)
        sent = comm.bytes_sent
        with dist.strict():
            assert x.reshape(7, 12).sharding.spec == dist.P("r", None)
            assert x.reshape(-1).sharding == x.reshape(-1).sharding.with_blocks(0, [36, 24, 24])
            x.reshape(7, 12)[...] = 0  # a view
        assert comm.bytes_sent == sent
        assert float(x.sum()) == 0
        for wrong in [(5,), (-1, 5), (-1, -1), (2**40, 2**40)]:
            with pytest.raises(ERRORS.Error) as expected:
                cuop.zeros((7, 4, 3)).reshape(wrong)
            with pytest.raises(expected.type) as given_:
                x.reshape(wrong)
            assert str(given_.value) == str(expected.value)

    dist.run_ranks(work, 3)


@pytest.mark.parametrize("ranks", RANKS)
def test_var_and_std_are_numpys(ranks):
    rng = np.random.default_rng(3)
    array = rng.standard_normal((7, 5, 3)) + 1e4

    def work(comm):
        for sharding in shardings(comm, 3):
            x = parted(comm, array, sharding)
            for axis in [None, 0, -1, (0, 2), (0, 1, 2)]:
                for keepdims in [False, True]:
                    for ddof in [0, 1, 0.5]:
                        wide = array.astype(np.longdouble)
                        expected = wide.var(axis=axis, ddof=ddof, keepdims=keepdims)
                        var = x.var(axis, keepdims, correction=ddof)
                        assert var.shape == np.shape(expected)
                        np.testing.assert_allclose(
                            np.asarray(var), expected.astype(float), rtol=1e-9
                        )
                        std = x.std(axis=axis, ddof=ddof, keepdims=keepdims)
                        np.testing.assert_allclose(
                            np.asarray(std), np.sqrt(expected).astype(float), rtol=1e-9
                        )
        whole = parted(comm, np.arange(6), dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))
        assert whole.var().dtype == "float64" and float(whole.var(correction=1)) == 3.5
        halves = whole.astype("float16")
        assert halves.std().dtype == "float16"
        with pytest.raises(ERRORS.ShapeError):
            whole.std(axis=1)

    dist.run_ranks(work, ranks)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("dtype", "bound"), [("complex64", 1e-5), ("complex128", 1e-9)])
def test_var_and_std_of_complex_numbers_are_numpys(ranks, dtype, bound):
    """Of |x - mean|^2, as NumPy has it; far from zero, with no element and with one."""
    rng = np.random.default_rng(4)
    array = (rng.standard_normal((7, 5, 3)) + 1j * rng.standard_normal((7, 5, 3)) + 30).astype(
        dtype
    )

    def work(comm):
        for sharding in shardings(comm, 3):
            x = parted(comm, array, sharding)
            for axis in [None, 0, -1, (0, 2), (0, 1, 2)]:
                for ddof in [0, 1, 0.5]:
                    wide = array.astype(np.clongdouble)
                    expected = np.asarray(wide.var(axis=axis, ddof=ddof), float)
                    for found, right in [
                        (x.var(axis, correction=ddof), expected),
                        (x.std(axis, correction=ddof, keepdims=False), np.sqrt(expected)),
                    ]:
                        assert found.dtype == ("float32" if dtype == "complex64" else "float64")
                        np.testing.assert_allclose(np.asarray(found), right, rtol=bound)
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        assert np.isnan(float(parted(comm, array[:0, 0, 0], rows).var()))
        assert float(parted(comm, array[:1, 0, 0], rows).std()) == 0.0

    dist.run_ranks(work, ranks)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(11, 6), (1, 7), (5, 3), (3, 0), (0, 4), (4, 3, 2), (2, 2, 2, 3)]),
    st.sampled_from(RANKS),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 99),
)
def test_masks_of_the_first_dimensions(shape, ranks, layouts, density, seed):
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(shape)
    for ndim in range(1, len(shape)):
        mask = rng.random(shape[:ndim]) < density

        def work(comm, ndim=ndim, mask=mask):
            choices, masks = shardings(comm, len(shape)), shardings(comm, ndim)
            x = parted(comm, array.copy(), choices[layouts[0] % len(choices)])
            where = parted(comm, mask, masks[layouts[1] % len(masks)])
            picked = x[where]
            assert picked.shape == array[mask].shape
            same(picked, array[mask])
            same(picked * 2 + 1, array[mask] * 2 + 1)
            np.testing.assert_allclose(float(picked.sum()), array[mask].sum(), atol=1e-12)
            expected = array.copy()
            expected[mask] = -1.5
            x[where] = -1.5
            same(x, expected)

        dist.run_ranks(work, ranks)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(11, 6), (1, 7), (5,), (3, 0), (4, 3, 2), (2, 2)]),
    st.sampled_from(RANKS),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 99),
)
def test_masks_are_numpys(shape, ranks, layouts, density, seed):
    rng = np.random.default_rng(seed)
    array, mask = rng.standard_normal(shape), rng.random(shape) < density

    def work(comm):
        choices = shardings(comm, len(shape))
        x = parted(comm, array.copy(), choices[layouts[0] % len(choices)])
        where = parted(comm, mask, choices[layouts[1] % len(choices)])
        same(x[where], array[mask])
        same(x[~where] * 2, array[~mask] * 2)
        same(cuop.where(where, x, 0.0), np.where(mask, array, 0.0))
        x[where] = -1.5
        expected = array.copy()
        expected[mask] = -1.5
        same(x, expected)
        x[where] = np.float32(2)
        expected[mask] = 2
        same(x, expected)

    dist.run_ranks(work, ranks)


def test_what_a_mask_picks_stays_in_parts():
    array = np.arange(20.0).reshape(5, 4)

    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x = parted(comm, array.copy(), rows)
        with dist.strict():
            picked = x[x >= 6]
            assert picked.sharding == picked.sharding.with_blocks(0, [2, 8, 4])
            assert float(picked.mean()) == 12.5
            sent = comm.bytes_sent
            x[x >= 6] = 0
            x[x == 1] = np.float64(7)
            assert comm.bytes_sent == sent
        assert float(x.max()) == 7
        same(picked, array[array >= 6])  # a copy
        np.testing.assert_array_equal(x[(x > 6).sum() + 1], x[2])  # one integer
        with pytest.raises(ERRORS.DTypeError, match="mask of dtype bool, given float64"):
            x[x]
        same(x[x[:, 0] > 6], np.asarray(x)[np.asarray(x)[:, 0] > 6])  # rows
        with pytest.raises(ERRORS.IndexError, match="a mask of shape"):
            x[x[0] > 1]
        with pytest.raises(ERRORS.IndexError, match="sizes of the first dimensions"):
            x[(x > 1)[:3]]
        with pytest.raises(ERRORS.ShapeError, match="needed is one element"):
            x[x > 1] = x
        with pytest.raises(ERRORS.OverflowError, match="300"):
            x.astype("int8")[x > 1] = 300
        with pytest.raises(ERRORS.DTypeError):
            x[x > 1] = parted(comm, np.array(1j), dist.Sharding.replicated(rows.mesh))
        with pytest.raises(ERRORS.ExecutionError, match="masks and index arrays"):
            x[array > 1]

    dist.run_ranks(work, 3)
