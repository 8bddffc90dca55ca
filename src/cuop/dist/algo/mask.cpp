#include <array>
#include <numeric>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/algo/pieces.h"
#include "cuop/dist/algo/reshape.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::dist {
namespace {

/// The same on every rank, as shapes and dtypes are.
void check_fits(const DistTensor& x, const DistTensor& mask) {
  if (!x.is_defined() || !mask.is_defined()) {
    throw ExecutionError("index: a distributed tensor is undefined");
  }
  if (&x.comm() != &mask.comm()) {
    throw ExecutionError("index: the mask lies on another communicator than the tensor");
  }
  if (mask.dtype() != DType::kBool) {
    throw DTypeError(
        cat("index: a distributed index is a mask of dtype bool, given ", mask.dtype()));
  }
  bool fits = mask.ndim() <= x.ndim() && (mask.ndim() > 0 || x.ndim() == 0);
  for (int dim = 0; fits && dim < mask.ndim(); ++dim) fits = mask.shape()[dim] == x.shape()[dim];
  if (!fits) {
    throw IndexError(cat("index: a mask of shape ", mask.shape(),
                         " does not fit a distributed tensor of shape ", x.shape(),
                         "; it needs the sizes of the first dimensions, of one or more"));
  }
}

/// The ranks' boxes of x along its first `ndim` dimensions.
std::vector<Box> leading_boxes(const DistTensor& x, int ndim) {
  std::vector<Box> all = x.sharding().owner_boxes(x.shape());
  if (ndim == x.ndim()) return all;
  for (Box& box : all) {
    Box leading = empty_box(ndim);
    for (int dim = 0; dim < ndim; ++dim) leading.set_interval(dim, box.interval(dim));
    box = leading;
  }
  return all;
}

/// This rank's part of a mask of x's first dimensions as x lies; undefined where it has nothing of
/// them.
Tensor bits_beside(const DistTensor& x, const DistTensor& mask) {
  std::vector<Box> boxes = leading_boxes(x, mask.ndim());
  if (mask.sharding().owner_boxes(mask.shape()) == boxes) return mask.local();
  Tensor local;
  bring_pieces(
      "index by a mask", x, mask, {mask.shape(), std::move(boxes)}, [](const Tensor&) {},
      [&](const Tensor& piece) { local = piece; });
  return local;
}

/// Where elements, or rows of them, lie of which the ranks have taken so many each, in their order.
struct Taken {
  Sharding sharding;
  Shape shape;
};
Taken taken(const DistTensor& from, const std::vector<int64_t>& counts) {
  const Sharding& lying = from.sharding();
  const Mesh& mesh = lying.mesh();
  Shape shape = from.shape();
  if (lying.single_rank() >= 0) {
    shape[0] = counts[static_cast<size_t>(lying.single_rank())];
    return {lying, shape};
  }
  const Spec::Axes& axes = lying.spec().axes(0);
  std::vector<int64_t> sizes(static_cast<size_t>(mesh.block_count(axes)));
  for (int rank = 0; rank < mesh.grid_size(); ++rank) {
    sizes[static_cast<size_t>(mesh.block_number(rank, axes))] = counts[static_cast<size_t>(rank)];
  }
  shape[0] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  Sharding made(mesh, lying.spec());
  for (int dim = 1; dim < shape.ndim(); ++dim) {
    if (lying.spec().axes(dim).empty()) continue;
    std::vector<int64_t> blocks;
    for (const Interval& block : blocks_of(lying, from.shape(), dim)) {
      blocks.push_back(block.length());
    }
    made = in_blocks(made, shape, dim, blocks);
  }
  if (!axes.empty()) made = in_blocks(made, shape, 0, sizes);
  return {made, shape};
}

/// By a mask of the first dimensions: those of x, as one, of which rows are taken.
DistTensor taken_rows(const DistTensor& x, const DistTensor& mask) {
  Shape flat{mask.size()};
  for (int dim = mask.ndim(); dim < x.ndim(); ++dim) flat.push_back(x.shape()[dim]);
  const DistTensor values = reshape(x, flat);
  const Tensor bits = bits_beside(values, reshape(mask, {mask.size()}));
  Tensor local;
  std::vector<int64_t> counts;
  run_together(
      x.comm(), cat("index ", x.to_string(), " by the mask ", mask.to_string()),
      [&] {
        Shape shape = values.box().shape();
        shape[0] = bits.is_defined() ? count_nonzero(bits) : 0;
        if (values.box().empty()) {
          local = empty(shape, x.dtype(), x.device());
        } else {
          const std::array<Index, 1> index{bits};
          local = cuop::get_item(values.local(), index);
        }
      },
      [&] { counts = gather_values(x.comm(), local.shape()[0]); });
  const Taken result = taken(values, counts);
  return DistTensor(x.comm_ptr(), result.sharding, result.shape, x.dtype(), local, x.device());
}

}  // namespace

DistTensor get_item(const DistTensor& x, const DistTensor& mask) {
  check_fits(x, mask);
  if (mask.ndim() < x.ndim()) return taken_rows(x, mask);
  const Shape flat{x.size()};
  const DistTensor mask_there(x.comm_ptr(), x.sharding(), x.shape(), mask.dtype(),
                              bits_beside(x, mask), x.device());
  const DistTensor values = reshape(x, flat), bits = reshape(mask_there, flat);
  Tensor local;
  std::vector<int64_t> counts;
  run_together(
      x.comm(), cat("index ", x.to_string(), " by a mask"),
      [&] {
        local = values.box().empty() ? empty({0}, x.dtype(), x.device())
                                     : masked_select(values.local(), bits.local());
      },
      [&] { counts = gather_values(x.comm(), local.size()); });
  const Taken result = taken(values, counts);
  return DistTensor(x.comm_ptr(), result.sharding, result.shape, x.dtype(), local, x.device());
}

void set_item(const DistTensor& x, const DistTensor& mask, const DistOperand& value) {
  static constexpr const char* kWho = "index assignment";
  check_fits(x, mask);
  Tensor element;
  if (const Scalar* number = value.number()) {
    element = scalar_tensor(kWho, *number, x.dtype(), x.device());
  } else {
    const DistTensor& given = *value.tensor();
    if (given.is_defined() && given.size() != 1) {
      throw ShapeError(cat(kWho, ": a value of shape ", given.shape(),
                           " for the elements of a mask; needed is one element"));
    }
    element = cast(cuop::reshape(whole(given, kWho), {}), x.dtype());
  }
  const Tensor bits = bits_beside(x, mask);
  if (x.box().empty()) return;
  check_writable(kWho, x.local());
  const std::array<Index, 1> index{bits};
  cuop::set_item(x.local(), index, element);
}

}  // namespace cuop::dist
