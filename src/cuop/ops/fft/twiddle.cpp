#include "cuop/ops/fft/twiddle.h"

#include <algorithm>
#include <complex>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/slot.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/fft/root_table.h"
#include "cuop/ops/fft/twiddle_arguments.cuh"
#include "cuop/ops/places.h"

namespace cuop::spectral {

namespace {

constexpr int64_t kTwiddlesPerTask = 16 << 10;
constexpr int kTwiddleThreads = 256;

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
                   int64_t step, const RootTable::Places& roots) {
  for (int64_t i = 0; i < count; ++i, exponent += step) {
    const RootTable::Root root = roots.at(exponent);
    const double re = root.real(), im = root.imag();
    const double x = line[i * stride].real(), y = line[i * stride].imag();
    line[i * stride] = {static_cast<Real>(x * re - y * im), static_cast<Real>(x * im + y * re)};
  }
}

void multiply_cpu(const Tensor& block, const Twiddles& twiddles) {
  const RootTable table(twiddles.n, twiddles.is_inverse, kCpu);
  const RootTable::Places roots = table.places();
  const auto nest = nest_of(block, twiddles);
  const auto [size, strides] = nest.inner();
  const int64_t grain = std::max<int64_t>(1, kTwiddlesPerTask / size);
  const auto multiply = [&]<class Real>(std::complex<Real>* data) {
    backend::parallel_for_each(nest.outer_size(), grain, [&](int64_t outer) {
      const auto [element, row, column] = nest.row_offsets(outer);
      const int64_t first_row = twiddles.first_row + row;
      const int64_t first_column = twiddles.first_column + column;
      // The innermost axis runs along rows, along columns, or along neither.
      const int64_t step = strides[1] * first_column + strides[2] * first_row;
      multiply_line(data + element, size, strides[0], first_row * first_column, step, roots);
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
  const RootTable::Places roots = table.places();
  const jit::TwiddleBlock arguments{block.data(),
                                    roots.coarse,
                                    roots.fine,
                                    kernels::places_of(nest_of(block, twiddles)),
                                    block.size(),
                                    twiddles.first_row,
                                    twiddles.first_column,
                                    roots.shift};
  jit::launch_text(twiddle_kernel(block.dtype()), block.device(),
                   divide_up(block.size(), int64_t{kTwiddleThreads}), &arguments);
}

constexpr backend::Slot<void(const Tensor&, const Twiddles&)> kMultiplyTwiddles("fft", multiply_cpu,
                                                                                multiply_cuda);

}  // namespace

int64_t twiddle_bytes(int64_t n) { return RootTable::bytes(n); }

void multiply_by_twiddles(const Tensor& block, const Twiddles& twiddles) {
  if (block.size() > 0) kMultiplyTwiddles(block.device(), block, twiddles);
}

jit::TextKernel twiddle_kernel(DType dtype) {
  return {"fft twiddles", "cuop/ops/fft/twiddle.cuh", "TwiddleBlock",
          cat("multiply_by_twiddles<", dtype == DType::kComplex64 ? "float" : "double", ">"),
          kTwiddleThreads};
}

}  // namespace cuop::spectral
