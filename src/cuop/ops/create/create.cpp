#include "cuop/ops/create/create.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create_kernels.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr int64_t kGrain = 1 << 16;

/// tensor <- value, whose only element of the tensor's dtype is `one`, on the host.
void set_every(const Tensor& tensor, const Scalar& value, const Tensor& one) {
  const Device device = tensor.device();
  if (tensor.size() == 0) return;
  if (device.is_cpu()) return copy_into(tensor, one);
  if (!tensor.is_contiguous()) return kernels::fill_strided_cuda(tensor, value);
  backend::runtime(device).fill(tensor.data(), one.data(), itemsize(tensor.dtype()), tensor.size(),
                                current_stream(device));
}

constexpr backend::Slot kFillWhole{"arange", &kernels::fill_whole_cpu, &kernels::fill_whole_cuda};
constexpr backend::Slot kFillReal{"linspace", &kernels::fill_real_cpu, &kernels::fill_real_cuda};

constexpr backend::Slot kFillPowers{"logspace", &kernels::fill_powers_cpu,
                                    &kernels::fill_powers_cuda};

/// Sequences grow or fall all the way, so their ends are all there is to check.
void check_ends(const char* who, Scalar first, Scalar last, DType dtype) {
  first.check_fits(who, dtype);
  last.check_fits(who, dtype);
}

/// Holds the sums and differences of all that int64 and uint64 hold.
__extension__ typedef __int128 Wide;
constexpr Wide kInt64Max = std::numeric_limits<int64_t>::max();

Wide to_wide(const Scalar& value) {
  return value.is_large() ? static_cast<Wide>(value.to_bits64())
                          : static_cast<Wide>(value.to_int64());
}

Scalar to_scalar(Wide value) {
  return value > kInt64Max ? Scalar(static_cast<uint64_t>(value))
                           : Scalar(static_cast<int64_t>(value));
}

/// Of arange: ShapeError for more than their bytes can be counted.
void check_count(double elements, DType dtype) {
  if (elements < static_cast<double>(kInt64Max / itemsize(dtype))) return;
  throw ShapeError(cat("arange: ", elements, " elements are too many"));
}

Tensor arange_integers(Wide first, Wide stop, Wide by, DType dtype, Device device) {
  const Wide span = by > 0 ? stop - first : first - stop, pace = by > 0 ? by : -by;
  const Wide wanted = span <= 0 ? 0 : (span - 1) / pace + 1;
  check_count(static_cast<double>(wanted), dtype);
  const Wide last = first + (wanted - 1) * by;
  if (wanted > 0) check_ends("arange", to_scalar(first), to_scalar(last), dtype);
  jit::WholeSequence sequence{static_cast<uint64_t>(first), static_cast<uint64_t>(by)};
  if (wanted > 0 && std::max(first, last) > kInt64Max) {
    // How many numbers from the larger end on int64 does not hold.
    const Wide large = (std::max(first, last) - kInt64Max - 1) / pace + 1;
    const Wide count = std::min(wanted, large);
    sequence.large_begin = static_cast<int64_t>(by > 0 ? wanted - count : 0);
    sequence.large_end = static_cast<int64_t>(by > 0 ? wanted : count);
  }
  const Tensor result = empty({static_cast<int64_t>(wanted)}, dtype, device);
  kFillWhole(device, result, sequence);
  return result;
}

Tensor fill_real(const char* who, int64_t count, const jit::RealSequence& sequence, DType dtype,
                 Device device) {
  if (count > 0) check_ends(who, sequence.value(0), sequence.value(count - 1), dtype);
  checked_multiply(count, itemsize(dtype), who);
  const Tensor result = empty({count}, dtype, device);
  kFillReal(device, result, sequence);
  return result;
}

jit::RealSequence evenly_spaced(double start, double stop, int64_t count, bool endpoint) {
  const int64_t intervals = endpoint ? count - 1 : count;
  jit::RealSequence sequence{start, 0.0};
  if (intervals > 0) sequence.by = (stop - start) / static_cast<double>(intervals);
  if (endpoint && count > 1) {
    sequence.given_place = count - 1;
    sequence.given = stop;
  }
  return sequence;
}

