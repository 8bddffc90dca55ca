#include <algorithm>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/sparse/sparse_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kVectorBytes = lanes::kRegisterBytes;
constexpr int kMostVectors = 8;  ///< sums that stay in registers
constexpr int64_t kPanelBytes = 256 << 10;

template <class T>
constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t kPanelRows = kPanelBytes / (kMostVectors * kVectorBytes);

/// The rows [begin, end) of b, from `first` on.
template <class T>
struct Lines {
  const T* first;
  int64_t stride;
  int64_t begin, end;
  bool goes_on;  ///< adds to what is in c

  template <class Index>
  const T* at(Index row) const {
    return first + (int64_t{row} - begin) * stride;
  }
};

/// Adds up `Vectors` vectors of a row of c from value `k` of the row on; returns where it stopped.
template <int Vectors, int Bytes, class T, class Index>
int64_t add_vectors(const RowProduct<T, Index>& p, const Lines<T>& lines, int64_t k, int64_t last,
                    T* c) {
  typedef T Vector __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
  auto* const to = reinterpret_cast<Vector*>(c);
  Vector sums[Vectors] = {};
  if (lines.goes_on) {
#pragma GCC unroll 8
    for (int i = 0; i < Vectors; ++i) sums[i] = to[i];
  }
  for (; k < last && p.columns[k] < lines.end; ++k) {
    const auto* line = reinterpret_cast<const Vector*>(lines.at(p.columns[k]));
    const T value = p.values[k];
#pragma GCC unroll 8
    for (int i = 0; i < Vectors; ++i) sums[i] += value * line[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < Vectors; ++i) to[i] = sums[i];
  return k;
}

/// The same of one element. In the same order, so that an element does not depend on its
/// neighbours.
template <class T, class Index>
int64_t add_element(const RowProduct<T, Index>& p, const Lines<T>& lines, int64_t k, int64_t last,
                    T* c) {
  T sum = lines.goes_on ? *c : T(0);
  for (; k < last && p.columns[k] < lines.end; ++k) sum += p.values[k] * *lines.at(p.columns[k]);
  *c = sum;
  return k;
}

/// One row of a part of c, at `c`.
template <class T, class Index>
int64_t add_row(const RowProduct<T, Index>& p, Lines<T> lines, int64_t k, int64_t last,
                int64_t width, T* c) {
  int64_t stop = k;
  const auto piece = [&]<int Vectors, int Bytes>() {
    constexpr int64_t kWidth = Vectors * Bytes / static_cast<int64_t>(sizeof(T));
    if (width < kWidth) return;
    stop = add_vectors<Vectors, Bytes>(p, lines, k, last, c);
    lines.first += kWidth;
    c += kWidth;
    width -= kWidth;
  };
  piece.template operator()<8, kVectorBytes>();
  piece.template operator()<4, kVectorBytes>();
  piece.template operator()<2, kVectorBytes>();
  piece.template operator()<1, kVectorBytes>();
  if constexpr (kVectorBytes > 32) piece.template operator()<1, 32>();
  if constexpr (kVectorBytes > 16) piece.template operator()<1, 16>();
  for (; width > 0; --width) {
    stop = add_element(p, lines, k, last, c++);
    ++lines.first;
  }
  return stop;
}

template <class T, class Index>
void multiply_direct(const RowProduct<T, Index>& p, const ProductPart& part) {
  Lookout lookout;
  for (int64_t row = part.first_row; row < part.end_row; ++row) {
    Lines<T> lines{p.b + part.first_column, p.b_stride, 0, p.depth, false};
    const int64_t end = p.positions[row + 1];
    for (int64_t k = p.positions[row];;) {  // once where the row is empty, too
      const int64_t last = std::min(end, k + kLoopPiece);
      add_row(p, lines, k, last, part.width, p.c + row * p.c_stride + part.first_column);
      lookout.after(1 + (last - k) * part.width);
      lines.goes_on = true;
      k = last;
      if (k == end) break;
    }
  }
}

template <class T, class Index>
void multiply_packed(const RowProduct<T, Index>& p, const ProductPart& part, T* panel,
                     Index* next) {
  for (int64_t row = part.first_row; row < part.end_row; ++row) {
    next[row - part.first_row] = p.positions[row];
  }
  Lookout lookout;
  for (int64_t begin = 0; begin < p.depth; begin += kPanelRows<T>) {
    const int64_t end = std::min(begin + kPanelRows<T>, p.depth);
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(p.b + i * p.b_stride + part.first_column, part.width,
                  panel + (i - begin) * part.width);
    }
    const Lines<T> lines{panel, part.width, begin, end, begin > 0};
    for (int64_t row = part.first_row; row < part.end_row; ++row) {
      Index& k = next[row - part.first_row];
      const Index before = k;
      k = static_cast<Index>(add_row(p, lines, int64_t{k}, int64_t{p.positions[row + 1]},
                                     part.width, p.c + row * p.c_stride + part.first_column));
      lookout.after(1 + (k - before) * part.width);
    }
  }
}

template <class T, class Index>
constexpr SparseLoop<T, Index> kLoop{&multiply_direct<T, Index>, &multiply_packed<T, Index>};

}  // namespace

template <class Level, class T>
const SparseLoops<T>& sparse_loops() {
  static constexpr SparseLoops<T> kLoops{kMostVectors * kLanes<T>, kPanelRows<T>, kLoop<T, int32_t>,
                                         kLoop<T, int64_t>};
  return kLoops;
}
template const SparseLoops<float>& sparse_loops<isa::CUOP_ISA, float>();
template const SparseLoops<double>& sparse_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::kernels
