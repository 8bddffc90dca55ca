#include "cuop/ops/create/create.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/ops/convert.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr int64_t kGrain = 1 << 16;

/// Fills a new CPU tensor with value(i), i the row-major index, converted once to `dtype`. The
/// caller has checked that the values fit.
template <class Value>
Tensor generate(const char* who, int64_t count, DType dtype, Device device, Value value) {
  Tensor result = empty({count}, dtype, kCpu);
  visit_dtype(AllTypes{}, dtype, who, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = result.data<T>();
    backend::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = convert<T>(value(i));
    });
  });
  return to_device(result, device);
}

/// The same for values that grow or fall all the way: their ends are checked.
template <class Value>
Tensor generate_monotone(const char* who, int64_t count, DType dtype, Device device, Value value) {
  if (count > 0) {
    Scalar(value(0)).check_fits(who, dtype);
    Scalar(value(count - 1)).check_fits(who, dtype);
  }
  return generate(who, count, dtype, device, value);
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

Tensor arange_integers(Wide first, Wide stop, Wide by, DType dtype, Device device) {
  const Wide span = by > 0 ? stop - first : first - stop, pace = by > 0 ? by : -by;
  const Wide wanted = span <= 0 ? 0 : (span - 1) / pace + 1;
  if (wanted >> 62 != 0) {
    throw ShapeError(cat("arange: ", static_cast<double>(wanted), " elements are too many"));
  }
  const auto count = static_cast<int64_t>(wanted);
  const Wide last = first + (wanted - 1) * by;
  if (count > 0) {
    to_scalar(first).check_fits("arange", dtype);
    to_scalar(last).check_fits("arange", dtype);
  }
  if (std::max(first, last) <= kInt64Max && span <= kInt64Max) {  // the usual case is the quick one
    const auto narrow_first = static_cast<int64_t>(first), narrow_by = static_cast<int64_t>(by);
    return generate("arange", count, dtype, device,
                    [=](int64_t i) { return narrow_first + i * narrow_by; });
  }
  return generate("arange", count, dtype, device, [=](int64_t i) { return first + i * by; });
}

/// tensor <- the element of `one`, which is on the host.
void set_every(const Tensor& tensor, const Tensor& one) {
  const Device device = tensor.device();
  if (!device.is_cpu() && tensor.is_contiguous()) {
    backend::runtime(device).fill(tensor.data(), one.data(), itemsize(tensor.dtype()),
                                  tensor.size(), current_stream(device));
    return;
  }
  copy_into(tensor, to_device(one, device));
}

}  // namespace

Tensor empty(const Shape& shape, DType dtype, Device device) {
  backend::runtime(device);  // an absent device is said here, with the reason
  const Layout layout = contiguous_layout(shape);
  const int64_t nbytes = checked_multiply(layout.size(), itemsize(dtype), "empty");
  return {memory::allocate_storage(nbytes, device), layout, dtype};
}

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  Tensor result = empty(shape, dtype, device);
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
  return full(shape, 1, dtype, device);
}

Tensor full(const Shape& shape, Scalar value, DType dtype, Device device) {
  const Tensor one = scalar_tensor("full", value, dtype);
  Tensor result = empty(shape, dtype, device);
  set_every(result, one);
  return result;
}

void fill(const Tensor& tensor, Scalar value) {
  check_writable("fill", tensor);
  set_every(tensor, scalar_tensor("fill", value, tensor.dtype()));
}

Tensor scalar_tensor(const char* who, const Scalar& value, DType dtype, Device device) {
  value.check_fits(who, dtype);
  Tensor one = empty({}, dtype, kCpu);
  visit_dtype(AllTypes{}, dtype, who, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *one.data<T>() = convert_scalar<T>(value);
  });
  return to_device(one, device);
}

Tensor eye(int64_t rows, int64_t columns, int64_t k, DType dtype, Device device) {
  Tensor result = zeros({rows, columns}, dtype, device);
  const int64_t row = std::max<int64_t>(0, -k), column = std::max<int64_t>(0, k);
  const int64_t length = std::min(rows - row, columns - column);
  if (length <= 0) return result;
  const Layout diagonal{{length}, {columns + 1}, row * columns + column};
  fill(result.with_layout(diagonal), 1);
  return result;
}

Tensor arange(Scalar start, Scalar stop, Scalar step, DType dtype, Device device) {
  if (start.is_complex() || stop.is_complex() || step.is_complex()) {
    throw DTypeError("arange: start, stop and step must be real");
  }
  if (step.to_double() == 0.0) throw ExecutionError("arange: step must not be 0");
  if (!start.is_floating() && !stop.is_floating() && !step.is_floating()) {
    return arange_integers(to_wide(start), to_wide(stop), to_wide(step), dtype, device);
  }
  const double first = start.to_double(), by = step.to_double();
  const double count = std::ceil((stop.to_double() - first) / by);
  if (!(count < 0x1p62)) {
    throw ShapeError(cat("arange: ", count, " elements are too many"));
  }
  return generate_monotone("arange", std::max<int64_t>(0, static_cast<int64_t>(count)), dtype,
                           device, [=](int64_t i) { return first + static_cast<double>(i) * by; });
}

Tensor linspace(double start, double stop, int64_t count, DType dtype, bool endpoint,
                Device device) {
  if (count < 0) throw ShapeError(cat("linspace: num must not be negative, given ", count));
  const int64_t intervals = endpoint ? count - 1 : count;
  const double step = intervals > 0 ? (stop - start) / static_cast<double>(intervals) : 0.0;
  const bool is_whole = is_integer(dtype);  // as NumPy: rounded down, not towards zero
  return generate_monotone("linspace", count, dtype, device, [=](int64_t i) {
    const double value =
        endpoint && i == count - 1 && count > 1 ? stop : start + static_cast<double>(i) * step;
    return is_whole ? std::floor(value) : value;
  });
}

Tensor logspace(double start, double stop, int64_t count, double base, DType dtype, bool endpoint,
                Device device) {
  const Tensor exponents = linspace(start, stop, count, DType::kFloat64, endpoint);
  const double* values = exponents.data<double>();
  const Tensor powers = generate("logspace", count, DType::kFloat64, kCpu,
                                 [=](int64_t i) { return std::pow(base, values[i]); });
  return to_device(cast_exactly("logspace", powers, dtype), device);
}

std::vector<Tensor> meshgrid(std::span<const Tensor> axes, std::string_view indexing) {
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

Tensor from_memory(void* data, const Layout& layout, DType dtype, Device device,
                   std::shared_ptr<void> owner, bool is_read_only) {
  checked_multiply(layout.size(), itemsize(dtype), "from_memory");
  // The storage begins at the lowest address the layout touches, so that negative strides are
  // inside.
  const Extent touched = extent(layout);
  auto* first = static_cast<std::byte*>(data) + touched.begin * itemsize(dtype);
  Layout placed = layout;
  placed.offset = layout.offset - touched.begin;
  const int64_t nbytes = (touched.end - touched.begin) * itemsize(dtype);
  return {std::make_shared<Storage>(first, nbytes, device, std::move(owner), is_read_only), placed,
          dtype};
}

Tensor detail::from_bytes(const Shape& shape, DType dtype, const void* data, int64_t count) {
  if (element_count(shape) != count) {
    throw ShapeError(cat("from_values: ", count, " values were given for shape ", shape));
  }
  Tensor result = empty(shape, dtype, kCpu);
  backend::runtime(kCpu).copy(result.data(), data, result.nbytes(), {});
  return result;
}

}  // namespace cuop
