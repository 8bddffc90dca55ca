#include "cuop/dist/algo/fft.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/map.h"

namespace cuop::dist {
namespace {

/// A transform that needs some dimensions whole: shape and dtype of its result, and the local work.
struct Transform {
  std::string name;
  std::function<std::vector<int>(int ndim)> whole_dims;
  std::function<Shape(const Shape&)> result_shape;
  bool is_real_result = false;
  bool wants_real_input = false;
  std::function<Tensor(const Tensor&)> compute;
};

/// The box of x: whole along the transformed dimensions, as the result's elsewhere.
Box needed_box(const Box& output, const Shape& x, const std::vector<int>& whole) {
  Box box = output;
  for (const int dim : whole) box.set_interval(dim, {0, x[dim]});
  return box;
}

std::vector<MapChoice> choices(const Placement& x, const Shape& result,
                               const std::vector<int>& whole) {
  std::vector<MapChoice> found;
  const Sharding& as_is = x.sharding;
  const bool is_whole_there = std::all_of(whole.begin(), whole.end(),
                                          [&](int dim) { return as_is.spec().axes(dim).empty(); });
  if (is_whole_there && as_is.single_rank() < 0) found.push_back({"keep", as_is});
  int longest = -1;
  for (int dim = 0; dim < result.ndim(); ++dim) {
    if (std::find(whole.begin(), whole.end(), dim) != whole.end()) continue;
    if (longest < 0 || result[dim] > result[longest]) longest = dim;
  }
  if (longest >= 0) {
    found.push_back({"batch", split_over_ranks(as_is.mesh().size(), result.ndim(), longest)});
  } else {
    found.push_back({"one_rank", Sharding::on_rank(as_is.mesh(), 0)});
  }
  return found;
}

Operation operation(const std::string& text, const Transform& transform) {
  return map_operation(text, {"x"}, [transform](const auto& inputs, const std::string&) {
    const Placement& x = inputs.at(0);
    const std::vector<int> whole = transform.whole_dims(x.shape.ndim());
    if (transform.wants_real_input && is_complex(x.dtype)) {
      throw DTypeError(cat(transform.name, ": real input is needed, given ", x.dtype));
    }
    Mapping mapping;
    mapping.op = transform.name;
    mapping.shape = transform.result_shape(x.shape);
    const DType real = compute_dtype(to_inexact(real_dtype(x.dtype)));
    mapping.dtype = transform.is_real_result ? real : complex_dtype(real);
    mapping.needed = [shape = x.shape, whole](size_t, const Box& box) {
      return needed_box(box, shape, whole);
    };
    mapping.choices = choices(x, mapping.shape, whole);
    mapping.efficiency = kFftEfficiency;
    for (const int dim : whole) {
      mapping.flops_per_element +=
          5.0 * std::log2(static_cast<double>(std::max<int64_t>(2, mapping.shape[dim])));
    }
    mapping.work = [compute = transform.compute](const std::vector<Part>& parts, const Box&) {
      return compute(parts[0].local);
    };
    return mapping;
  });
}

int64_t result_length(FftKind kind, const FftSize& n, int64_t length, const std::string& who) {
  const int64_t given = n ? *n : kind == FftKind::kIrfft ? 2 * (length - 1) : length;
  if (given < 1) throw ShapeError(cat(who, ": the length is ", given, ", it must be 1 or more"));
  return kind == FftKind::kRfft ? given / 2 + 1 : given;
}

Operation batch_operation(const FftBatch& batch) {
  static constexpr const char* kNames[] = {"fft", "ifft", "rfft", "irfft"};
  using Function = Tensor (*)(const Tensor&, FftSize, int64_t, FftNorm, const Tensor*);
  static constexpr Function kFunctions[] = {&cuop::fft, &cuop::ifft, &cuop::rfft, &cuop::irfft};
  const auto kind = static_cast<size_t>(batch.kind);
  Transform transform;
  transform.name = kNames[kind];
  const std::string name = transform.name;
  transform.whole_dims = [batch, name](int ndim) {
    return std::vector<int>{normalize_axis(batch.dim, ndim, name.c_str())};
  };
  transform.result_shape = [batch, name](const Shape& shape) {
    const int dim = normalize_axis(batch.dim, shape.ndim(), name.c_str());
    Shape result = shape;
    result[dim] = result_length(batch.kind, batch.n, shape[dim], name);
    return result;
  };
  transform.is_real_result = batch.kind == FftKind::kIrfft;
  transform.wants_real_input = batch.kind == FftKind::kRfft;
  transform.compute = [batch, kind](const Tensor& x) {
    return kFunctions[kind](x, batch.n, batch.dim, batch.norm, nullptr);
  };
  const std::string size = batch.n ? cat(*batch.n) : "as it is";
  return operation(
      cat(name, " length ", size, ", dim ", batch.dim, ", norm ", static_cast<int>(batch.norm)),
      transform);
}

Operation batch_operation(const Fft2dBatch& batch) {
  Transform transform;
  transform.name = batch.options.is_inverse ? "ifft2d" : "fft2d";
  const std::string name = transform.name;
  transform.whole_dims = [batch, name](int ndim) {
    if (batch.dims.ndim() != 2 || (batch.s && batch.s->ndim() != 2)) {
      throw ShapeError(cat(name, ": two dims and two sizes are needed, given dims ", batch.dims));
    }
    return normalize_axes(std::span(batch.dims.begin(), batch.dims.end()), ndim, name.c_str());
  };
  transform.result_shape = [batch, name](const Shape& shape) {
    Shape result = shape;
    for (int i = 0; batch.s && i < 2; ++i) {
      const int64_t size = (*batch.s)[i];
      if (size == -1) continue;
      result[normalize_axis(batch.dims[i], shape.ndim(), name.c_str())] =
          result_length(FftKind::kFft, size, size, name);
    }
    return result;
  };
  transform.compute = [batch](const Tensor& x) {
    return batch.options.is_inverse ? cuop::ifft2(x, batch.s, batch.dims, batch.options.norm)
                                    : cuop::fft2(x, batch.s, batch.dims, batch.options.norm);
  };
  return operation(cat(name, " dims ", batch.dims, ", s ", batch.s.value_or(Dims{}), ", norm ",
                       static_cast<int>(batch.options.norm)),
                   transform);
}

}  // namespace

DistTensor fft(const DistTensor& x, const FftBatch& batch, const CallOptions& call) {
  return run_sharded(batch_operation(batch), {x}, call);
}

Tensor fft_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftBatch& batch,
                     const CallOptions& call) {
  return run_rooted(comm, batch_operation(batch), {x}, call);
}

DistTensor fft2d(const DistTensor& x, const Fft2dBatch& batch, const CallOptions& call) {
  return run_sharded(batch_operation(batch), {x}, call);
}

Tensor fft2d_from_root(const CommunicatorPtr& comm, const Tensor& x, const Fft2dBatch& batch,
                       const CallOptions& call) {
  return run_rooted(comm, batch_operation(batch), {x}, call);
}

}  // namespace cuop::dist
