#include "cuop/ops/create/empty.h"

#include <cstddef>
#include <utility>

#include "cuop/memory/current.h"

namespace cuop {

Tensor empty(const Shape& shape, DType dtype, Device device) {
  return empty_laid_out(contiguous_layout(shape), dtype, device);
}

Tensor empty_laid_out(const Layout& layout, DType dtype, Device device) {
  const int64_t nbytes = checked_multiply(layout.size(), itemsize(dtype));
  return {memory::allocate_storage(nbytes, device), layout, dtype};
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

Tensor seen_as(const Tensor& tensor, DType dtype) {
  return from_memory(tensor.data(), contiguous_layout({tensor.nbytes() / itemsize(dtype)}), dtype,
                     tensor.device(), tensor.storage());
}

}  // namespace cuop
