#include "cuop/jit/cuda/kernel_arguments.h"

#include <algorithm>
#include <cstring>

#include "cuop/jit/cuda/kernel_fields.h"
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
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    bytes.resize(bytes.size() + size);
    if (size > 0) std::memcpy(bytes.data() + bytes.size() - size, value, size);
    packed.alignment = std::max(packed.alignment, static_cast<int64_t>(alignment));
  }
  void put_number(int64_t value) {
    const size_t size = loops.is_wide ? 8 : 4;
    put(&value, size, size);  // the low bytes come first
  }

  int64_t inner() const { return loops.sizes[static_cast<size_t>(loops.axes - 1)]; }

  void count() {
    int64_t count = (inner() + loops.width - 1) / loops.width;
    for (int i = 0; i + 1 < loops.axes; ++i) count *= loops.sizes[static_cast<size_t>(i)];
    put_number(count);
  }
  void size() { put_number(inner()); }
  void axis(int i) {
    const int64_t size = loops.sizes[static_cast<size_t>(i)];
    put_number(i == loops.axes - 1 ? size / loops.width : size);
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
    put_number(loops.kept_size());
    put_number(loops.reduced_size() / loops.width);
    put_number(pieces.piece);
    put(&pieces.partials, sizeof(void*), sizeof(void*));
    put(&pieces.arrivals, sizeof(void*), sizeof(void*));
  }
};

}  // namespace

int64_t state_bytes(const Expr& expr) {
  constexpr int64_t kAlignment = 16;  // of the struct State
  int64_t bytes = 0;
  const auto add = [&](int64_t size) { bytes = (bytes + size - 1) / size * size + size; };
  for (const int output : expr.outputs()) {
    const Node& node = expr.node(output);
    if (node.kind != NodeKind::kReduce) continue;
    add(itemsize(detail::accumulator_dtype(node)));
    if (is_position(static_cast<ReduceKind>(node.code))) add(8);
  }
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

LaunchArguments pack_arguments(const Expr& expr, const Bindings& bindings, const Loops& loops,
                               const RowPieces& pieces) {
  FieldPacker packer{bindings, loops, pieces};
  packer.packed.bytes.reserve(256);
  detail::visit_fields(expr, loops, packer);
  const auto alignment = static_cast<size_t>(packer.packed.alignment);
  auto& bytes = packer.packed.bytes;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return std::move(packer.packed);
}

}  // namespace cuop::jit
