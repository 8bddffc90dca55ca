"""Matrix products, transposes and sums of arrays that lie on rank 0.

Every rank makes the same call; arrays are given on rank 0 and are None elsewhere, the result comes
back on rank 0 as the kind of the first array. The `distributor` argument is part of the documented
signature; the plans do their own distributing. Errors raise MPIError on every rank.
"""

from cuop import dist
from distributed_gpu._arrays import narrow_wire, sparse_wire
from distributed_gpu._call import check_manager, from_root, told
from distributed_gpu.cost_model import strategy_name

__all__ = [
    "distributed_add",
    "distributed_batch_matmul",
    "distributed_matmul",
    "distributed_matmul_mixed_precision",
    "distributed_matmul_sparse_aware",
    "distributed_transpose",
]


def distributed_matmul(A, B, mpi, distributor, cost_model=None, strategy=None):
    """A [M, K] @ B [K, N].

    strategy: "row", "column", "block_2d", "k_split", "root" or a SplitStrategy; it wins over
    `cost_model`, whose find_optimal_strategy(M, K, N) is asked on rank 0 otherwise. With neither
    the built-in planner chooses; `cuop.dist.last_report()` tells what it chose and why.
    """
    if strategy is None and cost_model is not None:
        strategy = _ask(cost_model, A, B, mpi)
    name = ""  # the planner's choice
    if strategy is not None:
        check_manager(mpi, "distributed_matmul")
        with told(mpi, "distributed_matmul"):
            name = strategy_name(strategy)
    return from_root(dist.matmul_from_root, mpi, {"A": A, "B": B}, strategy=name)


def _ask(cost_model, A, B, mpi):
    """The cost model's strategy for rank 0's matrices, on every rank."""
    check_manager(mpi, "distributed_matmul")
    chosen = None
    with told(mpi, "distributed_matmul", "distributed_matmul: the cost model failed: "):
        if mpi.is_master_process():
            (M, K), (_, N) = A.shape, B.shape
            chosen = strategy_name(cost_model.find_optimal_strategy(M, K, N))
    return mpi.broadcast(chosen)


def distributed_matmul_mixed_precision(A, B, mpi, distributor, comm_dtype="float16"):
    """A [M, K] @ B [K, N] whose blocks travel as float16 or bfloat16: half the bytes of float32.

    The arithmetic is that of the matrices' dtype. Rows of A, columns of B and rows of the result are
    scaled by powers of two for the journey, so that nothing overflows; infinities and NaN pass. The
    error is within c eps sqrt(K) |A| |B| (Frobenius norms, eps 2^-11 or 2^-8). Where rank 0 multiplies
    alone nothing travels and nothing is rounded.
    """
    who = "distributed_matmul_mixed_precision"
    check_manager(mpi, who)
    with told(mpi, who):
        wire = narrow_wire(comm_dtype, who)
    return from_root(dist.matmul_from_root, mpi, {"A": A, "B": B}, wire=wire)


def distributed_matmul_sparse_aware(A, B, mpi, distributor, sparsity_threshold=None):
    """A [M, K] @ B [K, N] whose zeros neither travel nor are multiplied where that is faster.

    A block of which at least the part `sparsity_threshold` is zero goes as a bitmap or as coordinates
    of 4 bytes beside its values, whichever is shorter, and as it is where that is shortest; None: where
    that is predicted to be faster on these ranks' links. Apart from that each rank counts the zeros of
    its blocks, and where so many are zero that a sparse product is predicted to be faster, and the
    other block is finite, makes one.
    """
    who = "distributed_matmul_sparse_aware"
    check_manager(mpi, who)
    with told(mpi, who):
        wire = sparse_wire(sparsity_threshold, who)
    return from_root(dist.matmul_from_root, mpi, {"A": A, "B": B}, wire=wire, product="auto")


def distributed_batch_matmul(A, B, mpi, distributor):
    """A [batch, M, K] @ B [batch, K, N] or [K, N], split over the batch, rows or columns."""
    return from_root(dist.batch_matmul_from_root, mpi, {"A": A, "B": B})


def distributed_transpose(tensor, mpi, distributor, dim0=0, dim1=1):
    """Dimensions dim0 and dim1 of an N-d array exchanged."""
    return from_root(dist.transpose_from_root, mpi, {"tensor": tensor}, dim0, dim1)


def distributed_add(A, B, mpi, distributor):
    """A + B with broadcasting."""
    return from_root(dist.add_from_root, mpi, {"A": A, "B": B})
