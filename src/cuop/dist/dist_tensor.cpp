#include "cuop/dist/dist_tensor.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/header.h"
#include "cuop/dist/rank_device.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

DistTensor::DistTensor(CommunicatorPtr comm, Sharding sharding, const Shape& shape, DType dtype,
                       Tensor local, Device device)
    : comm_(std::move(comm)),
      sharding_(std::move(sharding)),
      shape_(shape),
      dtype_(dtype),
      local_(std::move(local)),
      device_(local_.is_defined() ? local_.device() : device) {
  check_usable(local_);
  if (sharding_.mesh().size() != comm_->size()) {
    throw ShapeError(cat("DistTensor: ", sharding_.mesh(), " is a mesh of ",
                         sharding_.mesh().size(), " ranks, the communicator has ", comm_->size()));
  }
  sharding_.check_fits(shape_, "DistTensor");
  const Box mine = box();
  if (mine.is_void) return;
  if (mine.empty() && !local_.is_defined()) local_ = empty(mine.shape(), dtype_, device_);
  if (!local_.is_defined() || local_.shape() != mine.shape()) {
    throw ShapeError(cat("DistTensor: rank ", comm_->rank(), " holds ",
                         local_.is_defined() ? cat("shape ", local_.shape()) : "no tensor", ", ",
                         sharding_, " of shape ", shape_, " gives it ", mine));
  }
  if (local_.dtype() != dtype_) {
    throw DTypeError(cat("DistTensor: rank ", comm_->rank(), " holds ", local_.dtype(),
                         ", the tensor is ", dtype_));
  }
}

DistTensor DistTensor::from_root(CommunicatorPtr comm, const Tensor& tensor, int root) {
  Headers headers;
  Tensor local;
  prepare_together(*comm, cat("DistTensor.from_root, root ", root), [&] {
    check_rank("DistTensor.from_root", root, comm->size());
    if (comm->rank() != root) return;
    if (!tensor.is_defined()) {
      throw ExecutionError(cat("DistTensor.from_root: no tensor was given on rank ", root));
    }
    check_usable(tensor);
    headers.tensors.push_back(header_of(tensor));
    headers.note = name(tensor.device().type);
    local = tensor;
  });
  headers = broadcast_headers(*comm, headers, root);
  const Header& header = headers.tensors.at(0);
  const Sharding sharding = Sharding::on_rank(Mesh::line(comm->size()), root);
  const Device device = rank_device(*comm, headers.note != name(DeviceType::kCpu));
  if (local.is_defined() && device.is_cpu()) local = to_device(local, device);
  return DistTensor(comm, sharding, header.shape, header.dtype, local, device);
}

DistTensor DistTensor::from_parts(CommunicatorPtr comm, const Tensor& part, int64_t dim) {
  int axis = 0;
  Tensor local;
  prepare_together(*comm, cat("DistTensor.from_parts, dim ", dim), [&] {
    if (!part.is_defined()) throw ExecutionError("DistTensor.from_parts: no tensor was given");
    axis = normalize_axis(dim, part.ndim(), "DistTensor.from_parts");
    check_usable(part);
    local = part;
  });
  const std::vector<Header> headers = gather_headers(*comm, header_of(local));
  Shape shape = headers[0].shape;
  shape[axis] = 0;
  std::vector<int64_t> sizes;
  for (size_t rank = 0; rank < headers.size(); ++rank) {
    Header expected = headers[0];
    expected.shape[axis] = headers[rank].shape.ndim() > axis ? headers[rank].shape[axis] : -1;
    if (!(headers[rank] == expected)) {
      throw ShapeError(cat("DistTensor.from_parts: rank 0 holds ", headers[0], ", rank ", rank,
                           " holds ", headers[rank], "; they may differ along dim ", dim, " only"));
    }
    sizes.push_back(expected.shape[axis]);
    shape[axis] += expected.shape[axis];
  }
  const Sharding sharding =
      Sharding(Mesh::line(comm->size()), split_dim(shape.ndim(), axis)).with_blocks(axis, sizes);
  return DistTensor(comm, sharding, shape, local.dtype(), local);
}

std::string DistTensor::to_string() const {
  return cat("DistTensor", shape_, ' ', dtype_, ' ', sharding_);
}

DistTensor transposed(const DistTensor& x, int64_t dim0, int64_t dim1) {
  const int a = normalize_axis(dim0, x.ndim(), "transpose");
  const int b = normalize_axis(dim1, x.ndim(), "transpose");
  Shape shape = x.shape();
  std::swap(shape[a], shape[b]);
  return DistTensor(x.comm_ptr(), x.sharding().swapped(a, b, x.ndim()), shape, x.dtype(),
                    x.local().is_defined() ? swap_axes(x.local(), a, b) : Tensor(), x.device());
}

DistTensor cast(const DistTensor& x, DType dtype) {
  check_convertible("cast", x.dtype(), dtype);  // on ranks without a part too
  return DistTensor(x.comm_ptr(), x.sharding(), x.shape(), dtype,
                    x.local().is_defined() ? cast(x.local(), dtype) : Tensor(), x.device());
}

DistTensor on_device(const DistTensor& x, Device device) {
  return DistTensor(x.comm_ptr(), x.sharding(), x.shape(), x.dtype(),
                    x.local().is_defined() ? to_device(x.local(), device) : Tensor(), device);
}

}  // namespace cuop::dist
