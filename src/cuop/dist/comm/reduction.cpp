#include "cuop/dist/comm/reduction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/dtype.h"
#include "cuop/dist/comm/checks.h"

namespace cuop::dist {

const char* name(ReduceOp op) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min"};
  return kNames[static_cast<int>(op)];
}

namespace {

/// Elements that are accumulated at a time: their wide copy stays in the first-level cache.
constexpr int64_t kBlock = 1024;
constexpr int64_t kGrain = 32 * kBlock;

template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};

/// Signed overflow wraps as it does in NumPy, hence the detour over unsigned integers, which must
/// be at least as wide as int: narrower ones would be promoted to it.
template <class T>
using Unsigned = std::conditional_t<(sizeof(T) > sizeof(unsigned)), uint64_t, unsigned>;

template <ReduceOp Op, class T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return Op == ReduceOp::kSum || Op == ReduceOp::kMax ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T> && Op == ReduceOp::kSum) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  } else if constexpr (std::is_integral_v<T> && Op == ReduceOp::kProd) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  } else if constexpr (Op == ReduceOp::kSum) {
    return a + b;
  } else if constexpr (Op == ReduceOp::kProd) {
    return a * b;
  } else {
    if (a != a) return a;
    if (b != b) return b;
    if constexpr (Op == ReduceOp::kMax) return b > a ? b : a;
    return b < a ? b : a;
  }
}

template <ReduceOp Op, class T>
void reduce_range(std::span<const void* const> in, void* out, int64_t begin, int64_t end) {
  using Wide = typename Accumulator<T>::type;
  std::array<Wide, kBlock> sum;
  for (int64_t start = begin; start < end; start += kBlock) {
    const int64_t count = std::min(kBlock, end - start);
    const T* first = static_cast<const T*>(in[0]) + start;
    for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] = static_cast<Wide>(first[i]);
    for (size_t rank = 1; rank < in.size(); ++rank) {
      const T* next = static_cast<const T*>(in[rank]) + start;
      for (int64_t i = 0; i < count; ++i) {
        auto& total = sum[static_cast<size_t>(i)];
        total = combine<Op, Wide>(total, static_cast<Wide>(next[i]));
      }
    }
    T* result = static_cast<T*>(out) + start;
    for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(sum[static_cast<size_t>(i)]);
  }
}

template <ReduceOp Op, class Types>
void reduce_types(Types types, std::span<const void* const> in, void* out, int64_t count,
                  DType dtype) {
  visit_dtype(types, dtype, "reduce", [&](auto tag) {
    using T = typename decltype(tag)::type;
    backend::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      reduce_range<Op, T>(in, out, begin, end);
    });
  });
}

}  // namespace

void reduce_in_rank_order(std::span<const void* const> in, void* out, int64_t count, DType dtype,
                          ReduceOp op) {
  check_reducible("reduce", dtype, op);
  if (count == 0) return;
  switch (op) {
    case ReduceOp::kSum:
      return reduce_types<ReduceOp::kSum>(AllTypes{}, in, out, count, dtype);
    case ReduceOp::kProd:
      return reduce_types<ReduceOp::kProd>(AllTypes{}, in, out, count, dtype);
    case ReduceOp::kMax:
      return reduce_types<ReduceOp::kMax>(RealTypes{}, in, out, count, dtype);
    case ReduceOp::kMin:
      return reduce_types<ReduceOp::kMin>(RealTypes{}, in, out, count, dtype);
  }
}

}  // namespace cuop::dist
