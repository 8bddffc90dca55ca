// What all operator objects have in common. An operator holds its options and weights; `forward`
// reads its inputs, fills a preallocated output and returns it.
//
// Operators may be used by several threads at once. Weights are copied when they are set, so later
// changes of the source do not reach the operator. A copy of an operator shares its weights, as the
// copy of a tensor shares its elements: whichever of the two sets one, both have it.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/tensor.h"
#include "cuop/operators/task.h"

namespace cuop {

class Weight;

class Operator {
 public:
  /// True in operators whose tiled kernel takes any tile size.
  static constexpr bool kTakesTile = false;
  /// False in operators whose own GPU kernels have blocks of one size alone.
  static constexpr bool kTakesBlock = true;
  static constexpr GpuKernels kGpuKernels = GpuKernels::kOwn;

  /// `base_name` "Gemm" and a float make "GemmFloat", the name in every message.
  Operator(const char* base_name, DType dtype);
  virtual ~Operator() = default;
  Operator& operator=(const Operator&) = delete;

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  /// The message of the last call that failed, "" when none has.
  std::string last_error() const;
  /// Makes a message the last one, for callers that fail before they reach the operator.
  void remember_error(const std::string& message) const;

  /// Runs `f`; an error leaves with this operator's name in front and is remembered. Callers use it
  /// for work around `forward` that is part of the call.
  template <class Function>
  auto guarded(Function&& f) const -> decltype(f()) {
    try {
      return f();
    } catch (...) {
      rethrow_named();
    }
  }

 protected:
  /// Errors are remembered by each copy on its own.
  Operator(const Operator& other) : name_(other.name_), dtype_(other.dtype_) {}
  /// For constructors of derived classes.
  void set_name(std::string name) { name_ = std::move(name); }
  /// Runs op.task(arguments...), named in its errors, and returns its output.
  template <class Op, class... Arguments>
  static Tensor run_task(const Op& op, const Arguments&... arguments) {
    return op.guarded([&] { return op.execute(op.task(arguments...)); });
  }
  /// Runs a checked task and returns its output. JIT wrappers replace it.
  virtual Tensor execute(const Task& task) const;

  /// DTypeError unless the tensor, which the caller calls `argument`, has this operator's dtype.
  void check(const Tensor& tensor, const char* argument) const;
  static void check_ndim(const Tensor& tensor, int ndim, const char* argument);
  static void check_square(const Tensor& tensor, const char* argument);
  /// Checks the dtype and, where one is given, the number of dimensions, and sets the weight.
  void set(Weight& weight, const Tensor& value, const char* argument,
           std::optional<int> ndim = std::nullopt);

 private:
  [[noreturn]] void rethrow_named() const;

  std::string name_;
  DType dtype_;
  mutable ForkMutex error_mutex_;
  mutable std::string last_error_;
};

/// A weight of an operator: set once or often, read by many threads. Copies are the same weight.
class Weight {
 public:
  /// Messages name `what` and the `setter` to call.
  Weight(const char* what, const char* setter_name) : what_(what), setter_(setter_name) {}
  /// Keeps a row-major copy.
  void set(const Tensor& value);
  /// Keeps the tensor itself in the place of `before`, which get_or_none() gave: not where another
  /// one has been set since then.
  void replace(const Tensor& before, const Tensor& value);
  /// The tensor; ExecutionError that names the setter when there is none.
  Tensor get() const;
  /// The tensor, undefined when there is none.
  Tensor get_or_none() const;

 private:
  struct State {
    ForkMutex mutex;
    Tensor value;
  };
  const char* what_;
  const char* setter_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// A copy on the CPU; undefined for an undefined tensor.
Tensor copy_on_cpu(const Tensor& tensor);

/// The task is compute(out, inputs...), and on the CPU the same with copies of the inputs.
template <class Compute, class... Inputs>
void set_work(Task& task, const Compute& compute, const Inputs&... inputs) {
  task.run = [=](const Tensor& out) { compute(out, inputs...); };
  task.on_cpu = [=](const Tensor& out) { compute(out, copy_on_cpu(inputs)...); };
}

/// Bytes of the tensors together, for costs.
template <class... Tensors>
int64_t bytes_of(const Tensors&... tensors) {
  return (int64_t{0} + ... + tensors.nbytes());
}

/// All shapes and numbers one after the other, each shape after its length: a task's sizes.
std::vector<int64_t> sizes_of(std::initializer_list<const Tensor*> tensors,
                              std::initializer_list<int64_t> numbers = {});

}  // namespace cuop
