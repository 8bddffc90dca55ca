#include <memory>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/tiled_product_internal.h"

namespace cuop::kernels {

namespace {

/// Sums modulo 2^bits are exact in any unsigned type that is at least as wide; 8-bit products use
/// 16-bit lanes, which the processor can multiply.
template <class T>
using Accumulator = std::conditional_t<sizeof(T) <= 2, uint16_t,
                                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class A>
const IntegerKernel<A>& kernel() {
  const IntegerKernels& all = isa::choose(
      []<class Level>(Level) -> const IntegerKernels& { return integer_kernels<Level>(); });
  if constexpr (sizeof(A) == 2) {
    return all.u16;
  } else if constexpr (sizeof(A) == 4) {
    return all.u32;
  } else {
    return all.u64;
  }
}

template <class T>
class IntegerTile {
 public:
  using Element = T;
  using Result = T;
  using Sum = Accumulator<T>;
  /// At least 32 bits, so that small types are not promoted to a signed int that overflows.
  using Wide = std::conditional_t<sizeof(Sum) == 2, uint32_t, Sum>;
  static constexpr int64_t kRows = 256;
  static constexpr int64_t kColumns = 1024 / static_cast<int64_t>(sizeof(Sum));
  static constexpr int64_t kDepth = 256;

  explicit IntegerTile(const Product& p) {
    alpha_ = static_cast<Sum>(p.alpha.to_bits64());
    beta_ = static_cast<Sum>(p.beta.to_bits64());
    const TileSizes sizes = tile_sizes<IntegerTile>(p);
    const int64_t rows = round_up(sizes.rows, kernel_.mr);
    const int64_t columns = round_up(sizes.columns, kernel_.nr);
    a_ = scratch<Sum>(rows * sizes.depth);
    b_ = scratch<Sum>(sizes.depth * columns);
    sum_ = scratch<Sum>(rows * columns);
  }

  void start(int64_t rows, int64_t columns) {
    rows_ = rows;
    columns_ = columns;
    ld_ = round_up(columns, kernel_.nr);
    std::fill_n(sum_.get(), round_up(rows, kernel_.mr) * ld_, Sum(0));
  }

  void add(const MatrixView<const T>& a, const MatrixView<const T>& b) {
    if (rows_ == 1 || columns_ == 1) {
      add_thin(a, b);
    } else {
      add_packed(a, b);
    }
  }

  void finish(const MatrixView<T>& c) {
    for (int64_t i = 0; i < rows_; ++i) {
      const Sum* const sum = sum_.get() + i * ld_;
      T* const row = c.data + i * c.row_step;
      for (int64_t j = 0; j < columns_; ++j) {
        T& element = row[j * c.column_step];
        const Wide scaled = Wide(alpha_) * Wide(sum[j]);
        const Wide before = beta_ == 0 ? Wide(0) : Wide(beta_) * static_cast<Wide>(element);
        element = static_cast<T>(static_cast<Sum>(scaled + before));
      }
    }
  }

 private:
  void add_packed(const MatrixView<const T>& a, const MatrixView<const T>& b) {
    const int64_t depth = a.columns;
    pack(a.data, a.rows, a.row_step, depth, a.column_step, kernel_.mr, a_.get());
    pack(b.data, b.columns, b.column_step, depth, b.row_step, kernel_.nr, b_.get());
    for (int64_t j = 0; j < columns_; j += kernel_.nr) {
      for (int64_t i = 0; i < rows_; i += kernel_.mr) {
        kernel_.multiply(depth, a_.get() + i * depth, b_.get() + j * depth,
                         sum_.get() + i * ld_ + j, ld_);
      }
    }
  }

  /// A single row or column: packing would cost more than the product.
  void add_thin(const MatrixView<const T>& a, const MatrixView<const T>& b) {
    for (int64_t i = 0; i < rows_; ++i) {
      const T* const row = a.data + i * a.row_step;
      Sum* const sum = sum_.get() + i * ld_;
      if (columns_ == 1) {
        sum[0] = static_cast<Sum>(sum[0] + dot(row, a.column_step, b.data, b.row_step, a.columns));
        continue;
      }
      for (int64_t k = 0; k < a.columns; ++k) {
        const Wide factor = static_cast<Wide>(row[k * a.column_step]);
        const T* const other = b.data + k * b.row_step;
        for (int64_t j = 0; j < columns_; ++j) {
          const Wide product = factor * static_cast<Wide>(other[j * b.column_step]);
          sum[j] = static_cast<Sum>(sum[j] + product);
        }
      }
    }
  }

  static Sum dot(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count) {
    Wide sum = 0;
    if (x_step == 1 && y_step == 1) {
      for (int64_t k = 0; k < count; ++k) sum += static_cast<Wide>(x[k]) * static_cast<Wide>(y[k]);
    } else {
      for (int64_t k = 0; k < count; ++k) {
        sum += static_cast<Wide>(x[k * x_step]) * static_cast<Wide>(y[k * y_step]);
      }
    }
    return static_cast<Sum>(sum);
  }

  /// Slivers of `width` lines, each sliver with its lines interleaved; short ones end in zeros.
  static void pack(const T* from, int64_t lines, int64_t line_step, int64_t depth,
                   int64_t depth_step, int64_t width, Sum* to) {
    for (int64_t first = 0; first < lines; first += width) {
      const int64_t filled = std::min(width, lines - first);
      const T* const sliver = from + first * line_step;
      if (filled < width) std::fill_n(to, width * depth, Sum(0));
      if (line_step == 1) {
        for (int64_t k = 0; k < depth; ++k) {
          const T* const source = sliver + k * depth_step;
          for (int64_t i = 0; i < filled; ++i) to[k * width + i] = static_cast<Sum>(source[i]);
        }
      } else {
        for (int64_t i = 0; i < filled; ++i) {
          const T* const source = sliver + i * line_step;
          for (int64_t k = 0; k < depth; ++k) {
            to[k * width + i] = static_cast<Sum>(source[k * depth_step]);
          }
        }
      }
      to += width * depth;
    }
  }

  const IntegerKernel<Sum>& kernel_ = kernel<Sum>();
  std::unique_ptr<Sum[]> a_, b_, sum_;
  Sum alpha_ = 1, beta_ = 0;
  int64_t rows_ = 0, columns_ = 0, ld_ = 0;
};

}  // namespace

void matmul_integer_cpu(const Product& p) {
  visit_dtype(IntegerTypes{}, p.c.dtype(), "matmul",
              [&]<class T>(TypeTag<T>) { tiled_product<IntegerTile<T>>(p); });
}

}  // namespace cuop::kernels