/// The logarithm by the library's, made more accurate by one step of Newton's method.
jit::PowerBase power_base(double base) {
  const double size = std::abs(base);
  jit::PowerBase result{{}, size, size, 0, std::signbit(base) ? 1 : 0};
  if (size == 0.0 || !std::isfinite(size)) {
    result.is_special = 1;
    if (std::isnan(size)) {
      result.is_negative = 0;
    } else {
      result.below = 1.0 / size;
    }
    return result;
  }
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent), log = std::log2(fraction);
  const double whole = std::rint(log);
  const jit::TwoDoubles seen = jit::exp2_minus_1({log - whole, 0.0});
  const double left =
      ((std::ldexp(fraction, -static_cast<int>(whole)) - 1.0) - seen.high) - seen.low;
  const double correction = left / ((1.0 + seen.high) * 0x1.62e42fefa39efp-1);  // log 2
  jit::TwoDoubles sum{log, 0.0};
  if (exponent != 0) sum = jit::quick_sum(exponent, log);
  result.log2 = jit::quick_sum(sum.high, sum.low + correction);
  return result;
}

/// As fill_real. Powers of a positive base grow or fall all the way, others must all be checked.
void check_powers(const jit::PowerSequence& sequence, int64_t count, DType dtype) {
  if (count == 0 || !is_integer(dtype)) return;
  if (sequence.base.is_negative == 0) {
    return check_ends("logspace", sequence.value(0), sequence.value(count - 1), dtype);
  }
  for (int64_t i = 0; i < count; ++i) Scalar(sequence.value(i)).check_fits("logspace", dtype);
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  trace::Span span("zeros", "op");
  Tensor result = empty(shape, dtype, device);
  span.add_bytes(result.nbytes());
  const Stream stream = current_stream(device);
  if (!device.is_cpu()) {
    backend::runtime(device).fill_bytes(result.data(), 0, result.nbytes(), stream);
    return result;
  }
  auto* bytes = static_cast<std::byte*>(result.data());
  backend::parallel_for(result.nbytes(), 16 * kGrain, [&](int64_t begin, int64_t end) {
    backend::runtime(device).fill_bytes(bytes + begin, 0, end - begin, stream);
  });
  return result;
}

Tensor ones(const Shape& shape, DType dtype, Device device) {
  const trace::Span span("ones", "op");
  return full(shape, 1, dtype, device);
}

Tensor full(const Shape& shape, Scalar value, DType dtype, Device device) {
  trace::Span span("full", "op");
  const Tensor one = scalar_tensor("full", value, dtype);
  Tensor result = empty(shape, dtype, device);
  span.add_bytes(result.nbytes());
  set_every(result, value, one);
  return result;
}

void fill(const Tensor& tensor, Scalar value) {
  trace::Span span("fill", "op");
  check_writable("fill", tensor);
  span.add_bytes(tensor.nbytes());
  set_every(tensor, value, scalar_tensor("fill", value, tensor.dtype()));
}

Tensor scalar_tensor(const char* who, const Scalar& value, DType dtype, Device device) {
  value.check_fits(who, dtype);
  Tensor one = empty({}, dtype, kCpu);
  visit_dtype(AllTypes{}, dtype, who,
              [&]<class T>(TypeTag<T>) { *one.data<T>() = convert_scalar<T>(value); });
  if (device.is_cpu()) return one;
  const Tensor result = empty({}, dtype, device);
  set_every(result, value, one);
  return result;
}

Tensor eye(int64_t rows, int64_t columns, int64_t k, DType dtype, Device device) {
  const trace::Span span("eye", "op");
  if (rows < 0 || columns < 0) {
    throw ShapeError(cat("eye: n is ", rows, " and m ", columns, "; they must not be negative"));
  }
  checked_multiply(checked_multiply(rows, columns, "eye: n, m"), itemsize(dtype), "eye: n, m");
  Tensor result = zeros({rows, columns}, dtype, device);
  const int64_t row = std::max<int64_t>(0, -k), column = std::max<int64_t>(0, k);
  const int64_t length = std::min(rows - row, columns - column);
  if (length <= 0) return result;
  const Layout diagonal{{length}, {columns + 1}, row * columns + column};
  fill(result.with_layout(diagonal), 1);
  return result;
}

