// Layer and batch normalisation as operator objects, for float and double.
#pragma once

#include <memory>

#include "cuop/operators/operator.h"

namespace cuop {

struct BatchNormParameters;

/// Normalises each channel of x [N, C] or [N, C, ...]. Parameters are [C]; where they are not set,
/// gamma is 1, beta 0, the running mean 0 and the running variance 1. Inference unless train(true):
/// then x is normalised by its own statistics and the running ones move towards them,
/// running <- (1 - momentum) running + momentum batch. y may be x.
///
/// Passes compute with the tensors that are set when they begin. Training steps of several threads
/// take turns; a statistic that is set amid one stays as it was set.
template <class T>
class BatchNorm : public Operator {
 public:
  explicit BatchNorm(double eps = 1e-5, double momentum = 0.1);
  void set_gamma(const Tensor& gamma) { set(gamma_, gamma, "gamma", 1); }
  void set_beta(const Tensor& beta) { set(beta_, beta, "beta", 1); }
  void set_running_mean(const Tensor& mean) { set(running_mean_, mean, "running mean", 1); }
  void set_running_var(const Tensor& variance) {
    set(running_var_, variance, "running variance", 1);
  }
  /// Copies of the running statistics; undefined before they are set or a training step made them.
  Tensor running_mean() const { return copy_of(running_mean_); }
  Tensor running_var() const { return copy_of(running_var_); }
  void train(bool is_training);
  bool is_training() const;
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  struct Mode;
  /// What is set now.
  BatchNormParameters parameters() const;
  void infer(const Tensor& x, const Tensor& y) const;
  void train_on(const Tensor& x, const Tensor& y) const;
  void try_training_on(const Tensor& x, const Tensor& y) const;  ///< leaves the statistics alone
  void compute_on_cpu(const Tensor& x, const Tensor& y, bool is_training) const;  ///< the same
  Tensor copy_of(const Weight& statistic) const;

  double eps_, momentum_;
  std::shared_ptr<Mode> mode_;
  Weight gamma_{"gamma", "set_gamma"};
  Weight beta_{"beta", "set_beta"};
  mutable Weight running_mean_{"running mean", "set_running_mean"};
  mutable Weight running_var_{"running variance", "set_running_var"};
};

/// (x - mean) / sqrt(var + eps) gamma + beta, by the rules of cuop::layer_norm: over the trailing
/// dimensions that gamma has, or over all but the first for a gamma with one entry a channel. Where
/// gamma is not set it is 1 in the shape of beta, or over the last dimension when neither is set;
/// beta is 0 where it is not set. y may be x.
template <class T>
class LayerNorm : public Operator {
 public:
  explicit LayerNorm(double eps = 1e-5);
  void set_gamma(const Tensor& gamma) { set(gamma_, gamma, "gamma"); }
  void set_beta(const Tensor& beta) { set(beta_, beta, "beta"); }
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  double eps_;
  Weight gamma_{"gamma", "set_gamma"};
  Weight beta_{"beta", "set_beta"};
};

}  // namespace cuop
