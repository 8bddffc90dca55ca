// x[mask] of distributed tensors, where mask is one of bool and of x's shape, or of its first
// dimensions.
//
// Worked example, 3 ranks, x of 5 x 4 in rows ([0:2], [2:4], [4:5]): x[x > 0] is a tensor of one
// dimension of which rank 0 has what its rows 0 and 1 give, rank 1 what rows 2 and 3 give, and so
// on, in uneven blocks. Nothing but the counts travels.
#pragma once

#include "cuop/dist/algo/dist_operand.h"

namespace cuop::dist {

/// The elements of x where the mask holds, in row-major order of x, as one dimension. Collective.
/// Where x's parts are runs of that order (split along the first dimension, on one rank, on all)
/// each rank keeps its own; else x and the mask are brought to such runs first, as by `reshape`. A
/// mask that lies otherwise than x is brought to x. A mask of x's first dimensions takes rows of
/// what is behind them, whose dimensions stay as they are and lie. DTypeError for another dtype
/// than bool, IndexError for another shape.
DistTensor get_item(const DistTensor& x, const DistTensor& mask);

/// x[mask] = value in x's own parts: a number or a tensor of one element, converted to x's dtype.
/// Tensors that share memory with x's parts change with them. No rank waits for another where the
/// mask lies as x and the value is a number or on all ranks. Errors as above; ShapeError for a
/// value of several elements.
void set_item(const DistTensor& x, const DistTensor& mask, const DistOperand& value);

}  // namespace cuop::dist
