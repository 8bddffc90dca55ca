#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/pencil_plan.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::dist {
namespace {

/// One pass along `axis` of this rank's slices.
DistTensor transform(const DistTensor& x, const Sharding& slices, int64_t axis,
                     const FftOptions& options, DType result) {
  const DistTensor here = moved_to(x, slices);
  Tensor local = here.local();
  if (local.size() > 0) {
    local = options.is_inverse ? cuop::ifft(local, {}, axis, options.norm)
                               : cuop::fft(local, {}, axis, options.norm);
  } else {
    local = cuop::cast(local, result);
  }
  return DistTensor(here.comm_ptr(), slices, here.shape(), result, local);
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
    const DistTensor rows = transform(inputs[0], whole_rows(made), 1, options, result);
    return transform(rows, whole_columns(made), 0, options, result);
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
