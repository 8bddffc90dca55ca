#include <cstdint>
#include <utility>
#include <vector>

#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/matmul/padded_product_internal.h"

namespace cuop::kernels {

namespace {

bool is_whole(int64_t elements) { return elements % kPaddedStep == 0; }

/// Whether all matrices of the stack begin, and rows of them follow each other, in whole steps.
bool lies_well(const Tensor& stack, int64_t ld) {
  bool is_well = is_whole(ld) && reinterpret_cast<uintptr_t>(stack.data()) % 16 == 0;
  for (int i = 0; i + 2 < stack.ndim(); ++i) {
    is_well = is_well && (stack.shape(i) == 1 || is_whole(stack.strides()[i]));
  }
  return is_well;
}

/// A row-major copy of so many rows and columns, zeros in those that are new; what is repeated
/// along batch axes stays one matrix.
Tensor padded(const Tensor& stack, int64_t rows, int64_t columns) {
  const int r = stack.ndim() - 2;
  std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(r), {0, 0});
  widths.emplace_back(0, rows - stack.shape(r));
  widths.emplace_back(0, columns - stack.shape(r + 1));
  Shape shape = stack.shape();
  shape[r] = rows;
  shape[r + 1] = columns;
  return broadcast_to(pad(distinct(stack), widths), shape);
}

}  // namespace

bool pays_padding(int64_t m, int64_t n, int64_t k, int64_t batch) {
  // Of an H100: products of rows that do not fit run at 110 to 170 TFLOP/s, of those that fit at
  // 700 to 780, copies of pads at some 2 TB/s, and each of three copies has to be launched.
  constexpr double kSlow = 1.3e14, kFast = 7e14, kCopied = 2e12, kLaunches = 1e-5;
  const auto x = static_cast<double>(m), y = static_cast<double>(n), z = static_cast<double>(k);
  const auto count = static_cast<double>(batch);
  const double saved = 2 * count * x * y * z * (1 / kSlow - 1 / kFast);
  return saved > 2 * 2 * count * (x * z + z * y + x * y) / kCopied + kLaunches;
}

void pad_rows(ArrangedProduct& arranged, Product& p) {
  if (itemsize(p.a.dtype()) != 2 || !backend::execution_options().spare.has_copies) return;
  const int r = p.c.ndim() - 2;
  const int64_t m = p.c.shape(r), n = p.c.shape(r + 1), k = p.a.shape(r + 1);
  const bool is_by_columns = arranged.a.trans != Trans::kNone && is_whole(m);  // of a
  const bool has_rows_of_k = !is_by_columns || arranged.b.trans != Trans::kNone;
  const int64_t wide_n = round_up(n, kPaddedStep),
                wide_k = has_rows_of_k ? round_up(k, kPaddedStep) : k;
  const bool may_stay_a = wide_k == k && lies_well(p.a, arranged.a.ld) &&
                          (is_by_columns || arranged.a.trans == Trans::kNone);
  const bool may_stay_b = wide_k == k && wide_n == n && lies_well(p.b, arranged.b.ld);
  const bool may_stay_c = wide_n == n && lies_well(p.c, arranged.ldc);
  if (may_stay_a && may_stay_b && may_stay_c) return;
  if (!pays_padding(m, n, k, p.c.size() / (m * n))) return;
  Tensor a = p.a, b = p.b, c = p.c;
  try {
    if (!may_stay_a) a = padded(a, m, wide_k);
    if (!may_stay_b) b = padded(b, wide_k, wide_n);
    if (!may_stay_c && !is_zero(p.beta)) {
      c = padded(c, m, wide_n);
    } else if (!may_stay_c) {
      Shape shape = c.shape();
      shape[r + 1] = wide_n;
      c = empty(shape, c.dtype(), c.device());
    }
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, "matmul: rows are not padded, the product takes longer: ", error.what());
    return;
  }
  if (!may_stay_a) arranged.a = {Trans::kNone, wide_k};
  if (!may_stay_b) arranged.b = {Trans::kNone, wide_n};
  if (!may_stay_c) arranged.ldc = wide_n;
  if (!may_stay_c && !arranged.target.is_defined()) arranged.target = p.c;
  p.a = a;
  p.b = b;
  p.c = c;
}

}  // namespace cuop::kernels
