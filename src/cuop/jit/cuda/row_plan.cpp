#include "cuop/jit/cuda/row_plan.h"

#include <algorithm>

#include "cuop/core/text.h"

namespace cuop::jit {

namespace {
constexpr int64_t kAccessBytes = 16;
/// 4-byte registers that a thread gives to elements.
constexpr int64_t kKeptRegisters = 16;
/// Warps cost less to agree than blocks, so small teams are tried first.
constexpr int kTeams[] = {4, 32, 128, 512, 1024};
}  // namespace

int64_t RowPlan::blocks(int64_t rows) const {
  const int64_t at_a_time = threads() / team;
  return (rows + at_a_time - 1) / at_a_time;
}

std::string RowPlan::text() const { return cat(width, ", ", team, ", ", keep); }

RowPlan plan_rows(int64_t length, int64_t group, DType dtype,
                  std::initializer_list<const void*> addresses,
                  std::initializer_list<const void*> parameters) {
  RowPlan plan;
  const int64_t bytes = itemsize(dtype);
  const auto are_aligned = [](std::initializer_list<const void*> list, int64_t access) {
    return std::all_of(list.begin(), list.end(), [access](const void* address) {
      return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(access) == 0;
    });
  };
  const auto fits = [&](int64_t width) {
    const int64_t computed = width * itemsize(compute_dtype(dtype));
    return length % width == 0 && group % width == 0 && are_aligned(addresses, width * bytes) &&
           are_aligned(parameters, std::min(kAccessBytes, computed));
  };
  int64_t width = kAccessBytes / bytes;
  while (!fits(width)) width /= 2;
  plan.width = static_cast<int>(width);
  const int64_t packs = length / width;
  const int64_t most = kKeptRegisters * 4 / itemsize(compute_dtype(dtype)) / width;
  for (const int team : kTeams) {
    plan.team = team;
    plan.keep = 1;
    while (plan.keep * int64_t{team} < packs) plan.keep *= 2;
    if (plan.keep <= most) return plan;
    if (dtype == DType::kFloat64 && team == 512) break;  // more registers for each of fewer threads
  }
  plan.keep = 0;
  return plan;
}

}  // namespace cuop::jit
