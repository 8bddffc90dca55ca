// JIT wrappers: the operators with a choice of kernels, a profile and statistics.
//
//   Jit<Gemm<float>> gemm(false, true);   // the operator's own constructor and setters
//   gemm.set_weight(b);
//   gemm.forward(a, c);                   // chosen on the first call of a shape, remembered after
//   gemm.profile().gflops;
//
//   Gemm<float> own;                      // or around an operator that exists:
//   Jit<Gemm<float>> wrapper(own);        // its options, and its weights, now and later
#pragma once

#include "cuop/operators/operator.h"
#include "cuop/operators/tuned/engine.h"

namespace cuop {

/// What all wrappers have besides their operator's calls.
class JitControls {
 public:
  void enable_jit(bool is_on) { engine_.enable_jit(is_on); }
  void enable_persistent_cache(bool is_on) {
    op_.guarded([&] { engine_.enable_persistent_cache(is_on); });
  }
  void set_persistent_cache_directory(const std::string& path) {
    op_.guarded([&] { engine_.set_persistent_cache_directory(path); });
  }
  void set_jit_config(const JitConfig& config) {
    op_.guarded([&] { engine_.set_config(config); });
  }
  JitConfig jit_config() const { return engine_.config(); }

  PerformanceProfile profile() const { return engine_.profile(); }
  JitStatistics statistics() const { return engine_.statistics(); }
  TuningReport tuning_report() const { return engine_.tuning_report(); }

  /// Opens libraries and starts threads.
  void warm_up() const { engine_.warm_up(); }

 protected:
  /// Of the wrapper `op`, whose messages they bear.
  JitControls(const Operator& op, std::string name, const KernelTraits& traits)
      : engine_(std::move(name), traits), op_(op) {}
  ~JitControls() = default;

  mutable JitEngine engine_;

 private:
  const Operator& op_;
};

template <class Op>
class Jit : public Op, public JitControls {
 public:
  /// From the arguments of any constructor of Op, its copy constructor included.
  template <class... Arguments>
  explicit Jit(const Arguments&... arguments)
      : Op(arguments...),
        JitControls(*this, jit_name(this->name()),
                    {Op::kTakesTile, Op::kGpuKernels, this->dtype(), Op::kTakesBlock}) {
    this->set_name(jit_name(this->name()));
  }
  Jit(const Jit&) = delete;

  using JitControls::warm_up;
  /// The same, and chooses the kernel for forward's arguments, whose output is not written.
  template <class... Arguments>
  void warm_up(const Arguments&... arguments) {
    this->guarded([&] { engine_.warm_up(this->task(arguments...)); });
  }

 protected:
  Tensor execute(const Task& task) const override { return engine_.run(task); }

 private:
  /// An Op that is a wrapper itself has the prefix already.
  static std::string jit_name(const std::string& name) {
    return name.starts_with("JIT") ? name : "JIT" + name;
  }
};

}  // namespace cuop
