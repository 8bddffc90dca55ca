#include "cuop/ops/create/create.h"

#include <algorithm>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
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
  visit_dtype(AllTypes{}, dtype, who, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *one.data<T>() = convert_scalar<T>(value);
  });
  if (device.is_cpu()) return one;
  const Tensor result = empty({}, dtype, device);
  set_every(result, value, one);
  return result;
}

Tensor eye(int64_t rows, int64_t columns, int64_t k, DType dtype, Device device) {
  const trace::Span span("eye", "op");
  checked_multiply(checked_multiply(rows, columns, "eye"), itemsize(dtype), "eye");
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

}  // namespace cuop
