// Products that BLAS computes. Operands are handed over where they lie, as transposes when their
// strides say so; only what BLAS cannot read is copied.
#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/matmul/arranged_product_internal.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

namespace {

namespace blas = backend::blas;

// A matrix times its own transpose, at half the multiplications.

/// True when b is a transposed (the same elements) and the product is large enough to gain.
bool is_gram(const Product& p) {
  constexpr int64_t kLeastOrder = 192;
  if (p.c.ndim() != 2 || p.c.shape(0) < kLeastOrder || p.conjugate_a) return false;
  if (!is_zero(p.beta)) return false;
  return p.a.data() == p.b.data() && p.a.shape(0) == p.b.shape(1) &&
         p.a.strides()[0] == p.b.strides()[1] && p.a.strides()[1] == p.b.strides()[0];
}

/// c[j][i] <- c[i][j] for the rows given and every column j > i below `order`.
template <class T>
void mirror(T* c, int64_t ld, int64_t row, int64_t rows, int64_t order) {
  constexpr int64_t kBlock = 32;
  // Through a block of its own: rows of c that lie a power of two apart share few cache lines.
  T block[kBlock][kBlock];
  for (int64_t i0 = row; i0 < row + rows; i0 += kBlock) {
    const int64_t height = std::min(kBlock, row + rows - i0);
    for (int64_t j0 = i0; j0 < order; j0 += kBlock) {
      const int64_t width = std::min(kBlock, order - j0);
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j) block[j][i] = c[(i0 + i) * ld + j0 + j];
      }
      for (int64_t j = 0; j < width; ++j) {
        std::copy_n(block[j], std::min(height, j0 + j - i0), c + (j0 + j) * ld + i0);
      }
    }
  }
}

/// What lies on and above the diagonal is computed in wide panels, the rest mirrored: c is exactly
/// symmetric.
template <class T>
void gram(const blas::GemmCall<T>& call) {
  struct Panel {
    int64_t row, rows, column, columns;
  };
  constexpr int64_t kPanels = 8;    // computes 1/2 + 1/(2 kPanels) of the square
  constexpr int64_t kWidth = 1024;  // enough to keep the matrix kernels busy
  const int64_t side = std::max<int64_t>(96, round_up(call.m / kPanels, int64_t{16}));
  std::vector<Panel> panels;
  for (int64_t row = 0; row < call.m; row += side) {
    for (int64_t column = row; column < call.m; column += kWidth) {
      panels.push_back(
          {row, std::min(side, call.m - row), column, std::min(kWidth, call.m - column)});
    }
  }
  const blas::SerialScope scope;
  backend::parallel_for_each(static_cast<int64_t>(panels.size()), 1, [&](int64_t i) {
    const Panel& panel = panels[static_cast<size_t>(i)];
    blas::gemm_serial(call.block(panel.row, panel.column, panel.rows, panel.columns));
  });
  // After all panels: the square ones on the diagonal also write below it.
  backend::parallel_for(divide_up(call.m, side), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * side; i < std::min(end * side, call.m); i += side) {
      mirror(call.c, call.ldc, i, std::min(side, call.m - i), call.m);
    }
  });
}

/// One product; a single row or column goes to the matrix-vector routine, which streams better.
/// `is_alone`: on the calling thread only, inside the caller's SerialScope.
template <class T>
void multiply(const blas::GemmCall<T>& call, bool is_alone) {
  const bool is_conjugate = call.trans_a == Trans::kConjTrans;
  const bool a_is_plain = call.trans_a == Trans::kNone, b_is_plain = call.trans_b == Trans::kNone;
  // op(matrix) [rows, k] times a vector.
  const auto by_vector = [&](Trans trans, int64_t rows, const T* matrix, int64_t ld, const T* x,
                             int64_t incx, int64_t incy) {
    const bool is_plain = trans == Trans::kNone;
    blas::gemv(blas::GemvCall<T>{trans, is_plain ? rows : call.k, is_plain ? call.k : rows,
                                 call.alpha, matrix, ld, x, incx, call.beta, call.c, incy});
  };
  if (call.n == 1 && !is_conjugate) {
    by_vector(call.trans_a, call.m, call.a, call.lda, call.b, b_is_plain ? call.ldb : 1, call.ldc);
  } else if (call.m == 1 && !is_conjugate) {
    by_vector(b_is_plain ? Trans::kTrans : Trans::kNone, call.n, call.b, call.ldb, call.a,
              a_is_plain ? 1 : call.lda, 1);
  } else if (is_alone) {
    blas::gemm_serial(call);
  } else {
    blas::gemm(call);
  }
}

template <class T>
void run(const Product& p, const Reading& a, const Reading& b, int64_t ldc) {
  const int r = p.c.ndim() - 2;
  blas::GemmCall<T> call;
  call.trans_a = p.conjugate_a ? Trans::kConjTrans : a.trans;
  call.trans_b = b.trans;
  call.m = p.c.shape(r);
  call.n = p.c.shape(r + 1);
  call.k = p.a.shape(r + 1);
  call.alpha = convert_scalar<T>(p.alpha);
  call.beta = convert_scalar<T>(p.beta);
  call.lda = a.ld;
  call.ldb = b.ld;
  call.ldc = ldc;
  const T* const a_data = p.a.data<T>();
  const T* const b_data = p.b.data<T>();
  T* const c_data = p.c.data<T>();
  if (r == 0) {
    call.a = a_data;
    call.b = b_data;
    call.c = c_data;
    if (is_gram(p)) {
      gram(call);
    } else {
      multiply(call, false);
    }
    return;
  }
  const BatchOffsets batch(p);
  const auto one = [&](int64_t i, bool is_alone) {
    const BatchOffsets::Offsets offsets = batch(i);
    blas::GemmCall<T> matrix = call;
    matrix.a = a_data + offsets.a;
    matrix.b = b_data + offsets.b;
    matrix.c = c_data + offsets.c;
    multiply(matrix, is_alone);
  };
  const double work = static_cast<double>(call.m) * static_cast<double>(call.n) *
                      static_cast<double>(std::max<int64_t>(1, call.k));
  // Whole matrices a thread beat split matrices until they no longer fit the caches.
  constexpr double kLargeProduct = 512.0 * 512.0 * 512.0;
  if (batch.count() >= 2 * backend::thread_count() && work <= kLargeProduct) {
    const blas::SerialScope scope;
    const auto grain = static_cast<int64_t>(1.0 + 65536.0 / work);
    backend::parallel_for_each(batch.count(), grain, [&](int64_t i) { one(i, true); });
  } else {
    for (int64_t i = 0; i < batch.count(); ++i) one(i, false);
  }
}

/// Whether the user would wait for one of the library's calls, which hear no interrupt: they are
/// short on an idle machine, but their threads wait for each other where others compute too.
bool is_long(const Product& p) {
  constexpr double kShort = 1e9;  // multiplications of a thread
  const double work = static_cast<double>(p.c.size()) * static_cast<double>(p.a.shape().back());
  return work > kShort * backend::thread_count();
}

}  // namespace

void matmul_blas_cpu(Product& p) {
  const ArrangedProduct arranged = arrange(p);
  const auto multiply = [](const Product& product, const ArrangedProduct& as) {
    visit_dtype(FloatComplexTypes{}, product.c.dtype(), "matmul",
                [&]<class T>(TypeTag<T>) { run<T>(product, as.a, as.b, as.ldc); });
  };
  backend::run_apart_if(is_long(p), multiply, p, arranged);
  finish(arranged, p);
}

}  // namespace cuop::kernels
