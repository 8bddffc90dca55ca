"""Sparse matrices made of dense ones and of SciPy's."""

from cuop import _core

__all__ = ["to_sparse"]


def to_sparse(x, layout="csr"):
    """A SparseMatrix ('csr' or 'coo') of the elements of x that are not zero.

    x is a float32 or float64 matrix, a SparseMatrix, or a matrix of scipy.sparse in any of its
    formats. Raises DTypeError, ShapeError and ExecutionError (another layout).
    """
    if isinstance(x, _core.SparseMatrix):
        return x.to_layout(layout)
    if hasattr(x, "tocsr") and hasattr(x, "nnz"):
        rows = x.tocsr(copy=True)
        rows.sum_duplicates()  # and in order
        made = _core.sparse_csr(rows.indptr, rows.indices, rows.data, rows.shape)
        return made.to_layout(layout)
    return _core.to_sparse(x, layout)
