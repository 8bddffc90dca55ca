// A tensor that lies in parts over the ranks of a communicator. Every rank holds the part that the
// sharding's owner box gives it; a DistTensor is a handle, copying it copies nothing.
//
// Worked example, 3 ranks, a 5 x 4 tensor on rank 0:
//   DistTensor x = DistTensor::from_root(comm, tensor, 0);        // [0:5] on 0, nothing on 1, 2
//   DistTensor rows = redistribute(x, {mesh, split_dim(2, 0)});   // [0:2], [2:4], [4:5]
//   Tensor whole = gather(rows, 0);                               // [0:5] on 0, undefined on 1, 2
// (redistribute and gather are in exec/redistribute.h)
#pragma once

#include <memory>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/sharding.h"

namespace cuop::dist {

using CommunicatorPtr = std::shared_ptr<Communicator>;

class DistTensor {
 public:
  DistTensor() = default;
  /// `local` must have the shape of this rank's owner box and the dtype; it may be undefined where
  /// the box is empty, and is empty on `device` then. Not collective. ShapeError, DTypeError
  /// otherwise.
  DistTensor(CommunicatorPtr comm, Sharding sharding, const Shape& shape, DType dtype, Tensor local,
             Device device = kCpu);

  /// Collective. `tensor` is given on rank `root` and ignored elsewhere; its shape and dtype become
  /// known to all. Of a tensor on a GPU the other ranks' parts, empty here, are on theirs
  /// (rank_device). An undefined tensor on the root raises on every rank.
  static DistTensor from_root(CommunicatorPtr comm, const Tensor& tensor, int root = 0);
  /// Collective. Parts that the ranks hold already, stacked along `dim` in rank order; they may
  /// differ in size there and must be equal in all else.
  static DistTensor from_parts(CommunicatorPtr comm, const Tensor& part, int64_t dim = 0);

  bool is_defined() const { return comm_ != nullptr; }
  Communicator& comm() const { return *comm_; }
  const CommunicatorPtr& comm_ptr() const { return comm_; }
  const Sharding& sharding() const { return sharding_; }
  const Shape& shape() const { return shape_; }
  int64_t shape(int axis) const { return shape_[axis]; }
  int ndim() const { return shape_.ndim(); }
  int64_t size() const { return element_count(shape_); }
  DType dtype() const { return dtype_; }
  /// This rank's part; undefined only where a tensor of no dimension lies elsewhere.
  const Tensor& local() const { return local_; }
  /// Where this rank has its part, and makes those of results.
  Device device() const { return device_; }
  Box box() const { return sharding_.owner_box(shape_, comm_->rank()); }

  /// As DistTensor(5, 4) float32 P("r", None) on Mesh(r=3).
  std::string to_string() const;

 private:
  CommunicatorPtr comm_;
  Sharding sharding_ = Sharding::replicated(Mesh::line(1));
  Shape shape_;
  DType dtype_ = DType::kFloat32;
  Tensor local_;
  Device device_;
};

/// Two dimensions exchanged, no data moved: views of the parts under the exchanged sharding.
DistTensor transposed(const DistTensor& x, int64_t dim0 = 0, int64_t dim1 = 1);
/// Converted where it lies.
DistTensor cast(const DistTensor& x, DType dtype);
/// This rank's part copied to `device`, if it is not there.
DistTensor on_device(const DistTensor& x, Device device);

}  // namespace cuop::dist
