#include "binders.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/norm/norm.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;
using OptionalTensor = std::optional<Arg<Tensor>>;
using OptionalUnplaced = std::optional<Arg<Unplaced>>;

Tensor given(const OptionalTensor& parameter) { return parameter ? **parameter : Tensor(); }

/// An array of the host beside x, as every argument, unless it shall be changed: a change to a copy
/// would be lost.
Tensor statistics(const OptionalUnplaced& parameter, const Tensor& x, bool training) {
  if (!parameter) return {};
  const auto& [tensor, is_tensor] = **parameter;
  return training || is_tensor ? tensor : to_device(tensor, x.device());
}

}  // namespace

void bind_norm(Module& m) {
  m.def(
      "layer_norm",
      [](Arg<Tensor> x, Arg<Tensor> gamma, OptionalTensor beta, double eps, Out out) {
        return layer_norm(x, gamma, given(beta), eps, pointer(out));
      },
      "x"_a, "gamma"_a, "beta"_a = nb::none(), "eps"_a = 1e-5, nb::kw_only(), "out"_a = nb::none(),
      ReturnsOut(), Released(),
      R"((x - mean) / sqrt(var + eps) * gamma + beta with the biased variance (Ba, Kiros, Hinton 2016).

If gamma's shape equals the trailing dimensions of x, statistics are over those; else if gamma is 1-D
with x.shape[1] entries, over all dimensions but the first, with one gamma and beta a channel; else a
ShapeError. x is floating, gamma and beta have its dtype (or float32 beside float16, bfloat16).)");
  m.def(
      "rms_norm",
      [](Arg<Tensor> x, Arg<Tensor> gamma, double eps, Out out) {
        return rms_norm(x, gamma, eps, pointer(out));
      },
      "x"_a, "gamma"_a, "eps"_a = 1e-5, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
      Released(),
      "x / sqrt(mean(x^2) + eps) * gamma over the trailing dimensions that gamma has (Zhang, "
      "Sennrich 2019). Raises ShapeError and DTypeError as layer_norm.");
  m.def(
      "batch_norm",
      [](Arg<Tensor> x, OptionalTensor gamma, OptionalTensor beta, OptionalUnplaced running_mean,
         OptionalUnplaced running_var, double eps, double momentum, bool training, Out out) {
        const Tensor mean = statistics(running_mean, *x, training);
        const Tensor variance = statistics(running_var, *x, training);
        return batch_norm(x, {given(gamma), given(beta), mean, variance}, {eps, momentum, training},
                          pointer(out));
      },
      "x"_a, "gamma"_a = nb::none(), "beta"_a = nb::none(), "running_mean"_a = nb::none(),
      "running_var"_a = nb::none(), "eps"_a = 1e-5, "momentum"_a = 0.1, "training"_a = false,
      nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      R"((x - mean) / sqrt(var + eps) * gamma + beta for each channel of x [N, C] or [N, C, ...].

Inference takes the running statistics (0 and 1 where not given). Training takes those of the batch
and moves the running ones in place: (1 - momentum) * running + momentum * batch, with the unbiased
variance; they must then lie on x's device, arrays too (DeviceError). Parameters are [C], of x's dtype
(or float32 beside float16, bfloat16); gamma 1 and beta 0 where not given. Raises ShapeError, DTypeError,
ExecutionError (eps, momentum, read-only statistics).
Source: Ioffe, Szegedy 2015.)");
}

}  // namespace cuop::python
