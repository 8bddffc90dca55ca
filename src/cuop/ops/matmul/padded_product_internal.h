// Internal: products of 16-bit floats whose rows cuBLASLt's fast kernels cannot read.
#pragma once

#include "cuop/ops/matmul/arranged_product_internal.h"

namespace cuop::kernels {

/// Elements of 16 bits of which rows are to have whole multiples: 16 bytes.
inline constexpr int64_t kPaddedStep = 8;

/// Those kernels take matrices with rows of whole 16 bytes alone, by their sizes as well as by
/// where they lie; the others take 2 to 6 times as long on an H100. Where copies cost less,
/// replaces what does not fit by copies with zeros behind its rows, and the result, which `finish`
/// brings to where it belongs. Other dtypes are left alone.
void pad_rows(ArrangedProduct& arranged, Product& product);

/// Whether copies of all three matrices cost less than what they save.
bool pays_padding(int64_t m, int64_t n, int64_t k, int64_t batch);

}  // namespace cuop::kernels
