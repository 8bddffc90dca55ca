#include "cuop/ops/norm/norm.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/dense_output.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/norm/norm_kernels.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

using kernels::RowNorm;

constexpr backend::Slot kRowSlot{"layer_norm", &kernels::row_norm_cpu, &kernels::row_norm_cuda};
constexpr backend::Slot kAffineSlot{"batch_norm", &kernels::channel_affine_cpu,
                                    &kernels::channel_affine_cuda};
constexpr backend::Slot kMomentsSlot{"batch_norm", &kernels::channel_moments_cpu,
                                     &kernels::channel_moments_cuda};

void check_input(const char* who, const Tensor& x, double eps) {
  visit_dtype(FloatingTypes{}, x.dtype(), who, [](auto) {});
  if (!(eps >= 0.0) || std::isinf(eps)) {
    throw ExecutionError(cat(who, ": eps is ", eps, "; allowed is a finite number of at least 0"));
  }
}

/// A parameter must have the dtype of x, or the one in which x is computed.
void check_parameter(const char* who, const Tensor& x, const Tensor& parameter, const char* name) {
  if (parameter.dtype() == x.dtype() || parameter.dtype() == compute_dtype(x.dtype())) return;
  throw DTypeError(cat(who, ": ", name, " has dtype ", parameter.dtype(), " beside x of ",
                       x.dtype(), "; allowed are ", x.dtype(), " and ", compute_dtype(x.dtype())));
}

bool has_trailing_shape(const Tensor& x, const Shape& shape) {
  const int first = x.ndim() - shape.ndim();
  if (first < 0 || shape.ndim() == 0) return false;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (x.shape(first + i) != shape[i]) return false;
  }
  return true;
}

/// How the shapes of x and gamma say to normalise; see the header.
RowNorm rows_over_trailing(const Tensor& x, const Tensor& gamma) {
  RowNorm norm;
  norm.channels = gamma.size();
  norm.rows = gamma.size() == 0 ? 0 : x.size() / gamma.size();
  return norm;
}
RowNorm layer_rows(const Tensor& x, const Tensor& gamma) {
  if (has_trailing_shape(x, gamma.shape())) return rows_over_trailing(x, gamma);
  if (gamma.ndim() == 1 && x.ndim() >= 2 && gamma.shape(0) == x.shape(1)) {
    RowNorm norm;
    norm.rows = x.shape(0);
    norm.channels = x.shape(1);
    for (int axis = 2; axis < x.ndim(); ++axis) norm.inner *= x.shape(axis);
    return norm;
  }
  throw ShapeError(
      cat("layer_norm: gamma of shape ", gamma.shape(), " fits x of shape ", x.shape(),
          " neither as its trailing dimensions (normalise over those) nor as one entry "
          "a channel, x.shape[1] (normalise over all but the first dimension)"));
}

/// Runs kernel(x, out) on contiguous memory and brings the result where it belongs.
template <class Kernel>
void on_contiguous(const Tensor& x, const Tensor& result, Kernel&& kernel) {
  if (x.size() == 0) return;
  fill_dense(result, x.dtype(), [&](const Tensor& dense) { kernel(contiguous(x), dense); });
}

/// A parameter as the kernels take it; an undefined one stays undefined.
Tensor prepared(const Tensor& parameter, DType dtype) {
  return parameter.is_defined() ? contiguous(cast(parameter, dtype)) : parameter;
}

Tensor prepare_result(const char* who, const Tensor& x, std::initializer_list<const Tensor*> others,
                      const Tensor* out) {
  const Tensor result = prepare_output(who, out, x.shape(), x.dtype(), x.device());
  check_same_or_no_overlap(who, result, x, "x");
  for (const Tensor* other : others) {
    if (!other->is_defined()) continue;
    common_device(who, {&x, other});
    check_no_overlap(who, result, *other, "a parameter");
  }
  return result;
}

Tensor normalize_rows(const char* who, const Tensor& x, const RowNorm& norm, const Tensor& gamma,
                      const Tensor& beta, const Tensor* out) {
  check_parameter(who, x, gamma, "gamma");
  if (beta.is_defined()) {
    check_parameter(who, x, beta, "beta");
    if (!(beta.shape() == gamma.shape())) {
      throw ShapeError(cat(who, ": beta has shape ", beta.shape(), ", gamma ", gamma.shape(),
                           "; they must be equal"));
    }
  }
  const Tensor result = prepare_result(who, x, {&gamma, &beta}, out);
  const DType dtype = compute_dtype(x.dtype());
  on_contiguous(x, result, [&](const Tensor& in, const Tensor& to) {
    kRowSlot(x.device(), in, norm, prepared(gamma, dtype), prepared(beta, dtype), to);
  });
  return result;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                  const Tensor* out) {
  trace::Span span("layer_norm", "op");
  span.add_bytes(2 * x.nbytes());
  check_input("layer_norm", x, eps);
  RowNorm norm = layer_rows(x, gamma);
  norm.eps = eps;
  return normalize_rows("layer_norm", x, norm, gamma, beta, out);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps, const Tensor* out) {
  trace::Span span("rms_norm", "op");
  span.add_bytes(2 * x.nbytes());
  check_input("rms_norm", x, eps);
  if (!has_trailing_shape(x, gamma.shape())) {
    throw ShapeError(cat("rms_norm: gamma of shape ", gamma.shape(),
                         " does not equal the trailing dimensions of x of shape ", x.shape()));
  }
  RowNorm norm = rows_over_trailing(x, gamma);
  norm.eps = eps;
  norm.is_centred = false;
  return normalize_rows("rms_norm", x, norm, gamma, {}, out);
}

