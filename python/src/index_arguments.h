// What stands between the brackets of x[...], and tensors as sequences.
#pragma once

#include <vector>

#include "bindings.h"
#include "cuop/core/error.h"
#include "cuop/ops/index/indexing.h"

namespace cuop::python {

/// An integer, slice, None, ..., mask or index array, or a tuple of them; what becomes a tensor is
/// made on `device`.
std::vector<Index> to_indices(nb::handle key, Device device);

/// x[0], x[1], ... of a tensor or a distributed one.
template <class T>
nb::object iterate(nb::handle self) {
  if (nb::cast<const T&>(self).ndim() == 0) {
    throw DTypeError("iter: a tensor of 0 dimensions cannot be iterated over");
  }
  return nb::steal(PySeqIter_New(self.ptr()));
}
/// Of its first dimension.
template <class T>
int64_t length_of(const T& x) {
  if (x.ndim() == 0) throw DTypeError("len: a tensor of 0 dimensions has no length");
  return x.shape(0);
}

}  // namespace cuop::python
