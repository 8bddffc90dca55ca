// Element-wise work and transposition over ranks: where the parts lie alike, nothing is moved.
#pragma once

#include <array>
#include <span>

#include "cuop/dist/algo/dist_operand.h"
#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// Any operation of the elementwise table (jit/op_table.h) with NumPy's broadcasting, and dtypes as
/// for tensors of one process. With one distributed tensor among the operands nothing is moved and
/// nobody waited for. With several it is collective; strategies: "keep_a", "keep_b", "keep_c" (as
/// that operand lies, unless it is stretched where it is split), the one by which the fewest bytes
/// move when none is asked for, and "row" (blocks of the longest dimension) where none can be kept.
DistTensor elementwise(int code, std::span<const DistOperand* const> operands,
                       const CallOptions& options = {});
/// The same by the operation's name: elementwise("where", x > 0, x, 0.0).
DistTensor elementwise(const char* name, std::span<const DistOperand* const> operands,
                       const CallOptions& options = {});
template <class... Operands>
DistTensor elementwise(const char* name, const DistOperand& first, const Operands&... rest) {
  const std::array<DistOperand, 1 + sizeof...(rest)> operands{first, DistOperand(rest)...};
  std::array<const DistOperand*, 1 + sizeof...(rest)> list;
  for (size_t i = 0; i < list.size(); ++i) list[i] = &operands[i];
  return elementwise(name, list);
}
/// x = operation(x, y) in x's own parts, with the dtypes that an `out` of one process may have; y
/// broadcasts to x. Tensors that share memory with x's parts change with them. Collective when y is
/// a distributed tensor.
void elementwise_in_place(int code, const DistTensor& x, const DistOperand& y);

/// a + b with NumPy's broadcasting, in the promoted dtype; see `elementwise`.
DistTensor add(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor subtract(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor multiply(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor divide(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});

/// Exchanges two dimensions. Strategies: "keep" (parts stay, the sharding is exchanged), "row"
/// (blocks of the result's dimension dim0).
DistTensor transpose(const DistTensor& x, int64_t dim0 = 0, int64_t dim1 = 1,
                     const CallOptions& options = {});

/// The same with input and result on rank 0; also strategy "root".
Tensor add_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                     const CallOptions& options = {});
Tensor transpose_from_root(const CommunicatorPtr& comm, const Tensor& x, int64_t dim0 = 0,
                           int64_t dim1 = 1, const CallOptions& options = {});

}  // namespace cuop::dist
