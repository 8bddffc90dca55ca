// Matrix products over ranks, and batches of them; the planner (plan/matmul_plan.h) chooses the
// grid.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/dist/plan/wire.h"
#include "cuop/ops/sparse/product_path.h"

namespace cuop::dist {

/// C [M, N] = A [M, K] @ B [K, N] in the promoted dtype of both. Strategies: "row", "column",
/// "block_2d", "k_split". The result stays where it is computed unless `options.output` says
/// otherwise; `options.machine->memory` limits what a rank may hold. ShapeError, MemoryError.
///
/// `wire` is the form in which blocks travel. Of a narrow one (float16, bfloat16) the sums are of
/// the dtype all the same, and so are the products unless 16-bit ones are predicted to be faster
/// (on the matrix units of a GPU; setting "narrow"): rows of A, columns of B and rows of C are
/// scaled by powers of two, so that |C - AB| <= c eps sqrt(K) |A| |B| in the Frobenius norm with
/// the wire's eps.
///
/// `path` says how blocks are multiplied, apart from how they travel: of kAuto each rank counts the
/// zeros of its blocks and leaves them out where that is predicted to be faster
/// (ops/sparse/product_path.h). Plans reckon with dense products.
DistTensor matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options = {},
                  const Wire& wire = {}, ProductPath path = ProductPath::kDense);

/// The same with both matrices on rank 0 and the product there; also strategy "root".
Tensor matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                        const CallOptions& options = {}, const Wire& wire = {},
                        ProductPath path = ProductPath::kDense);

/// a [..., M, K] @ b [..., K, N] or [K, N]; leading dimensions are a batch and broadcast as NumPy's
/// matmul does. Strategies: "batch" (the longest batch dimension is split), "row" (M), "column"
/// (N), "grid" (several of them), "keep_a", "keep_b" (the result lies as that operand does),
/// "root". The dtype is the promoted one.
DistTensor batch_matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
/// Of its result; ShapeError when the operands do not fit.
Shape batch_matmul_shape(const Shape& a, const Shape& b);
/// The same on rank 0 of tensors given there.
Tensor batch_matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                              const CallOptions& options = {});

}  // namespace cuop::dist
