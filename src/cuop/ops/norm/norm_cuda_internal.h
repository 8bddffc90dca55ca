// Internal: which of the normalisation kernels of norm.cuh is used.
#pragma once

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

/// How a position in a row becomes one of gamma: it is the same, or the position divided by the
/// number of neighbours that share an entry, in 32 or 64 bits.
enum class NormGroup : uint8_t { kNone, kNarrow, kWide };

/// For x and y at these addresses, gamma and beta at those of `parameters`; `inner` neighbours of a
/// row share an entry of these.
jit::RowPlan norm_rows_plan(int64_t length, int64_t inner, DType dtype,
                            std::initializer_list<const void*> addresses,
                            std::initializer_list<const void*> parameters = {});
jit::TextKernel norm_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_centred,
                                 NormGroup group);

}  // namespace cuop::kernels
