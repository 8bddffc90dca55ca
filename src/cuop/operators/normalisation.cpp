#include "cuop/operators/normalisation.h"

#include <atomic>
#include <cmath>
#include <mutex>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interruptible.h"
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
struct BatchNorm<T>::Mode {
  std::atomic<bool> is_training = false;
  InterruptibleMutex step{"forward of a training step"};
  ForkMutex statistics;  ///< both that a step has made are seen, or none of them
};

template <class T>
BatchNorm<T>::BatchNorm(double eps, double momentum)
    : Operator("BatchNorm", dtype_of<T>),
      eps_(eps),
      momentum_(momentum),
      mode_(std::make_shared<Mode>()) {
  check_eps(name(), eps);
  if (!(momentum >= 0.0 && momentum <= 1.0)) {
    throw ExecutionError(cat(name(), ": momentum is ", momentum, ", needed is 0 to 1"));
  }
}

template <class T>
void BatchNorm<T>::train(bool is_training) {
  mode_->is_training = is_training;
}

template <class T>
bool BatchNorm<T>::is_training() const {
  return mode_->is_training;
}

template <class T>
BatchNormParameters BatchNorm<T>::parameters() const {
  const std::lock_guard lock(mode_->statistics);
  return {gamma_.get_or_none(), beta_.get_or_none(), running_mean_.get_or_none(),
          running_var_.get_or_none()};
}

template <class T>
Tensor BatchNorm<T>::copy_of(const Weight& statistic) const {
  const Tensor value = statistic.get_or_none();
  return value.is_defined() ? clone(value) : value;
}

template <class T>
void BatchNorm<T>::infer(const Tensor& x, const Tensor& y) const {
  batch_norm(x, parameters(), {eps_, momentum_, false}, &y);
}

template <class T>
void BatchNorm<T>::train_on(const Tensor& x, const Tensor& y) const {
  const std::lock_guard lock(mode_->step);
  const BatchNormParameters before = parameters();
  const Shape channels{x.ndim() >= 2 ? x.shape(1) : 0};
  // The replays of a recorded step go on with what the one before has made.
  const bool is_recorded = backend::runtime(x.device()).is_recording(current_stream(x.device()));
  const auto moved = [&](const Tensor& statistic, const auto& make) {
    if (!statistic.is_defined()) return make(channels, dtype(), x.device());
    return is_recorded ? statistic : clone(statistic);
  };
  BatchNormParameters after = before;
  after.running_mean = moved(before.running_mean, zeros);
  after.running_var = moved(before.running_var, ones);
  batch_norm(x, after, {eps_, momentum_, true}, &y);
  const std::lock_guard both(mode_->statistics);
  running_mean_.replace(before.running_mean, after.running_mean);
  running_var_.replace(before.running_var, after.running_var);
}

template <class T>
void BatchNorm<T>::try_training_on(const Tensor& x, const Tensor& y) const {
  BatchNormParameters unmoved = parameters();
  unmoved.running_mean = unmoved.running_var = {};
  batch_norm(x, unmoved, {eps_, momentum_, true}, &y);
}

template <class T>
void BatchNorm<T>::compute_on_cpu(const Tensor& x, const Tensor& y, bool is_training) const {
  const BatchNormParameters now = parameters();
  const auto statistic = [&](const Tensor& value) {
    return is_training ? Tensor() : copy_on_cpu(value);
  };
  batch_norm(copy_on_cpu(x),
             {copy_on_cpu(now.gamma), copy_on_cpu(now.beta), statistic(now.running_mean),
              statistic(now.running_var)},
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
