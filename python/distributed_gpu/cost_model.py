"""Names of the ways to split a product over ranks."""

import enum

from cuop.dist import compute_2d_grid

__all__ = ["SplitStrategy", "compute_2d_grid"]


class SplitStrategy(enum.Enum):
    """How a matrix product is split over the ranks."""

    ROW_SPLIT = "row"
    COLUMN_SPLIT = "column"
    BLOCK_2D = "block_2d"
    BATCH_SPLIT = "batch"


def strategy_name(strategy):
    """The planner's name of a strategy given as None, a string, a SplitStrategy or a plan."""
    if strategy is None:
        return ""
    strategy = getattr(strategy, "strategy", strategy)
    name = strategy.value if isinstance(strategy, SplitStrategy) else str(strategy)
    return "row" if name == "batch" else name  # the rows of A are the batch of a plain product
