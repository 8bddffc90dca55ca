// x[...] of distributed tensors. Rows stay with their owners wherever a sharding can say so.
//
// Worked example, 3 ranks, x of 5 x 4 in rows ([0:2], [2:4], [4:5]):
//   x[1:4]      2 of the rows on rank 1, 1 on rank 0: P("r", None), blocks of dim 0 (1, 2, 0)
//   x[:, 2]     P("r"): each rank has its part of the column
//   x[3]        on rank 1 of 3, which has the row
//   x[::-1]     the only one that moves: ranks are in order, so that the last rows go to rank 0
//   x[x > 0]    one dimension, of which rank 0 has what its rows 0 and 1 give, rank 1 what rows 2
//               and 3 give, and so on, in uneven blocks: nothing but the counts travels
#pragma once

#include <span>

#include "cuop/dist/algo/dist_operand.h"
#include "cuop/dist/dist_tensor.h"
#include "cuop/ops/index/indexing.h"

namespace cuop::dist {

/// x[index] by integers, slices, new axes and an ellipsis, as for one tensor (ops/index/indexing.h,
/// whose errors it raises). Parts are views of x's parts.
///   A slice of a split dimension leaves each rank the elements it has, in uneven blocks.
///   An integer there leaves them on the ranks that have it: on that rank when it is one; else the
///   first dimension that stays is split by the mesh axes that are freed as well, with empty blocks
///   on the other ranks; and one element lies on the first rank that has it.
///   A negative step through elements of several ranks moves them, to even blocks; then and only
///   then the call is collective.
/// ExecutionError for masks and index arrays; distributed masks are taken below.
DistTensor get_item(const DistTensor& x, std::span<const Index> index);

/// x[index] = value, converted to x's dtype, in x's own parts; value broadcasts to the indexed
/// shape. Tensors that share memory with x's parts change with them. Collective when value is a
/// distributed tensor. Errors as above, and as for one tensor.
void set_item(const DistTensor& x, std::span<const Index> index, const DistOperand& value);

/// x[mask], where mask is one of bool and of x's shape, or of its first dimensions.
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
