// Passes on a GPU are launches that follow each other.
#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/poisson/five_point_arguments.cuh"
#include "cuop/ops/poisson/row_kernels.h"

namespace cuop::kernels {

jit::TextKernel row_kernel(RowKernel kernel, DType dtype) {
  struct Names {
    const char *title, *arguments, *function;
  };
  constexpr Names kNames[] = {{"relax_rows", "RelaxArguments", "relax_cells"},
                              {"residual_rows", "ResidualArguments", "residual_of_rows"},
                              {"dots_of_rows", "DotArguments", "dots_of_rows"},
                              {"resample_rows", "ResampleArguments", "resample_cells"}};
  const Names& names = kNames[static_cast<int>(kernel)];
  return {names.title, "cuop/ops/poisson/five_point.cuh", names.arguments,
          jit::instance(names.function, dtype), jit::kRowThreads};
}

namespace {

void launch(RowKernel kernel, const Tensor& on, int64_t blocks, const void* arguments) {
  jit::launch_text(row_kernel(kernel, on.dtype()), on.device(), blocks, arguments);
}

}  // namespace

void relax_cuda(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
                const std::vector<int>& colours, double omega) {
  jit::RelaxArguments a{grid_rows(op, first), u.data(), b.data(), u.shape(0), 1, 0, omega};
  for (const int colour : colours) {
    const int64_t cells = (a.rows - 2 * a.margin) * divide_up(op.width, 2);
    if (cells <= 0) return;
    a.colour = colour;
    launch(RowKernel::kRelax, u, divide_up(cells, jit::kRowThreads), &a);
    ++a.margin;
  }
}

void five_point_residual_cuda(const FivePoint& op, const Tensor& padded, const Tensor& b,
                              int64_t first, const Tensor& out, const Tensor& squares) {
  const int64_t rows = padded.shape(0) - 2;
  const jit::ResidualArguments a{
      grid_rows(op, first),
      static_cast<const std::byte*>(padded.data()) + op.width * itemsize(padded.dtype()),
      b.is_defined() ? b.data() : nullptr,
      out.is_defined() ? out.data() : nullptr,
      squares.data<double>(),
      rows};
  launch(RowKernel::kResidual, padded, rows, &a);
}

void row_dots_cuda(const Tensor& x, const Tensor& y, const Tensor& dots) {
  const jit::DotArguments a{x.data(), y.data(), dots.data<double>(), x.shape(0), x.shape(1)};
  launch(RowKernel::kDots, x, x.shape(0), &a);
}

void resample_cuda(const Tensor& in, const BandTable& down, const BandTable& across,
                   const Tensor& out, bool is_added) {
  const jit::ResampleArguments a{in.data(),
                                 in.shape(1),
                                 out.data(),
                                 out.shape(0),
                                 out.shape(1),
                                 down.first.data<int64_t>(),
                                 down.weights.data(),
                                 across.first.data<int64_t>(),
                                 across.weights.data(),
                                 down.taps,
                                 across.taps,
                                 is_added ? 1 : 0};
  launch(RowKernel::kResample, in, divide_up(out.size(), jit::kRowThreads), &a);
}

}  // namespace cuop::kernels
