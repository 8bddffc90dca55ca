// Internal: a matrix times its own transpose, at half the multiplications.
#pragma once

#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

/// True when b is a transposed (the same elements) and the product is large enough to gain.
inline bool is_gram(const Product& p) {
  constexpr int64_t kLeastOrder = 192;
  if (p.c.ndim() != 2 || p.c.shape(0) < kLeastOrder || p.conjugate_a) return false;
  if (p.beta.to_complex() != std::complex<double>(0)) return false;
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
void gram(const backend::blas::GemmCall<T>& call) {
  struct Panel {
    int64_t row, rows, column, columns;
  };
  constexpr int64_t kPanels = 8;    // computes 1/2 + 1/(2 kPanels) of the square
  constexpr int64_t kWidth = 1024;  // enough to keep the matrix kernels busy
  const int64_t side = std::max<int64_t>(96, (call.m / kPanels + 15) / 16 * 16);
  std::vector<Panel> panels;
  for (int64_t row = 0; row < call.m; row += side) {
    for (int64_t column = row; column < call.m; column += kWidth) {
      panels.push_back(
          {row, std::min(side, call.m - row), column, std::min(kWidth, call.m - column)});
    }
  }
  const backend::blas::SerialScope scope;
  backend::parallel_for(static_cast<int64_t>(panels.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Panel& panel = panels[static_cast<size_t>(i)];
      backend::blas::GemmCall<T> part = call;
      part.m = panel.rows;
      part.n = panel.columns;
      part.a += call.trans_a == Trans::kNone ? panel.row * call.lda : panel.row;
      part.b += call.trans_b == Trans::kNone ? panel.column : panel.column * call.ldb;
      part.c += panel.row * call.ldc + panel.column;
      backend::blas::gemm_serial(part);
    }
  });
  // After all panels: the square ones on the diagonal also write below it.
  backend::parallel_for(divide_up(call.m, side), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * side; i < std::min(end * side, call.m); i += side) {
      mirror(call.c, call.ldc, i, std::min(side, call.m - i), call.m);
    }
  });
}

}  // namespace cuop::kernels
