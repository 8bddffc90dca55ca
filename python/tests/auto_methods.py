"""What AutoExecutor offers, for tests that have to look at all of it."""

from distributed_gpu.auto_executor import AutoExecutor

#: Public, but no method.
SETTINGS = {"verbose"}
#: Methods that make no array, or are made of those that do.
OTHERS = {
    "gpu_status",
    "is_master",
    "plan_info",
    "matmul_batch",
    "pipelined_allreduce",
}


def public_methods():
    """The names of its methods; an attribute that nobody named above is among them."""
    return {name for name in dir(AutoExecutor) if not name.startswith("_")} - SETTINGS
