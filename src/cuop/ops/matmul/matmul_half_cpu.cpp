#include <algorithm>
#include <memory>
#include <type_traits>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/half_convert.h"
#include "cuop/ops/matmul/tiled_product_internal.h"

namespace cuop::kernels {

namespace {

namespace blas = backend::blas;

/// Copies a matrix to float32 and returns how it lies there: kTrans where its columns were
/// contiguous and became the rows of the copy.
template <class T>
Trans gather(const MatrixView<const T>& m, float* to, int64_t* ld) {
  if (m.column_step != 1 && m.row_step == 1) {
    const MatrixView<const T> transposed{m.data, m.columns, m.rows, m.column_step, m.row_step};
    gather(transposed, to, ld);
    return Trans::kTrans;
  }
  *ld = m.columns;
  for (int64_t i = 0; i < m.rows; ++i) {
    const T* const row = m.data + i * m.row_step;
    float* const target = to + i * m.columns;
    if (m.column_step == 1) {
      backend::to_float(row, target, m.columns);
    } else {
      for (int64_t j = 0; j < m.columns; ++j) {
        target[j] = static_cast<float>(row[j * m.column_step]);
      }
    }
  }
  return Trans::kNone;
}

/// Of c the elements are `To`: T or float.
template <class T, class To>
class HalfTile {
 public:
  using Element = T;
  using Result = To;
  static constexpr int64_t kRows = 384, kColumns = 384, kDepth = 384;

  explicit HalfTile(const Product& p)
      : alpha_(static_cast<float>(p.alpha.to_double())),
        beta_(static_cast<float>(p.beta.to_double())) {
    const TileSizes sizes = tile_sizes<HalfTile>(p);
    a_ = scratch<float>(sizes.rows * sizes.depth);
    b_ = scratch<float>(sizes.depth * sizes.columns);
    sum_ = scratch<float>(sizes.rows * sizes.columns);
  }

  void start(int64_t rows, int64_t columns) {
    rows_ = rows;
    columns_ = columns;
    is_empty_ = true;
  }

  void add(const MatrixView<const T>& a, const MatrixView<const T>& b) {
    blas::GemmCall<float> call;
    call.m = rows_;
    call.n = columns_;
    call.k = a.columns;
    call.trans_a = gather(a, a_.get(), &call.lda);
    call.trans_b = gather(b, b_.get(), &call.ldb);
    call.a = a_.get();
    call.b = b_.get();
    call.beta = is_empty_ ? 0.0f : 1.0f;
    call.c = sum_.get();
    call.ldc = columns_;
    blas::gemm_serial(call);
    is_empty_ = false;
  }

  void finish(const MatrixView<To>& c) {
    if (is_empty_) std::fill_n(sum_.get(), rows_ * columns_, 0.0f);
    for (int64_t i = 0; i < rows_; ++i) {
      float* const sum = sum_.get() + i * columns_;
      To* const row = c.data + i * c.row_step;
      if (alpha_ != 1.0f) {
        for (int64_t j = 0; j < columns_; ++j) sum[j] *= alpha_;
      }
      if (beta_ != 0.0f) {
        for (int64_t j = 0; j < columns_; ++j) {
          sum[j] += beta_ * static_cast<float>(row[j * c.column_step]);
        }
      }
      if (c.column_step != 1) {
        for (int64_t j = 0; j < columns_; ++j) row[j * c.column_step] = To(sum[j]);
      } else if constexpr (std::is_same_v<To, float>) {
        std::copy_n(sum, columns_, row);
      } else {
        backend::from_float(sum, row, columns_);
      }
    }
  }

 private:
  std::unique_ptr<float[]> a_, b_, sum_;
  float alpha_, beta_;
  int64_t rows_ = 0, columns_ = 0;
  bool is_empty_ = true;
};

}  // namespace

void matmul_half_cpu(const Product& p) {
  const blas::SerialScope scope;
  visit_dtype(NarrowTypes{}, p.a.dtype(), "matmul", [&]<class T>(TypeTag<T>) {
    if (p.is_widening()) {
      tiled_product<HalfTile<T, float>>(p);
    } else {
      tiled_product<HalfTile<T, T>>(p);
    }
  });
}

}  // namespace cuop::kernels
