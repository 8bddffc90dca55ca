"""Products of many arrays that lie on rank 0, written as equations.

Every rank makes the same call; arrays are given on rank 0 and are None (or left out) elsewhere, the
result comes back on rank 0 as the kind of the first array. The order in which pairs are multiplied
and how each is split over the ranks are planned together; `cuop.dist.last_report()` tells what was
chosen. Errors raise MPIError on every rank.
"""

from collections.abc import Iterable

import cuop
from cuop import dist
from cuop._arguments import refused, switch
from distributed_gpu._arrays import kind_of, plain, to_kind
from distributed_gpu._call import check_manager, from_root, told

__all__ = [
    "compare_optimization_strategies",
    "create_contraction_expression",
    "distributed_einsum",
    "distributed_einsum_with_path",
    "distributed_tensordot",
    "get_optimal_path",
    "print_path_info",
]

#: What compare_optimization_strategies compares when it is not told.
STRATEGIES = ("auto", "optimal", "greedy", "random-greedy", "in-order")


def distributed_einsum(
    equation,
    *operands,
    mpi=None,
    distributor=None,
    optimize="auto",
    use_opt_einsum=True,
    memory_limit=None,
):
    """What the equation ('bij,bjk->bik', by NumPy's grammar) says of the operands.

    optimize: as cuop.einsum takes it: "auto", "optimal", "greedy", a path of cuop or opt_einsum, ...
    use_opt_einsum: False multiplies from left to right, whatever `optimize` says. The paths are
        cuop's own; opt_einsum need not be installed.
    memory_limit: bytes that each rank may use, or a size as "2 GiB". Where no split over the ranks
        fits, indices are sliced: all pairs are multiplied for one piece of them after the other.
    """
    check_manager(mpi, "distributed_einsum")
    with told(mpi, "distributed_einsum"):
        is_searched = switch(use_opt_einsum, "distributed_einsum", "use_opt_einsum")
    return _einsum(equation, operands, mpi, optimize if is_searched else False, memory_limit)


def distributed_einsum_with_path(
    equation, *operands, mpi=None, distributor=None, path=None, optimize="auto", memory_limit=None
):
    """The same along a path of get_optimal_path or opt_einsum; without one as `optimize` says.

    The path is the same on all ranks.
    """
    return _einsum(equation, operands, mpi, optimize if path is None else path, memory_limit)


def _einsum(equation, operands, mpi, optimize, memory_limit=None):
    def einsum_from_root(comm, *arrays):
        return dist.einsum_from_root(
            comm, equation, *arrays, optimize=optimize, memory_limit=memory_limit
        )

    named = {f"operand {i}": operand for i, operand in enumerate(operands)}
    return from_root(einsum_from_root, mpi, named)


def distributed_tensordot(a, b, dims=2, mpi=None, distributor=None):
    """Sum over the last `dims` dimensions of a and the first of b, or over the pairs of two lists."""
    return from_root(dist.tensordot_from_root, mpi, {"a": a, "b": b}, dims)


def get_optimal_path(equation, *shapes, optimize="optimal", memory_limit=None, dtype="float32"):
    """(path, info) for operands of these shapes; needs no ranks.

    path: [(0, 1), ...], what `path=`, NumPy and opt_einsum take. info: a cuop.EinsumPath with
    opt_cost, naive_cost, speedup, largest_intermediate and the steps. "optimal" takes up to 16
    operands, "auto" more. memory_limit: bytes, or a size as "2 GiB", that one device may take for
    operands of that dtype; info says then which indices are sliced, the peak and the flops added.
    """
    return cuop.einsum_path(
        equation, *shapes, optimize=optimize, memory_limit=memory_limit, shapes=True, dtype=dtype
    )


def print_path_info(equation, *shapes, optimize="optimal", memory_limit=None, dtype="float32"):
    """Prints the path and what it costs: of an equation and shapes, or of get_optimal_path's info."""
    info = equation
    if not isinstance(info, cuop.EinsumPath):
        info = get_optimal_path(
            equation, *shapes, optimize=optimize, memory_limit=memory_limit, dtype=dtype
        )[1]
    print(f"{info}  path {info.path}")


def compare_optimization_strategies(equation, *shapes, strategies=STRATEGIES):
    """{strategy: info} of the paths that they find for these shapes, the cheapest first.

    "optimal" is left out beyond the 16 operands that it takes.
    """
    if isinstance(strategies, str) or not isinstance(strategies, Iterable):
        who = "compare_optimization_strategies"
        raise refused(strategies, who, "strategies", "a sequence of names")
    if len(shapes) > 16:
        strategies = [each for each in strategies if each != "optimal"]
    infos = {each: get_optimal_path(equation, *shapes, optimize=each)[1] for each in strategies}
    return dict(sorted(infos.items(), key=lambda item: item[1].opt_cost))


def create_contraction_expression(equation, *shapes, optimize="optimal"):
    """An expression that multiplies operands of these shapes along a path that is found once.

    expression = create_contraction_expression("ij,jk->ik", (8, 9), (9, 7))
    C = expression(A, B, mpi=mpi, distributor=distributor)   # from rank 0 to rank 0
    C = expression(A, B)                                     # here, without ranks
    """
    return ContractionExpression(equation, *get_optimal_path(equation, *shapes, optimize=optimize))


class ContractionExpression:
    """An equation with its path.

    Attributes:
        equation, path: what every call follows.
        info: what it costs for the shapes that it was made for; other ones are taken too.
    """

    def __init__(self, equation, path, info):
        self.equation = equation
        self.path = path
        self.info = info

    def __call__(self, *operands, mpi=None, distributor=None):
        """The result: on rank 0 of operands given there, or without `mpi` of arrays that are here."""
        if mpi is not None:
            return _einsum(self.equation, operands, mpi, self.path)
        result = cuop.einsum(
            self.equation, *[plain(operand) for operand in operands], optimize=self.path
        )
        return to_kind(result, kind_of(operands[0]))

    def __repr__(self):
        return f"<ContractionExpression {self.equation!r}, path {self.path}>"