namespace {

void check_channel_parameter(const Tensor& x, const Tensor& parameter, const char* name) {
  if (!parameter.is_defined()) return;
  check_parameter("batch_norm", x, parameter, name);
  if (parameter.ndim() != 1 || parameter.shape(0) != x.shape(1)) {
    throw ShapeError(cat("batch_norm: ", name, " has shape ", parameter.shape(), ", needed is (",
                         x.shape(1), ",), one entry for each channel of x ", x.shape()));
  }
}

/// The parameter as float64 [channels], or that many times `otherwise`.
Tensor channel_values(const Tensor& parameter, const Tensor& x, double otherwise) {
  if (!parameter.is_defined()) return full({x.shape(1)}, otherwise, DType::kFloat64, x.device());
  return clone(cast(parameter, DType::kFloat64));
}

/// running <- (1 - momentum) running + momentum batch * correction
void move_running(const Tensor& running, const Tensor& batch, double momentum, double correction) {
  if (!running.is_defined()) return;
  const Tensor kept = multiply(cast(running, DType::kFloat64), 1.0 - momentum);
  copy_into(running, add(kept, multiply(batch, momentum * correction)));
}

/// Statistics that training moves must lie apart from what it reads, and from each other.
void check_moved(const Tensor& running, const char* name,
                 std::initializer_list<std::pair<const Tensor*, const char*>> others) {
  if (!running.is_defined()) return;
  check_writable("batch_norm", running);
  for (const auto& [other, other_name] : others) {
    if (!other->is_defined() || !may_overlap(running, *other)) continue;
    throw ExecutionError(cat("batch_norm: ", name, ", which training moves, shares memory with ",
                             other_name, "; pass a copy of one of the two"));
  }
}

void check_batch_norm(const Tensor& x, const BatchNormParameters& p, const BatchNormOptions& o) {
  check_input("batch_norm", x, o.eps);
  if (x.ndim() < 2) {
    throw ShapeError(
        cat("batch_norm: x has shape ", x.shape(), "; allowed are [N, C] and [N, C, ...]"));
  }
  check_channel_parameter(x, p.gamma, "gamma");
  check_channel_parameter(x, p.beta, "beta");
  check_channel_parameter(x, p.running_mean, "running_mean");
  check_channel_parameter(x, p.running_var, "running_var");
  if (!o.is_training) return;
  if (!(o.momentum >= 0.0 && o.momentum <= 1.0)) {
    throw ExecutionError(cat("batch_norm: momentum is ", o.momentum, "; allowed is 0 to 1"));
  }
  if (x.size() > 0 && x.size() / x.shape(1) < 2) {
    throw ShapeError(
        cat("batch_norm: training needs more than one value a channel; x has shape ", x.shape()));
  }
  check_moved(p.running_mean, "running_mean",
              {{&x, "x"}, {&p.gamma, "gamma"}, {&p.beta, "beta"}, {&p.running_var, "running_var"}});
  check_moved(p.running_var, "running_var", {{&x, "x"}, {&p.gamma, "gamma"}, {&p.beta, "beta"}});
}

}  // namespace

Tensor batch_norm(const Tensor& x, const BatchNormParameters& parameters,
                  const BatchNormOptions& options, const Tensor* out) {
  trace::Span span("batch_norm", "op");
  span.add_bytes(2 * x.nbytes());
  check_batch_norm(x, parameters, options);
  const auto& [gamma, beta, running_mean, running_var] = parameters;
  const Tensor result =
      prepare_result("batch_norm", x, {&gamma, &beta, &running_mean, &running_var}, out);
  if (x.size() == 0) return result;
  const Tensor mean = channel_values(running_mean, x, 0.0);
  const Tensor variance = channel_values(running_var, x, 1.0);
  if (options.is_training) {
    kMomentsSlot(x.device(), x, mean, variance);
    const auto count = static_cast<double>(x.size() / x.shape(1));
    move_running(running_mean, mean, options.momentum, 1.0);
    move_running(running_var, variance, options.momentum, count / (count - 1.0));
  }
  const Tensor scale =
      divide(channel_values(gamma, x, 1.0), cuop::sqrt(add(variance, options.eps)));
  const Tensor shift = channel_values(beta, x, 0.0);
  int64_t inner = 1;
  for (int axis = 2; axis < x.ndim(); ++axis) inner *= x.shape(axis);
  on_contiguous(x, result, [&](const Tensor& in, const Tensor& to) {
    kAffineSlot(x.device(), in, inner, mean, scale, shift, to);
  });
  return result;
}

}  // namespace cuop
