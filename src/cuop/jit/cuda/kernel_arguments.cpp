#include "cuop/jit/cuda/kernel_arguments.h"

#include <algorithm>
#include <cstring>

#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/kernel_fields.h"
#include "cuop/jit/kernels/divisor.h"
#include "cuop/jit/parameter.h"

namespace cuop::jit {

namespace {

struct FieldPacker {
  const Bindings& bindings;
  const Loops& loops;
  const RowPieces& pieces;
  LaunchArguments packed = {};

  void put(const void* value, size_t size, size_t alignment) {
    auto& bytes = packed.bytes;
    bytes.resize(round_up(bytes.size(), alignment));
    bytes.resize(bytes.size() + size);
    if (size > 0) std::memcpy(bytes.data() + bytes.size() - size, value, size);
    packed.alignment = std::max(packed.alignment, static_cast<int64_t>(alignment));
  }
  void put_number(int64_t value) {
    const size_t size = loops.is_wide ? 8 : 4;
    put(&value, size, size);  // the low bytes come first
  }

  void count() { put_number(loops.packs()); }
  void size() { put_number(loops.inner_size()); }
  void axis(int i) {
    const int64_t size = loops.sizes[static_cast<size_t>(i)];
    const int64_t taken = i == loops.inner() ? size / loops.width : size;
    if (loops.is_wide) return put_number(taken);
    const Divisor divisor = make_divisor(static_cast<uint32_t>(std::max<int64_t>(1, taken)));
    put(&divisor, sizeof(divisor), alignof(Divisor));
  }
  void pointer(size_t, const Walker& walker) { put(&walker.data, sizeof(void*), sizeof(void*)); }
  void stride(size_t, const Walker& walker, size_t axis) { put_number(walker.strides[axis]); }
  void parameter(const Node& node) {
    alignas(16) std::byte value[16] = {};
    store_parameter(bindings.parameters[static_cast<size_t>(node.code)], node.dtype, value);
    const auto size = static_cast<size_t>(itemsize(compute_dtype(node.dtype)));
    put(value, size, size);
  }
  void share() {
    put(nullptr, 0, 8);
    put_number(loops.rows());
    put_number(loops.row_length());
    put_number(pieces.piece);
    put(&pieces.partials, sizeof(void*), sizeof(void*));
    put(&pieces.arrivals, sizeof(void*), sizeof(void*));
  }
};

}  // namespace

LaunchArguments pack_arguments(const Expr& expr, const Bindings& bindings, const Loops& loops,
                               const RowPieces& pieces) {
  FieldPacker packer{bindings, loops, pieces};
  packer.packed.bytes.reserve(256);
  detail::visit_fields(expr, loops, packer);
  const auto alignment = static_cast<size_t>(packer.packed.alignment);
  auto& bytes = packer.packed.bytes;
  bytes.resize(round_up(bytes.size(), alignment));
  return std::move(packer.packed);
}

}  // namespace cuop::jit
