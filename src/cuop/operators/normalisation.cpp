#include "cuop/operators/normalisation.h"

#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/norm/norm.h"

namespace cuop {

namespace {

void check_eps(const std::string& who, double eps) {
  if (eps >= 0.0 && std::isfinite(eps)) return;
  throw ExecutionError(cat(who, ": eps is ", eps, ", needed is 0 or more and finite"));
}

/// Per element: mean, variance (2), centring, scaling, the affine map (2).
constexpr double kFlopsPerElement = 7.0;

}  // namespace

template <class T>
BatchNorm<T>::BatchNorm(double eps, double momentum)
    : Operator("BatchNorm", dtype_of<T>), eps_(eps), momentum_(momentum) {
  check_eps(name(), eps);
  if (!(momentum >= 0.0 && momentum <= 1.0)) {
    throw ExecutionError(cat(name(), ": momentum is ", momentum, ", needed is 0 to 1"));
  }
}

template <class T>
void BatchNorm<T>::set_statistic(Weight& weight, const Tensor& value, const char* argument) {
  const std::lock_guard lock(mode_->statistics);
  set(weight, value, argument, 1);
}

template <class T>
Tensor BatchNorm<T>::copy_of(const Weight& statistic) const {
  const std::shared_lock lock(mode_->statistics);  // passes that overlap would keep a writer out
  const Tensor value = statistic.get_or_none();
  return value.is_defined() ? clone(value) : value;
}

template <class T>
void BatchNorm<T>::infer(const Tensor& x, const Tensor& y) const {
  const std::shared_lock lock(mode_->statistics);
  batch_norm(x,
             {gamma_.get_or_none(), beta_.get_or_none(), running_mean_.get_or_none(),
              running_var_.get_or_none()},
             {eps_, momentum_, false}, &y);
}

template <class T>
void BatchNorm<T>::train_on(const Tensor& x, const Tensor& y) const {
  const std::lock_guard lock(mode_->statistics);
  Tensor mean = running_mean_.get_or_none(), variance = running_var_.get_or_none();
  const Shape channels{x.ndim() >= 2 ? x.shape(1) : 0};
  if (!mean.is_defined()) mean = zeros(channels, dtype(), x.device());
  if (!variance.is_defined()) variance = ones(channels, dtype(), x.device());
  batch_norm(x, {gamma_.get_or_none(), beta_.get_or_none(), mean, variance},
             {eps_, momentum_, true}, &y);
  running_mean_.adopt(mean);
  running_var_.adopt(variance);
}

template <class T>
void BatchNorm<T>::try_training_on(const Tensor& x, const Tensor& y) const {
  const std::shared_lock lock(mode_->statistics);
  batch_norm(x, {gamma_.get_or_none(), beta_.get_or_none(), {}, {}}, {eps_, momentum_, true}, &y);
}

template <class T>
void BatchNorm<T>::compute_on_cpu(const Tensor& x, const Tensor& y, bool is_training) const {
  const std::shared_lock lock(mode_->statistics);
  const auto statistic = [&](const Weight& weight) {
    return is_training ? Tensor() : copy_on_cpu(weight.get_or_none());
  };
  batch_norm(copy_on_cpu(x),
             {copy_on_cpu(gamma_.get_or_none()), copy_on_cpu(beta_.get_or_none()),
              statistic(running_mean_), statistic(running_var_)},
             {eps_, momentum_, is_training}, &y);
}

template <class T>
Task BatchNorm<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  check(x, "x");
  check(y, "y");
  const bool is_training = mode_->is_training;
  task.sizes = sizes_of({&x}, {is_training});
  task.cost = {kFlopsPerElement * static_cast<double>(x.size()),
               bytes_of(x, y) + (is_training ? x.nbytes() : 0)};
  task.kernels = kTiledOrSimple;
  task.gpu_kernels = kElementwiseOnGpu;
  task.out = y;
  task.run = [this, x, is_training](const Tensor& out) {
    is_training ? train_on(x, out) : infer(x, out);
  };
  task.on_cpu = [this, x, is_training](const Tensor& out) { compute_on_cpu(x, out, is_training); };
  if (is_training) task.trial = [this, x](const Tensor& out) { try_training_on(x, out); };
  return task;
}

template <class T>
LayerNorm<T>::LayerNorm(double eps) : Operator("LayerNorm", dtype_of<T>), eps_(eps) {
  check_eps(name(), eps);
}

template <class T>
Task LayerNorm<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  Tensor gamma = gamma_.get_or_none();
  const Tensor beta = beta_.get_or_none();
  check(x, "x");
  check(y, "y");
  if (!gamma.is_defined()) {
    if (x.ndim() == 0) throw ShapeError("x has shape (), needed is at least 1 dimension");
    gamma = ones(beta.is_defined() ? beta.shape() : Shape{x.shape().back()}, dtype(), x.device());
  }
  task.sizes = sizes_of({&x, &gamma});
  task.cost = {kFlopsPerElement * static_cast<double>(x.size()), bytes_of(x, y, gamma)};
  task.kernels = kTiledOrSimple;
  task.gpu_kernels = kRowsOnGpu;
  task.out = y;
  const auto compute = [eps = eps_](const Tensor& out, const auto&... x_gamma_beta) {
    layer_norm(x_gamma_beta..., eps, &out);
  };
  set_work(task, compute, x, gamma, beta);
  return task;
}

template class BatchNorm<float>;
template class BatchNorm<double>;
template class LayerNorm<float>;
template class LayerNorm<double>;

}  // namespace cuop
