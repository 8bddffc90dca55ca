#include "cuop/dist/comm/reduction.h"

#include <algorithm>
#include <array>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/dtype.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/jit/kernels/arithmetic.h"
#include "cuop/jit/kernels/logic.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/elementwise/elementwise.h"

namespace cuop::dist {

namespace {

/// Elements that are accumulated at a time: their wide copy stays in the first-level cache.
constexpr int64_t kBlock = 1024;
constexpr int64_t kGrain = 32 * kBlock;

/// `Op` is a function of jit/kernels, as the elementwise operators apply it.
template <class Op, class T>
void reduce_range(std::span<const void* const> in, void* out, int64_t begin, int64_t end) {
  using Wide = jit::Computed<T>;
  std::array<Wide, kBlock> sum;
  for (int64_t start = begin; start < end; start += kBlock) {
    const int64_t count = std::min(kBlock, end - start);
    const T* first = static_cast<const T*>(in[0]) + start;
    for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] = static_cast<Wide>(first[i]);
    for (size_t rank = 1; rank < in.size(); ++rank) {
      const T* next = static_cast<const T*>(in[rank]) + start;
      for (int64_t i = 0; i < count; ++i) {
        auto& total = sum[static_cast<size_t>(i)];
        total = Op::template apply<Wide>(total, static_cast<Wide>(next[i]));
      }
    }
    T* result = static_cast<T*>(out) + start;
    for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(sum[static_cast<size_t>(i)]);
  }
}

template <class Op, class Types>
void reduce_types(Types types, std::span<const void* const> in, void* out, int64_t count,
                  DType dtype) {
  visit_dtype(types, dtype, "reduce", [&]<class T>(TypeTag<T>) {
    backend::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      reduce_range<Op, T>(in, out, begin, end);
    });
  });
}

Tensor combined(const Tensor& a, const Tensor& b, ReduceKind op) {
  switch (op) {
    case ReduceKind::kSum:
      return add(a, b);
    case ReduceKind::kProd:
      return multiply(a, b);
    case ReduceKind::kMax:
      return maximum(a, b);
    default:
      return minimum(a, b);
  }
}

void reduce_on_gpu(std::span<const void* const> in, void* out, int64_t count, DType dtype,
                   ReduceKind op, Device device) {
  const auto at = [&](const void* data) {
    return from_memory(const_cast<void*>(data), contiguous_layout(Shape{count}), dtype, device,
                       nullptr);
  };
  const DType wide = compute_dtype(dtype);
  Tensor total = cast(at(in[0]), wide);
  for (const void* next : in.subspan(1)) total = combined(total, cast(at(next), wide), op);
  copy_into(at(out), total);
}

}  // namespace

void reduce_in_rank_order(std::span<const void* const> in, void* out, int64_t count, DType dtype,
                          ReduceKind op, Device device) {
  check_reducible("reduce", dtype, op);
  if (count == 0) return;
  if (!device.is_cpu()) return reduce_on_gpu(in, out, count, dtype, op, device);
  switch (op) {
    case ReduceKind::kSum:
      return reduce_types<jit::fn::Add>(AllTypes{}, in, out, count, dtype);
    case ReduceKind::kProd:
      return reduce_types<jit::fn::Multiply>(AllTypes{}, in, out, count, dtype);
    case ReduceKind::kMax:
      return reduce_types<jit::fn::Maximum>(RealTypes{}, in, out, count, dtype);
    default:
      return reduce_types<jit::fn::Minimum>(RealTypes{}, in, out, count, dtype);
  }
}

}  // namespace cuop::dist
