// Internal: register-blocked products of unsigned integers, which wrap.
#pragma once

#include <cstdint>

namespace cuop::kernels {

/// sum [mr, nr] (row step ld) += a b for packed slivers: a holds `depth` columns of mr elements,
/// b `depth` rows of nr elements.
template <class T>
struct IntegerKernel {
  int64_t mr;
  int64_t nr;
  void (*multiply)(int64_t depth, const T* a, const T* b, T* sum, int64_t ld);
};

struct IntegerKernels {
  IntegerKernel<uint16_t> u16;
  IntegerKernel<uint32_t> u32;
  IntegerKernel<uint64_t> u64;
};
template <class Level>
const IntegerKernels& integer_kernels();

}  // namespace cuop::kernels
