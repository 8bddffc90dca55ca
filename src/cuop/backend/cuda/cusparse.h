// Products of a sparse and a dense matrix by cuSPARSE's generic interface.
#pragma once

#include <cstdint>

#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// c [m, n] = a [m, k] b [k, n]: a in CSR with indices from 0, int32 or int64 (`has_wide_indices`),
/// b and c in rows `b_stride` and `c_stride` elements apart. Nothing is empty.
struct SparseProduct {
  bool is_double = false;  ///< float64, else float32
  bool has_wide_indices = false;
  int64_t m = 0, n = 0, k = 0, nonzeros = 0;
  const void* positions = nullptr;
  const void* columns = nullptr;
  const void* values = nullptr;
  const void* b = nullptr;
  int64_t b_stride = 0;
  void* c = nullptr;
  int64_t c_stride = 0;
};

/// Starts the product on the stream. DeviceError when there is no cuSPARSE, ExecutionError "who:
/// ..." for what it refuses.
void sparse_product(const char* who, const SparseProduct& product, Stream stream);

}  // namespace cuop::backend::cuda
