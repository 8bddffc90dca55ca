// Mean and squared deviations. Each block is read twice while it is in the cache: mean first, then
// the deviations from it; then the moments of blocks are merged.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/jit/kernels/moments.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kUnroll = 4;
constexpr int64_t kGroup = kUnroll * kLanes;
constexpr int64_t kBlock = 2048;

void init(void* states, int64_t count) {
  std::fill_n(static_cast<Moments*>(states), count, Moments{0.0, 0.0, 0.0});
}

/// sum of term(x) over the row.
template <class T, class Term>
[[gnu::always_inline]] inline double sum_terms(const T* row, int64_t n, Term&& term) {
  V part[kUnroll] = {};
  int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) {
      part[k] = part[k] + term(lanes::load_double(row + i + k * kLanes));
    }
  }
  double total = 0.0;
  for (; i < n; ++i) total += term(static_cast<double>(row[i]));
  const V folded = (part[0] + part[1]) + (part[2] + part[3]);
  return lanes::fold<double>(folded, [](double a, double b) { return a + b; }) + total;
}

template <class T>
void fold_row(Moments& state, const T* row, int64_t n) {
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    const auto count = static_cast<double>(size);
    const double mean = sum_terms(row + i, size, [](const auto& x) { return x; }) / count;
    const double squares = sum_terms(row + i, size, [mean](const auto& x) {
      const auto deviation = x - mean;
      return deviation * deviation;
    });
    state.merge({count, mean, squares});
  }
}

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    fold_row(static_cast<Moments*>(states)[i], static_cast<const T*>(data) + i * row_stride, n);
  }
}

/// total[j] += term(rows[r][j], j) for every row, rows in the order of memory.
template <class T, class Term>
[[gnu::always_inline]] inline void add_terms(double* total, const void* const* rows, int64_t r0,
                                             int64_t r1, int64_t first, int64_t width,
                                             Term&& term) {
  for (int64_t r = r0; r < r1; ++r) {
    const T* row = static_cast<const T*>(rows[r]) + first;
    int64_t j = 0;
    for (; j + kLanes <= width; j += kLanes) {
      lanes::store(total + j, lanes::load(total + j) + term(lanes::load_double(row + j), j));
    }
    for (; j < width; ++j) total[j] += term(static_cast<double>(row[j]), j);
  }
}

/// Tiles of 32 rows, small enough to be still in the cache when they are read again.
template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kColumns = 512, kRows = 32;
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t width = std::min(kColumns, columns - first);
    for (int64_t r = 0; r < row_count; r += kRows) {
      const int64_t r_end = std::min(r + kRows, row_count);
      const auto count = static_cast<double>(r_end - r);
      double mean[kColumns] = {}, squares[kColumns] = {};
      add_terms<T>(mean, rows, r, r_end, first, width, [](const auto& x, int64_t) { return x; });
      for (int64_t j = 0; j < width; ++j) mean[j] /= count;
      add_terms<T>(squares, rows, r, r_end, first, width, [&](const auto& x, int64_t j) {
        std::remove_cvref_t<decltype(x)> center;
        std::memcpy(&center, mean + j, sizeof(center));
        const auto deviation = x - center;
        return deviation * deviation;
      });
      for (int64_t j = 0; j < width; ++j) {
        static_cast<Moments*>(states)[first + j].merge({count, mean[j], squares[j]});
      }
    }
  }
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<Moments*>(into)[i].merge(static_cast<const Moments*>(from)[i]);
  }
}

template <class T>
constexpr Fold kFold{sizeof(Moments), true, init, rows<T>, columns<T>, merge};

}  // namespace

template <>
const Fold* moments_fold<isa::CUOP_ISA>(DType element) {
  if (element == DType::kFloat32) return &kFold<float>;
  return element == DType::kFloat64 ? &kFold<double> : nullptr;
}

}  // namespace cuop