std::vector<Tensor> meshgrid(std::span<const Tensor> axes, std::string_view indexing) {
  const trace::Span span("meshgrid", "op");
  if (indexing != "xy" && indexing != "ij") {
    throw ExecutionError(cat("meshgrid: indexing '", indexing, "' is not 'xy' or 'ij'"));
  }
  const int ndim = static_cast<int>(axes.size());
  const auto position = [&](int i) { return indexing == "xy" && ndim > 1 && i < 2 ? 1 - i : i; };
  Shape shape = Dims::filled(ndim, 1);
  for (int i = 0; i < ndim; ++i) {
    const Tensor& axis = axes[static_cast<size_t>(i)];
    if (axis.ndim() > 1) {
      throw ShapeError(cat("meshgrid: axis ", i, " has shape ", axis.shape(), ", needed is 1-D"));
    }
    shape[position(i)] = axis.size();
  }
  std::vector<Tensor> grids;
  for (int i = 0; i < ndim; ++i) {
    const Tensor& axis = axes[static_cast<size_t>(i)];
    Layout line{Dims::filled(ndim, 1), Dims::filled(ndim, 0), axis.layout().offset};
    line.shape[position(i)] = axis.size();
    line.strides[position(i)] = axis.ndim() == 1 ? axis.strides()[0] : 0;
    grids.push_back(clone(axis.with_layout(broadcast_to(line, shape, "meshgrid"))));
  }
  return grids;
}

Tensor detail::from_bytes(const Shape& shape, DType dtype, const void* data, int64_t count) {
  if (element_count(shape) != count) {
    throw ShapeError(cat("from_values: ", count, " values were given for shape ", shape));
  }
  Tensor result = empty(shape, dtype, kCpu);
  backend::runtime(kCpu).copy(result.data(), data, result.nbytes(), {});
  return result;
}

Tensor arange(Scalar start, Scalar stop, Scalar step, DType dtype, Device device) {
  const trace::Span span("arange", "op");
  if (start.is_complex() || stop.is_complex() || step.is_complex()) {
    throw DTypeError("arange: start, stop and step must be real");
  }
  if (step.to_double() == 0.0) throw ExecutionError("arange: step must not be 0");
  if (!start.is_floating() && !stop.is_floating() && !step.is_floating()) {
    return arange_integers(to_wide(start), to_wide(stop), to_wide(step), dtype, device);
  }
  const double first = start.to_double(), by = step.to_double();
  const double count = std::ceil((stop.to_double() - first) / by);
  check_count(count, dtype);
  return fill_real("arange", std::max<int64_t>(0, static_cast<int64_t>(count)), {first, by}, dtype,
                   device);
}

Tensor linspace(double start, double stop, int64_t count, DType dtype, bool endpoint,
                Device device) {
  const trace::Span span("linspace", "op");
  if (count < 0) throw ShapeError(cat("linspace: num must not be negative, given ", count));
  jit::RealSequence sequence = evenly_spaced(start, stop, count, endpoint);
  sequence.is_floored = is_integer(dtype) ? 1 : 0;  // as NumPy: rounded down, not towards zero
  return fill_real("linspace", count, sequence, dtype, device);
}

Tensor logspace(double start, double stop, int64_t count, double base, DType dtype, bool endpoint,
                Device device) {
  const trace::Span span("logspace", "op");
  if (count < 0) throw ShapeError(cat("logspace: num must not be negative, given ", count));
  const jit::PowerSequence sequence{power_base(base), evenly_spaced(start, stop, count, endpoint)};
  check_powers(sequence, count, dtype);
  const Tensor result = empty({count}, dtype, device);
  kFillPowers(device, result, sequence);
  return result;
}

}  // namespace cuop
