// Products of bools, "or" of "and": 64 elements along the depth are the bits of one word.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/tiled_product_internal.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kBits = 64;

/// Eight bools that lie side by side, one a byte.
uint64_t eight_at(const bool* from) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, from, sizeof(bytes));
  return bytes;
}
/// Bit i is the i-th of eight that lie side by side.
uint64_t bits_of_eight(const bool* from) { return eight_at(from) * 0x0102040810204080u >> 56; }

uint64_t bits_of(const bool* from, int64_t step, int64_t count) {
  uint64_t bits = 0;
  int64_t i = 0;
  if (step == 1) {
    for (; i + 8 <= count; i += 8) bits |= bits_of_eight(from + i) << i;
  }
  for (; i < count; ++i) bits |= uint64_t{from[i * step]} << i;
  return bits;
}
/// The bits of eight lines that lie side by side.
void bits_of_eight_lines(const bool* from, int64_t step, int64_t count, uint64_t* to) {
  for (int64_t k = 0; k < count; k += 8) {
    uint64_t eight = 0;  // a byte of each line
    for (int64_t d = 0; d < std::min<int64_t>(8, count - k); ++d) {
      eight |= eight_at(from + (k + d) * step) << d;
    }
    for (int64_t i = 0; i < 8; ++i) to[i] |= (eight >> 8 * i & 0xff) << k;
  }
}

/// Whether an element of both is true at one place; reads on until then.
bool have_common(const bool* x, int64_t x_step, const bool* y, int64_t y_step, int64_t count) {
  int64_t k = 0;
  if (x_step == 1 && y_step == 1) {
    for (; k + 64 <= count; k += 64) {
      uint64_t common = 0;
      for (int64_t i = 0; i < 64; i += 8) common |= eight_at(x + k + i) & eight_at(y + k + i);
      if (common != 0) return true;
    }
    for (; k + 8 <= count; k += 8) {
      if ((eight_at(x + k) & eight_at(y + k)) != 0) return true;
    }
  }
  for (; k < count; ++k) {
    if (x[k * x_step] && y[k * y_step]) return true;
  }
  return false;
}

class BoolTile {
 public:
  using Element = bool;
  using Result = bool;
  static constexpr int64_t kRows = 128, kColumns = 256, kDepth = 16 * kBits;

  explicit BoolTile(const Product& p)
      : alpha_(p.alpha.to_double() != 0), beta_(p.beta.to_double() != 0) {
    const TileSizes sizes = tile_sizes<BoolTile>(p);
    const int64_t rows = round_up(sizes.rows, kernel_.mr);
    const int64_t columns = round_up(sizes.columns, kernel_.nr);
    const int64_t words = divide_up(sizes.depth, kBits);
    a_ = scratch<uint64_t>(rows * words);
    b_ = scratch<uint64_t>(words * columns);
    sum_ = scratch<uint64_t>(rows * columns);
  }

  void start(int64_t rows, int64_t columns) {
    rows_ = rows;
    columns_ = columns;
    ld_ = round_up(columns, kernel_.nr);
    std::fill_n(sum_.get(), round_up(rows, kernel_.mr) * ld_, uint64_t{0});
    is_full_ = false;
  }

  void add(const MatrixView<const bool>& a, const MatrixView<const bool>& b) {
    if (is_full_) return;
    if (columns_ == 1) {
      for (int64_t i = 0; i < rows_; ++i) {
        uint64_t& sum = sum_[i * ld_];
        const bool* const row = a.data + i * a.row_step;
        if (sum == 0) sum = have_common(row, a.column_step, b.data, b.row_step, a.columns);
      }
    } else if (rows_ == 1) {
      add_rows(a, b);
    } else {
      add_packed(a, b);
    }
    is_full_ = true;
    for (int64_t i = 0; is_full_ && i < rows_; ++i) {
      const uint64_t *const row = sum_.get() + i * ld_, *const end = row + columns_;
      is_full_ = std::find(row, end, 0u) == end;
    }
  }

  void finish(const MatrixView<bool>& c) {
    for (int64_t i = 0; i < rows_; ++i) {
      const uint64_t* const sum = sum_.get() + i * ld_;
      bool* const row = c.data + i * c.row_step;
      for (int64_t j = 0; j < columns_; ++j) {
        bool& element = row[j * c.column_step];
        element = (alpha_ && sum[j] != 0) || (beta_ && element);
      }
    }
  }

 private:
  void add_packed(const MatrixView<const bool>& a, const MatrixView<const bool>& b) {
    const int64_t words = divide_up(a.columns, kBits);
    pack(a.data, a.rows, a.row_step, a.columns, a.column_step, kernel_.mr, a_.get());
    pack(b.data, b.columns, b.column_step, a.columns, b.row_step, kernel_.nr, b_.get());
    for (int64_t j = 0; j < columns_; j += kernel_.nr) {
      for (int64_t i = 0; i < rows_; i += kernel_.mr) {
        kernel_.multiply(words, a_.get() + i * words, b_.get() + j * words,
                         sum_.get() + i * ld_ + j, ld_);
      }
    }
  }

  /// Of a single row: the rows of b that it names, until every column has one.
  void add_rows(const MatrixView<const bool>& a, const MatrixView<const bool>& b) {
    constexpr int kRowsBetween = 8;  // looks at the result
    bool found[kColumns] = {};
    int taken = 0;
    for (int64_t k = 0; k < a.columns; ++k) {
      if (!a.data[k * a.column_step]) continue;
      const bool* const row = b.data + k * b.row_step;
      if (b.column_step == 1) {
        for (int64_t j = 0; j < columns_; ++j) found[j] |= row[j];
      } else {
        for (int64_t j = 0; j < columns_; ++j) found[j] |= row[j * b.column_step];
      }
      const auto count = static_cast<size_t>(columns_);
      if (++taken % kRowsBetween == 0 && std::memchr(found, 0, count) == nullptr) break;
    }
    for (int64_t j = 0; j < columns_; ++j) sum_[j] |= uint64_t{found[j]};
  }

  /// Slivers of `width` lines, each sliver with its lines' words interleaved; short ones end in
  /// zeros.
  static void pack(const bool* from, int64_t lines, int64_t line_step, int64_t depth,
                   int64_t depth_step, int64_t width, uint64_t* to) {
    for (int64_t first = 0; first < lines; first += width) {
      const int64_t filled = std::min(width, lines - first);
      for (int64_t k = 0; k < depth; k += kBits, to += width) {
        const int64_t count = std::min(kBits, depth - k);
        const bool* const source = from + first * line_step + k * depth_step;
        std::fill_n(to, width, uint64_t{0});
        int64_t i = 0;
        if (line_step == 1 && depth_step != 1) {
          for (; i + 8 <= filled; i += 8) {
            bits_of_eight_lines(source + i, depth_step, count, to + i);
          }
        }
        for (; i < filled; ++i) to[i] = bits_of(source + i * line_step, depth_step, count);
      }
    }
  }

  const IntegerKernel<uint64_t>& kernel_ =
      isa::choose([]<class Level>(Level) -> const IntegerKernels& {
        return integer_kernels<Level>();
      }).bits;
  std::unique_ptr<uint64_t[]> a_, b_, sum_;
  bool alpha_, beta_, is_full_ = false;  ///< no sum is 0 any more
  int64_t rows_ = 0, columns_ = 0, ld_ = 0;
};

}  // namespace

void matmul_bool_cpu(const Product& p) { tiled_product<BoolTile>(p); }

}  // namespace cuop::kernels
