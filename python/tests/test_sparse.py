"""Sparse matrices and their products beside SciPy's."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

settings.register_profile("sparse", max_examples=60, deadline=None)
settings.load_profile("sparse")

SIZES = st.sampled_from([0, 1, 2, 7, 16, 33, 90])


def random_matrix(rows, columns, density, dtype, seed):
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)
    return dense.astype(dtype)


@given(
    SIZES, SIZES, SIZES,
    st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(["int32", "int64"]),
    st.integers(0, 1000),
)  # fmt: skip
def test_products_are_scipys(m, k, n, density, dtype, index, seed):
    dense = random_matrix(m, k, density, dtype, seed)
    b = np.random.default_rng(seed + 1).standard_normal((k, n)).astype(dtype)
    peer = scipy.sparse.csr_array(dense)
    a = cuop.sparse_csr(
        cuop.tensor(peer.indptr.astype(index)),
        cuop.tensor(peer.indices.astype(index)),
        cuop.tensor(peer.data),
        (m, k),
    )
    exact = dense.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = 4 * np.finfo(dtype).eps * (np.abs(dense) @ np.abs(b)) * max(k, 1) + 1e-300
    made = np.asarray(a @ cuop.tensor(b))
    assert made.shape == (m, n) and made.dtype == dtype
    assert (np.abs(made - exact) <= bound).all()
    by_entries = np.asarray(a.to_layout("coo") @ cuop.tensor(b))
    assert (np.abs(by_entries - exact) <= bound).all()
    if cuop.current_device() == cuop.Device("cpu"):  # cuSPARSE adds entries in another order
        assert (by_entries == made).all()


@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_to_sparse_and_back(dtype, layout):
    dense = random_matrix(13, 21, 0.2, dtype, 5)
    peer = scipy.sparse.coo_array(dense)
    a = cuop.to_sparse(cuop.tensor(dense), layout=layout)
    assert (a.layout, a.shape, a.nnz, a.dtype) == (layout, (13, 21), peer.nnz, cuop.dtype(dtype))
    np.testing.assert_array_equal(a.rows, peer.row)
    np.testing.assert_array_equal(a.indices, peer.col)
    np.testing.assert_array_equal(a.indptr, peer.tocsr().indptr)
    np.testing.assert_array_equal(a.values, peer.data)
    np.testing.assert_array_equal(a.to_dense(), dense)
    assert repr(a).startswith("SparseMatrix(shape=(13, 21), nnz=")
    b = cuop.sparse_coo(a.rows, a.indices, a.values, (13, 21))
    np.testing.assert_array_equal(b.to_dense(), dense)


@pytest.mark.parametrize("make", ["csr", "csc", "coo", "lil", "bsr"])
def test_scipys_matrices_come_and_go(make):
    dense = random_matrix(9, 14, 0.3, "float64", 3)
    peer = getattr(scipy.sparse, f"{make}_array")(dense)
    for layout in ["csr", "coo"]:
        a = cuop.to_sparse(peer, layout=layout)
        assert a.layout == layout
        np.testing.assert_array_equal(a.to_dense(), dense)
        back = a.to_scipy()
        assert back.format == layout and back.shape == (9, 14)
        np.testing.assert_array_equal(back.toarray(), dense)
        back.data[:] = 0  # a copy
        np.testing.assert_array_equal(a.to_dense(), dense)


def test_unsorted_and_repeated_elements_of_scipy_are_put_in_order():
    peer = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([1, 0, 1], [2, 1, 2])), shape=(2, 3))
    np.testing.assert_array_equal(cuop.to_sparse(peer).to_dense(), peer.toarray())
    assert peer.nnz == 3  # is left as it was


def test_vectors_arrays_and_outputs():
    dense = random_matrix(6, 8, 0.5, "float32", 1)
    a, x = cuop.to_sparse(dense), np.arange(8, dtype=np.float32)
    np.testing.assert_allclose(a @ x, dense @ x, rtol=1e-6)
    out = cuop.zeros((6, 2))
    b = np.ones((8, 2), np.float32)
    assert cuop.sparse_matmul(a, b, out=out) is out
    np.testing.assert_allclose(out, dense @ b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cuop.to_sparse(a, "coo") @ b, dense @ b, rtol=1e-5, atol=1e-6)


def test_errors_are_worded():
    a = cuop.to_sparse(np.eye(3))
    with pytest.raises(cuop.errors.ShapeError, match=r"a sparse matrix \(3, 3\) and \(4, 2\)"):
        a @ np.ones((4, 2))
    with pytest.raises(cuop.errors.DTypeError, match="needed is float32 or float64"):
        cuop.to_sparse(np.eye(3, dtype=int))
    with pytest.raises(cuop.errors.ExecutionError, match="layout 'csc' is unknown"):
        cuop.to_sparse(np.eye(3), layout="csc")
    with pytest.raises(cuop.errors.ExecutionError, match="to_layout: layout 'x' is unknown"):
        a.to_layout("x")
    with pytest.raises(cuop.errors.IndexError, match=r"indices\[1\] is 9, it must be from 0 to 2"):
        cuop.sparse_csr([0, 1, 2], [0, 9], [1.0, 2.0], (2, 3))
    with pytest.raises(cuop.errors.ShapeError, match="sparse_coo: rows"):
        cuop.sparse_coo([0], [0, 1], [1.0, 2.0], (2, 3))


def test_products_that_sparse_matrices_do_not_have_are_refused_in_words():
    dense, peer = cuop.ones((3, 3)), scipy.sparse.csr_array(np.eye(3, dtype=np.float32) * 2)
    a = cuop.to_sparse(peer)
    for product in [lambda: a @ a, lambda: dense @ a, lambda: a @ peer, lambda: a @ None]:
        with pytest.raises(TypeError, match="unsupported operand"):
            product()
    np.testing.assert_array_equal(dense @ peer, dense.numpy() * 2)  # SciPy knows how
    for matrix in [a, peer, [peer, peer]]:
        with pytest.raises(
            cuop.DTypeError, match="tensor: data: .* cannot become a tensor; arrays"
        ):
            cuop.tensor(matrix)
    with pytest.raises(cuop.DTypeError, match=r"as what its to_dense\(\) or toarray\(\) makes"):
        cuop.add(a, 1)


@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_have_the_same_elements(copied, layout):
    dense = random_matrix(7, 5, 0.3, "float64", 3)
    x = cuop.to_sparse(dense, layout)
    y = copied(x)
    assert (y.layout, y.shape, y.dtype, y.device) == (x.layout, x.shape, x.dtype, x.device)
    np.testing.assert_array_equal(y.to_dense().numpy(), dense)
