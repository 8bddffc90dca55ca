// Internal: names for headers that declare kernel texts (text_kernel.h, row_plan.h) and need not
// know what they hold.
#pragma once

namespace cuop::jit {
struct RowPlan;
struct TextKernel;
}  // namespace cuop::jit
