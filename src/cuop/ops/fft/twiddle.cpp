#include "cuop/ops/fft/twiddle.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/slot.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/twiddle_arguments.cuh"
#include "cuop/ops/places.h"

namespace cuop::spectral {

namespace {

using Root = std::complex<double>;

constexpr int64_t kElementsPerTask = 16 << 10;
constexpr int kThreads = 256;

/// All n roots as products: about sqrt(n) of them far apart, followed by as many neighbours.
struct RootTable {
  Tensor roots;  ///< complex128, on the device
  int64_t coarse_count = 0;
  int shift = 0;

  RootTable(int64_t n, bool is_inverse, Device device) : RootTable(n) {
    const int64_t fine_count = count() - coarse_count;
    const Tensor table = empty({count()}, DType::kComplex128);
    Root* const to = table.data<Root>();
    const auto root = [&](int64_t m) {
      const Root forward = std::conj(root_of_unity(m % n, n));
      return is_inverse ? std::conj(forward) : forward;
    };
    for (int64_t i = 0; i < coarse_count; ++i) to[i] = root(i << shift);
    for (int64_t i = 0; i < fine_count; ++i) to[coarse_count + i] = root(i);
    roots = to_device(table, device);
  }

  /// Without the roots.
  explicit RootTable(int64_t n) {
    while ((n >> shift) >> shift > 1) ++shift;
    coarse_count = (n >> shift) + 1;
  }
  int64_t count() const { return coarse_count + (int64_t{1} << shift); }

  const Root* coarse() const { return roots.data<Root>(); }
  const Root* fine() const { return coarse() + coarse_count; }
};

/// Over elements, rows and columns of the block.
LoopNest<3> nest_of(const Tensor& block, const Twiddles& twiddles) {
  Strides rows, columns;
  for (int axis = 0; axis < block.ndim(); ++axis) {
    rows.push_back(axis == twiddles.row_axis ? 1 : 0);
    columns.push_back(axis == twiddles.column_axis ? 1 : 0);
  }
  return make_loop_nest<3>(block.shape(), {&block.strides(), &rows, &columns});
}

template <class Real>
void multiply_line(std::complex<Real>* line, int64_t count, int64_t stride, int64_t exponent,
                   int64_t step, const RootTable& table) {
  const Root* const coarse = table.coarse();
  const Root* const fine = table.fine();
  const int64_t mask = (int64_t{1} << table.shift) - 1;
  for (int64_t i = 0; i < count; ++i, exponent += step) {
    const Root a = coarse[exponent >> table.shift], b = fine[exponent & mask];
    const double re = a.real() * b.real() - a.imag() * b.imag();
    const double im = a.real() * b.imag() + a.imag() * b.real();
    const double x = line[i * stride].real(), y = line[i * stride].imag();
    line[i * stride] = {static_cast<Real>(x * re - y * im), static_cast<Real>(x * im + y * re)};
  }
}

void multiply_cpu(const Tensor& block, const Twiddles& twiddles) {
  const RootTable table(twiddles.n, twiddles.is_inverse, kCpu);
  const auto nest = nest_of(block, twiddles);
  const auto [size, strides] = nest.inner();
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / size);
  const auto multiply = [&]<class Real>(std::complex<Real>* data) {
    backend::parallel_for_each(nest.outer_size(), grain, [&](int64_t outer) {
      const auto [element, row, column] = nest.row_offsets(outer);
      const int64_t first_row = twiddles.first_row + row;
      const int64_t first_column = twiddles.first_column + column;
      // The innermost axis runs along rows, along columns, or along neither.
      const int64_t step = strides[1] * first_column + strides[2] * first_row;
      multiply_line(data + element, size, strides[0], first_row * first_column, step, table);
    });
  };
  if (block.dtype() == DType::kComplex64) {
    multiply(block.data<std::complex<float>>());
  } else {
    multiply(block.data<std::complex<double>>());
  }
}

void multiply_cuda(const Tensor& block, const Twiddles& twiddles) {
  const RootTable table(twiddles.n, twiddles.is_inverse, block.device());
  const jit::TwiddleBlock arguments{
      block.data(),          table.coarse(),
      table.fine(),          kernels::places_of(nest_of(block, twiddles)),
      block.size(),          twiddles.first_row,
      twiddles.first_column, table.shift};
  jit::launch_text(twiddle_kernel(block.dtype()), block.device(),
                   divide_up(block.size(), int64_t{kThreads}), &arguments);
}

constexpr backend::Slot<void(const Tensor&, const Twiddles&)> kMultiply("fft", multiply_cpu,
                                                                        multiply_cuda);

}  // namespace

int64_t twiddle_bytes(int64_t n) {
  return RootTable(n).count() * static_cast<int64_t>(sizeof(Root));
}

std::complex<double> root_of_unity(int64_t m, int64_t n) {
  // The angle is folded into an eighth of the circle while numbers are whole, so that what is left
  // is exact.
  const int64_t quarter = (8 * m / n + 1) / 2;
  const auto rest = static_cast<double>(4 * m - n * quarter);
  const double angle = 0.5 * std::numbers::pi * (rest / static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

void multiply_by_twiddles(const Tensor& block, const Twiddles& twiddles) {
  if (block.size() > 0) kMultiply(block.device(), block, twiddles);
}

jit::TextKernel twiddle_kernel(DType dtype) {
  return {"fft twiddles", "cuop/ops/fft/twiddle.cuh", "TwiddleBlock",
          cat("multiply_by_twiddles<", dtype == DType::kComplex64 ? "float" : "double", ">"),
          kThreads};
}

}  // namespace cuop::spectral
