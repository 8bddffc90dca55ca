// Layer and batch normalisation as operator objects, for float and double.
#pragma once

#include <atomic>
#include <shared_mutex>

#include "cuop/operators/operator.h"

namespace cuop {

/// Normalises each channel of x [N, C] or [N, C, ...]. Parameters are [C]; where they are not set,
/// gamma is 1, beta 0, the running mean 0 and the running variance 1. Inference unless train(true):
/// then x is normalised by its own statistics and the running ones move towards them,
/// running <- (1 - momentum) running + momentum batch. y may be x.
template <class T>
class BatchNorm : public Operator {
 public:
  explicit BatchNorm(double eps = 1e-5, double momentum = 0.1);
  void set_gamma(const Tensor& gamma);
  void set_beta(const Tensor& beta);
  void set_running_mean(const Tensor& mean);
  void set_running_var(const Tensor& variance);
  /// Copies of the running statistics; undefined before they are set or a training step made them.
  Tensor running_mean() const;
  Tensor running_var() const;
  void train(bool is_training) { is_training_ = is_training; }
  bool is_training() const { return is_training_; }
  Tensor forward(const Tensor& x, const Tensor& y) const;
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  void infer(const Tensor& x, const Tensor& y) const;
  void train_on(const Tensor& x, const Tensor& y) const;
  void set(Weight& weight, const Tensor& value, const char* argument);

  double eps_, momentum_;
  std::atomic<bool> is_training_ = false;
  mutable std::shared_mutex statistics_mutex_;  ///< passes read them together, training moves alone
  Weight gamma_{"gamma", "set_gamma"};
  Weight beta_{"beta", "set_beta"};
  mutable Weight running_mean_{"running mean", "set_running_mean"};
  mutable Weight running_var_{"running variance", "set_running_var"};
};

/// (x - mean) / sqrt(var + eps) gamma + beta, by the rules of cuop::layer_norm: over the trailing
/// dimensions that gamma has, or over all but the first for a gamma with one entry a channel. gamma
/// must be set; beta is 0 where it is not. y may be x.
template <class T>
class LayerNorm : public Operator {
 public:
  explicit LayerNorm(double eps = 1e-5);
  void set_gamma(const Tensor& gamma);
  void set_beta(const Tensor& beta);
  Tensor forward(const Tensor& x, const Tensor& y) const;
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  double eps_;
  Weight gamma_{"gamma", "set_gamma"};
  Weight beta_{"beta", "set_beta"};
};

}  // namespace cuop
