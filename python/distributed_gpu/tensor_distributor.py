"""Arrays in parts over the ranks."""

from cuop import dist
from cuop._arguments import integer
from distributed_gpu._arrays import (
    as_tensor,
    in_own_memory,
    kind_of,
    narrow_wire,
    place_of,
    plain,
    to_kind,
    to_place,
)
from distributed_gpu._call import check_manager, mpi_errors, told
from distributed_gpu.mpi_manager import on_all_ranks, scattered

__all__ = ["TensorDistributor"]


def _grid(who, rows, columns):
    """The mesh of a grid of ranks."""
    rows, columns = (
        integer(size, who, name, least=1)
        for size, name in ((rows, "grid_rows"), (columns, "grid_cols"))
    )
    return dist.Mesh((rows, columns), ("r", "c"))


class TensorDistributor:
    """Splits arrays into blocks over the ranks of an MPIManager and joins them again.

    Blocks are nearly equal, the first total % size of them one longer; they may be empty. Results
    are of the kind and on the device of the array that was given, in memory of their own but for
    root's of a broadcast, which is the array that was given.
    """

    def __init__(self, mpi):
        check_manager(mpi, "TensorDistributor")
        self.mpi = mpi

    def distribute(self, tensor, dim=0):
        """This rank's block of rank 0's array along `dim`."""
        return scattered(self.mpi, tensor, dim, 0, None, "distribute")

    def gather(self, local, dim=0):
        """The blocks joined along `dim` on rank 0, None elsewhere."""
        self._check("gather", local=local)
        return self.mpi.gather_tensor(local, dim)

    def allgather(self, local, dim=0):
        """The blocks joined along `dim` on every rank."""
        self._check("allgather", local=local)
        return self.mpi.allgather_tensor(local, dim)

    def broadcast(self, tensor, root=0):
        """Root's array on every rank."""
        return on_all_ranks(self.mpi, tensor, root, None, "broadcast")

    def distribute_with_broadcast(self, split, whole, split_dim=0):
        """(this rank's block of rank 0's `split`, all of rank 0's `whole`)."""
        who = "distribute_with_broadcast"
        if self.mpi.get_rank() == 0:
            self._check(who, split=split, whole=whole)
        part = scattered(self.mpi, split, split_dim, 0, None, who, "split_dim")
        return part, self.broadcast(whole)

    # The same with 16 bits an element on the way, each row scaled by a power of two (dist.Wire.narrow).

    def distribute_compressed(self, tensor, dim=0, comm_dtype="float16"):
        """This rank's block of rank 0's array along `dim`, rounded to `comm_dtype` on other ranks."""
        wire = self._narrow(comm_dtype, "distribute_compressed")
        return scattered(self.mpi, tensor, dim, 0, wire, "distribute_compressed")

    def gather_compressed(self, local, dim=0, comm_dtype="float16"):
        """The blocks joined along `dim` on rank 0, those of other ranks rounded; None elsewhere."""
        wire = self._narrow(comm_dtype, "gather_compressed")
        self._check("gather_compressed", local=local)
        return self.mpi.gather_tensor(local, dim, wire=wire)

    def broadcast_compressed(self, tensor, root=0, comm_dtype="float16"):
        """Root's array on every rank, rounded on the others."""
        wire = self._narrow(comm_dtype, "broadcast_compressed")
        return on_all_ranks(self.mpi, tensor, root, wire, "broadcast_compressed")

    def _narrow(self, comm_dtype, who):
        with told(self.mpi, who):
            return narrow_wire(comm_dtype, who)

    def _check(self, who, **arrays):
        """Refuses on all ranks what can be no tensor, before this one comes to the call."""
        with told(self.mpi, who):
            for name, array in arrays.items():
                as_tensor(array, who, name)

    def reduce_sum(self, local):
        """The sum of the ranks' arrays on rank 0, None elsewhere."""
        self._check("reduce_sum", local=local)
        with mpi_errors(self.mpi.comm):
            total = dist.reduce_to(self.mpi.comm, plain(local), "sum")
        return to_kind(total, kind_of(local))

    def calculate_split_sizes(self, total):
        """The length of each rank's block of `total` indices."""
        return self._split_sizes(total, "calculate_split_sizes")

    def _split_sizes(self, total, who):
        total = integer(total, who, "total", least=0)
        size = self.mpi.get_size()
        return [total // size + (rank < total % size) for rank in range(size)]

    def get_local_range(self, total):
        """(start, stop) of this rank's block of `total` indices."""
        sizes = self._split_sizes(total, "get_local_range")
        start = sum(sizes[: self.mpi.get_rank()])
        return start, start + sizes[self.mpi.get_rank()]

    def distribute_2d(self, A, B, grid_rows, grid_cols):
        """(row block of A, column block of B) of this rank's place in a grid of ranks.

        Rank r stands in grid row r // grid_cols and grid column r % grid_cols.
        """
        with told(self.mpi, "distribute_2d"):
            mesh = _grid("distribute_2d", grid_rows, grid_cols)
            rows = dist.Sharding(mesh, dist.P("r", None))
            columns = dist.Sharding(mesh, dist.P(None, "c"))
        if self.mpi.get_rank() == 0:
            self._check("distribute_2d", A=A, B=B)
        return (
            self.mpi.place_tensor(A, lambda x: in_own_memory(x.redistribute(rows).local, x)),
            self.mpi.place_tensor(B, lambda x: in_own_memory(x.redistribute(columns).local, x)),
        )

    def gather_2d(self, C_local, grid_rows, grid_cols, M, N):
        """The [M, N] matrix whose blocks lie in a grid of ranks, on rank 0; None elsewhere."""
        with told(self.mpi, "gather_2d"):
            mesh = _grid("gather_2d", grid_rows, grid_cols)
            blocks = dist.Sharding(mesh, dist.P("r", "c"))
            local = as_tensor(C_local, "gather_2d", "C_local")
            whole = dist.DistTensor(self.mpi.comm, blocks, (M, N), local.dtype, local)
        with mpi_errors(self.mpi.comm):
            return to_place(whole.gather(), place_of(C_local, local))
