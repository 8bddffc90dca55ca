// Layer, batch and root-mean-square normalisation with an affine map.
//
// Common rules. x is floating (float16 and bfloat16 are computed in float32); shape and dtype of
// the result are those of x; parameters have the dtype of x, or float32 beside float16 and
// bfloat16. An undefined Tensor is a parameter that is not given. `out` may be x itself.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// (x - mean) / sqrt(var + eps) * gamma + beta, with the biased variance (Ba, Kiros, Hinton 2016).
///  - gamma's shape equals the trailing dimensions of x: statistics over those;
///  - else gamma is 1-D with x.shape[1] entries: statistics over all dimensions but the first,
///  gamma
///    and beta per channel (axis 1);
///  - else a ShapeError that says both rules.
/// beta, if given, has the shape of gamma.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta = {}, double eps = 1e-5,
                  const Tensor* out = nullptr);

/// x / sqrt(mean(x^2) + eps) * gamma over the trailing dimensions that gamma has (Zhang, Sennrich
/// 2019).
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps = 1e-5,
                const Tensor* out = nullptr);

/// Each [C]; not given: gamma 1, beta 0, running mean 0, running variance 1.
struct BatchNormParameters {
  Tensor gamma, beta, running_mean, running_var;
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  /// true: normalise by the batch's biased variance and move the running statistics that are given:
  /// running <- (1 - momentum) running + momentum batch, with the unbiased batch variance.
  bool is_training = false;
};

/// Normalises each channel of x [N, C] or [N, C, ...] (Ioffe, Szegedy 2015). Training needs more
/// than one value a channel.
Tensor batch_norm(const Tensor& x, const BatchNormParameters& parameters,
                  const BatchNormOptions& options = {}, const Tensor* out = nullptr);

}  // namespace cuop
