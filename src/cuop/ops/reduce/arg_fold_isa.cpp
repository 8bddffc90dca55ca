#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/reduce/arg_fold.h"

namespace cuop {
namespace {

template <bool IsMax, class T>
void update(void* best, int64_t* position, const void* row, int64_t row_index, int64_t columns) {
  auto* leader = static_cast<T*>(best);
  const auto* candidate = static_cast<const T*>(row);
  for (int64_t j = 0; j < columns; ++j) {
    const T x = candidate[j], b = leader[j];
    const bool wins = IsMax ? x > b : x < b;
    const bool takes = wins | ((x != x) & (b == b));
    leader[j] = takes ? x : b;
    position[j] = takes ? row_index : position[j];
  }
}

template <bool IsMax>
ArgUpdate find(DType element) {
  switch (element) {
    case DType::kFloat32:
      return update<IsMax, float>;
    case DType::kFloat64:
      return update<IsMax, double>;
    case DType::kInt64:
      return update<IsMax, int64_t>;
    case DType::kUInt64:
      return update<IsMax, uint64_t>;
    case DType::kInt32:
      return update<IsMax, int32_t>;
    case DType::kUInt8:
      return update<IsMax, uint8_t>;
    default:
      return nullptr;
  }
}

}  // namespace

template <>
ArgUpdate arg_update<isa::CUOP_ISA>(bool is_max, DType element) {
  return is_max ? find<true>(element) : find<false>(element);
}

}  // namespace cuop
