#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kVectorBytes = lanes::kRegisterBytes;
constexpr int kRows = kVectorBytes == 64 ? 8 : 4;

/// sum + a b, or the same of bits.
template <bool IsOfBits, class V, class T>
[[gnu::always_inline]] inline void add_product(V& sum, T a, V b) {
  if constexpr (IsOfBits) {
    sum |= a & b;
  } else {
    sum += a * b;
  }
}

/// kRows x 2 vectors of sums stay in registers while the slivers stream by.
template <class T, bool IsOfBits>
void multiply(int64_t depth, const T* a, const T* b, T* sum, int64_t ld) {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
  Vector left[kRows] = {}, right[kRows] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      add_product<IsOfBits>(left[i], a[i], b0);
      add_product<IsOfBits>(right[i], a[i], b1);
    }
    a += kRows;
    b += 2 * kLanes;
  }
  for (int i = 0; i < kRows; ++i) {
    auto* const row = reinterpret_cast<Vector*>(sum + i * ld);
    if constexpr (IsOfBits) {
      row[0] |= left[i];
      row[1] |= right[i];
    } else {
      row[0] += left[i];
      row[1] += right[i];
    }
  }
}

template <class T, bool IsOfBits = false>
constexpr IntegerKernel<T> kKernel{kRows, 2 * kVectorBytes / static_cast<int64_t>(sizeof(T)),
                                   multiply<T, IsOfBits>};

constexpr IntegerKernels kKernels{kKernel<uint16_t>, kKernel<uint32_t>, kKernel<uint64_t>,
                                  kKernel<uint64_t, true>};

}  // namespace

template <>
const IntegerKernels& integer_kernels<isa::CUOP_ISA>() {
  return kKernels;
}

}  // namespace cuop::kernels
