#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/pencil_plan.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::dist {
namespace {

Tensor transform_local(const Tensor& x, std::optional<int64_t> axis, const FftOptions& options) {
  if (!axis) {
    return options.is_inverse ? cuop::ifft2(x, {}, Dims{0, 1}, options.norm)
                              : cuop::fft2(x, {}, Dims{0, 1}, options.norm);
  }
  return options.is_inverse ? cuop::ifft(x, {}, *axis, options.norm)
                            : cuop::fft(x, {}, *axis, options.norm);
}

/// One pass over this rank's slices along `axis`, or along both.
DistTensor transform(const DistTensor& x, const Sharding& slices, std::optional<int64_t> axis,
                     const FftOptions& options, DType result) {
  const DistTensor here = moved_to(x, slices);
  const Tensor& local = here.local();
  return DistTensor(
      here.comm_ptr(), slices, here.shape(), result,
      local.size() > 0 ? transform_local(local, axis, options) : cuop::cast(local, result));
}

Operation operation(const FftOptions& options) {
  const std::string name = options.is_inverse ? "ifft2d_pencil" : "fft2d_pencil";
  const auto plan = [name](const std::vector<Placement>& inputs,
                           const std::optional<Sharding>& output, const Machine& machine,
                           const std::string& strategy) {
    const DType result = complex_dtype(compute_dtype(to_inexact(real_dtype(inputs.at(0).dtype))));
    return plan_pencil({name, inputs[0], result, result, 2, output}, machine, strategy);
  };
  const auto execute = [options](const Plan& made, const std::vector<DistTensor>& inputs) {
    const DType result = made.outputs[0].dtype;
    const Sharding rows = whole_rows(made), columns = whole_columns(made);
    if (same_owners(rows, columns, inputs[0].shape())) {  // one rank has all of it
      return transform(inputs[0], columns, {}, options, result);
    }
    const DistTensor half = transform(inputs[0], rows, 1, options, result);
    return transform(half, columns, 0, options, result);
  };
  return {cat(name, " norm ", static_cast<int>(options.norm)), {"x"}, plan, execute};
}

}  // namespace

DistTensor fft2d_pencil(const DistTensor& x, const FftOptions& options, const CallOptions& call) {
  return run_sharded(operation(options), {x}, call);
}

Tensor fft2d_pencil_from_root(const CommunicatorPtr& comm, const Tensor& x,
                              const FftOptions& options, const CallOptions& call) {
  return run_rooted(comm, operation(options), {x}, call);
}

}  // namespace cuop::dist
