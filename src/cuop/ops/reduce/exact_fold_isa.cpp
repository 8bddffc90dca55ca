// Exact sums. A block of up to 1024 elements is cut into slices of 43 bits from the top by adding
// and subtracting a power of two (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008);
// a slice of all elements adds up in a double without error, and only the slices' totals reach the
// wide accumulator. A block whose bits span more than four slices, or that holds inf or NaN, goes
// there element by element.
#include <algorithm>
#include <new>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/jit/kernels/exact_sum.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kUnroll = 4;
constexpr int64_t kGroup = kUnroll * kLanes;
constexpr int64_t kBlock = 1024;        // 2^10 elements
constexpr int kSliceBits = 53 - 10;     // so their sum fits the 53 bits of a double
constexpr int kLargestExponent = 1000;  // beyond, the power of two itself could overflow

/// Largest magnitude; NaN is passed over (the residual finds it).
template <class T>
double largest_magnitude(const T* data, int64_t n) {
  V part[kUnroll] = {};
  for (int64_t i = 0; i < n; i += kGroup) {
    for (int k = 0; k < kUnroll; ++k) {
      const V x = lanes::load_double(data + i + k * kLanes);
      const V magnitude = x < V{} ? -x : x;
      part[k] = magnitude > part[k] ? magnitude : part[k];
    }
  }
  for (int k = 1; k < kUnroll; ++k) part[0] = part[k] > part[0] ? part[k] : part[0];
  return lanes::fold<double>(part[0], [](double a, double b) { return a > b ? a : b; });
}

/// Adds the block's slices to `total`; false, with nothing added, when something is left over.
template <int Slices, class T>
bool add_slices(ExactSum& total, const T* data, int64_t n, int exponent) {
  double cutter[Slices];
  for (int s = 0; s < Slices; ++s) {
    // Multiples of 2^unit are cut off; what remains is below 2^(unit-1).
    const int unit = std::max(exponent - kSliceBits - s * (kSliceBits + 1), ExactSum::kMinExponent);
    cutter[s] = __builtin_ldexp(1.5, 52 + unit);
  }
  V slice[Slices][2] = {};
  V residual = {};
  for (int64_t i = 0; i < n; i += kGroup) {
    for (int k = 0; k < kUnroll; ++k) {
      V x = lanes::load_double(data + i + k * kLanes);
      for (int s = 0; s < Slices; ++s) {
        const V top = (x + cutter[s]) - cutter[s];
        slice[s][k & 1] = slice[s][k & 1] + top;
        x = x - top;
      }
      residual = residual + (x < V{} ? -x : x);
    }
  }
  const auto add = [](double a, double b) { return a + b; };
  if (!(lanes::fold<double>(residual, add) == 0.0)) return false;
  for (int s = 0; s < Slices; ++s) total.add(lanes::fold<double>(slice[s][0] + slice[s][1], add));
  return true;
}

template <class T>
void add_each(ExactSum& total, const T* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) total.add(static_cast<double>(data[i]));
}

/// What the blocks before needed: neighbours are most often of one kind.
struct Experience {
  int slices = 1;
  int blocks_to_skip = 0;  ///< blocks for which slicing is not tried
};

template <class T>
bool try_slices(ExactSum& total, const T* data, int64_t n, Experience& experience) {
  const double largest = largest_magnitude(data, n);
  if (!(largest - largest == 0.0)) return false;
  int exponent = 0;
  if (largest != 0.0) __builtin_frexp(largest, &exponent);
  if (exponent > kLargestExponent) return false;
  switch (experience.slices) {
    case 1:
      if (add_slices<1>(total, data, n, exponent)) return true;
      [[fallthrough]];
    case 2:
      experience.slices = 2;
      if (add_slices<2>(total, data, n, exponent)) return true;
      [[fallthrough]];
    case 3:
      experience.slices = 3;
      if (add_slices<3>(total, data, n, exponent)) return true;
      [[fallthrough]];
    default:
      experience.slices = 4;
      return add_slices<4>(total, data, n, exponent);
  }
}

template <class T>
void add_block(ExactSum& total, const T* data, int64_t n, Experience& experience) {
  if (experience.blocks_to_skip > 0) {
    --experience.blocks_to_skip;
  } else if (try_slices(total, data, n, experience)) {
    return;
  } else {
    experience = {1, 16};
  }
  add_each(total, data, n);
}

template <class T>
void fold_row(ExactSum& total, const T* row, int64_t n, Experience& experience) {
  int64_t i = 0;
  while (n - i >= 2 * kGroup) {
    const int64_t size = std::min(kBlock, (n - i) / kGroup * kGroup);
    add_block(total, row + i, size, experience);
    i += size;
  }
  add_each(total, row + i, n - i);
}

void init(void* states, int64_t count) {
  for (int64_t i = 0; i < count; ++i) new (static_cast<ExactSum*>(states) + i) ExactSum();
}

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  Experience experience;
  for (int64_t i = 0; i < count; ++i) {
    fold_row(static_cast<ExactSum*>(states)[i], static_cast<const T*>(data) + i * row_stride, n,
             experience);
  }
}

/// Tiles are turned into rows: the work on an element outweighs its move.
template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kColumns = 16, kRows = 256;
  T tile[kColumns][kRows];
  Experience experience;
  for (int64_t j = 0; j < columns; j += kColumns) {
    const int64_t width = std::min(kColumns, columns - j);
    for (int64_t r = 0; r < row_count; r += kRows) {
      const int64_t height = std::min(kRows, row_count - r);
      for (int64_t i = 0; i < height; ++i) {
        const T* row = static_cast<const T*>(rows[r + i]) + j;
        for (int64_t k = 0; k < width; ++k) tile[k][i] = row[k];
      }
      for (int64_t k = 0; k < width; ++k) {
        fold_row(static_cast<ExactSum*>(states)[j + k], tile[k], height, experience);
      }
    }
  }
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<ExactSum*>(into)[i].merge(static_cast<const ExactSum*>(from)[i]);
  }
}

template <class T>
void integer_rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    const T* row = static_cast<const T*>(data) + i * row_stride;
    for (int64_t j = 0; j < n; ++j) static_cast<ExactSum*>(states)[i].add_integer(row[j]);
  }
}
template <class T>
void integer_columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  for (int64_t r = 0; r < row_count; ++r) {
    const T* row = static_cast<const T*>(rows[r]);
    for (int64_t j = 0; j < columns; ++j) static_cast<ExactSum*>(states)[j].add_integer(row[j]);
  }
}

template <class T>
constexpr Fold kFold{sizeof(ExactSum), init, rows<T>, columns<T>, merge};
template <class T>
constexpr Fold kIntegerFold{sizeof(ExactSum), init, integer_rows<T>, integer_columns<T>, merge};

}  // namespace

template <>
const Fold* exact_fold<isa::CUOP_ISA>(DType element) {
  switch (element) {
    case DType::kFloat32:
      return &kFold<float>;
    case DType::kFloat64:
      return &kFold<double>;
    case DType::kInt64:
      return &kIntegerFold<int64_t>;
    case DType::kUInt64:
      return &kIntegerFold<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace cuop
