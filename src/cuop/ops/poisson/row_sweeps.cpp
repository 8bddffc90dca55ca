#include "cuop/ops/poisson/row_sweeps.h"

#include <algorithm>

#include "cuop/backend/slot.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/output.h"
#include "cuop/ops/poisson/row_kernels.h"

namespace cuop {
namespace {

constexpr backend::Slot kRelax{"relax_rows", &kernels::relax_cpu, &kernels::relax_cuda};
constexpr backend::Slot kResidual{"residual_rows", &kernels::five_point_residual_cpu,
                                  &kernels::five_point_residual_cuda};
constexpr backend::Slot kDots{"dots_of_rows", &kernels::row_dots_cpu, &kernels::row_dots_cuda};
constexpr backend::Slot kResample{"resample_rows", &kernels::resample_cpu, &kernels::resample_cuda};

void check_rows(const char* who, const char* name, const Tensor& x, int64_t rows, int64_t width,
                const Tensor& like) {
  if (x.ndim() != 2 || x.shape(0) != rows || x.shape(1) != width) {
    throw ShapeError(
        cat(who, ": ", name, " has shape ", x.shape(), ", needed is ", Shape{rows, width}));
  }
  if (x.dtype() != like.dtype()) {
    throw DTypeError(cat(who, ": ", name, " is ", x.dtype(), ", needed is ", like.dtype()));
  }
  if (!x.is_contiguous()) {
    throw ExecutionError(
        cat(who, ": ", name, " has gaps between its elements, which is not allowed"));
  }
  common_device(who, {&x, &like});
}

void check_grid(const char* who, const FivePoint& op, const Tensor& u) {
  visit_dtype(FloatTypes{}, u.dtype(), who, [](auto) {});
  check_rows(who, "u", u, u.ndim() > 0 ? u.shape(0) : 0, op.width, u);
}

}  // namespace

void relax_rows(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
                const std::vector<int>& colours, double omega) {
  const trace::Span span("relax_rows", "op");
  check_grid("relax_rows", op, u);
  check_rows("relax_rows", "b", b, std::max<int64_t>(0, u.shape(0) - 2), op.width, u);
  check_writable("relax_rows", u);
  check_no_overlap("relax_rows", u, b, "b");
  if (b.size() > 0) kRelax(u.device(), op, u, b, first, colours, omega);
}

Tensor residual_rows(const FivePoint& op, const Tensor& padded, const Tensor& b, int64_t first,
                     const Tensor& out) {
  const trace::Span span("residual_rows", "op");
  constexpr const char* kWho = "residual_rows";
  check_grid(kWho, op, padded);
  const int64_t height = padded.shape(0) - 2;
  if (b.is_defined()) check_rows(kWho, "b", b, height, op.width, padded);
  if (out.is_defined()) {
    check_rows(kWho, "out", out, height, op.width, padded);
    check_writable(kWho, out);
    check_no_overlap(kWho, out, padded, "u");
  }
  const Tensor squares = zeros({std::max<int64_t>(0, height)}, DType::kFloat64, padded.device());
  if (squares.size() * op.width > 0) {
    kResidual(padded.device(), op, padded, b, first, out, squares);
  }
  return squares;
}

Tensor dots_of_rows(const Tensor& x, const Tensor& y) {
  constexpr const char* kWho = "dots_of_rows";
  visit_dtype(FloatTypes{}, x.dtype(), kWho, [](auto) {});
  check_rows(kWho, "x", x, x.ndim() > 0 ? x.shape(0) : 0, x.ndim() > 1 ? x.shape(1) : 0, x);
  check_rows(kWho, "y", y, x.shape(0), x.shape(1), x);
  const Tensor dots = zeros({x.shape(0)}, DType::kFloat64, x.device());
  if (x.size() > 0) kDots(x.device(), x, y, dots);
  return dots;
}

BandTable band_table(const Bands& bands, int64_t low, int64_t high, int64_t origin, DType dtype,
                     Device device) {
  const auto from = static_cast<size_t>(low), count = static_cast<size_t>(high - low);
  const auto taps = static_cast<size_t>(bands.taps);
  std::vector<int64_t> first(bands.first.begin() + low, bands.first.begin() + high);
  for (int64_t& each : first) each -= origin;
  const std::span<const double> weights(bands.weights.data() + from * taps, count * taps);
  return {bands.taps,
          to_device(from_values<int64_t>({high - low}, std::span<const int64_t>(first)), device),
          to_device(cast(from_values<double>({high - low, bands.taps}, weights), dtype), device)};
}

void resample_rows(const Tensor& in, const BandTable& down, const BandTable& across,
                   const Tensor& out, bool is_added) {
  const trace::Span span("resample_rows", "op");
  constexpr const char* kWho = "resample_rows";
  visit_dtype(FloatTypes{}, in.dtype(), kWho, [](auto) {});
  check_rows(kWho, "in", in, in.ndim() > 0 ? in.shape(0) : 0, in.ndim() > 1 ? in.shape(1) : 0, in);
  check_rows(kWho, "out", out, down.first.shape(0), across.first.shape(0), in);
  for (const BandTable* table : {&down, &across}) {
    check_rows(kWho, "weights", table->weights, table->first.shape(0), table->taps, in);
  }
  if (across.taps > 4) {
    throw ExecutionError(cat(kWho, ": ", across.taps, " taps were given, allowed are 1 to 4"));
  }
  check_writable(kWho, out);
  check_no_overlap(kWho, out, in, "in");
  if (out.size() > 0) kResample(in.device(), in, down, across, out, is_added);
}

}  // namespace cuop
