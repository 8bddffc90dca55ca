// Recorded elementwise work of one iteration shape, run as one pass when a value of it is needed.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/scalar.h"
#include "cuop/core/stream.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/expr.h"
#include "cuop/jit/reports.h"

namespace cuop::jit {

/// An argument of a recorded operation: a value of the group, a tensor to read, or a number.
struct RecordedArgument {
  int node = -1;                   ///< in the group, or -1
  const Tensor* tensor = nullptr;  ///< when node is -1
  const Scalar* number = nullptr;  ///< when both are unset
};

class Group final : NonCopyable, public std::enable_shared_from_this<Group> {
 public:
  static constexpr int kMaxInputs = 16;
  static constexpr int kMaxOps = 64;
  static constexpr int kMaxParameters = 32;

  /// Its work belongs to the stream, whoever runs it.
  Group(const Layout& layout, Stream stream) : layout_(layout), stream_(stream) {}
  ~Group();

  const Shape& shape() const { return layout_.shape; }
  /// How its values lie, those of reductions aside: without gaps.
  const Layout& layout() const { return layout_; }
  Stream stream() const { return stream_; }
  bool is_closed() const;
  /// Why these arguments cannot join, or null when they can.
  const char* obstacle(std::span<const RecordedArgument> arguments) const;
  /// Trailing axes covered by the group's reductions, 0 when it has none.
  int reduced_axes() const;
  /// Whether it has yet to read some of these elements, or another thread is at it.
  bool reads(const Tensor& written) const;

  /// Each records one operation and returns its node and its deferred value; nothing once the
  /// group has run (which another thread may cause that uses a value of it).
  struct Value {
    int node;
    Tensor tensor;
  };
  std::optional<Value> record_op(int code, OpTypes types,
                                 std::span<const RecordedArgument> arguments);
  std::optional<Value> record_cast(const RecordedArgument& argument, DType dtype);
  std::optional<Value> record_reduction(ReduceKind kind, int node, int axes, bool keepdims,
                                        DType dtype);

  /// Computes every value that somebody still holds and files the report (jit/reports.h). Later
  /// calls do nothing, or throw again what the first one threw.
  void run(const char* reason);

 private:
  struct Pending {
    int node;
    std::weak_ptr<Storage> storage;
    DType dtype;
    Layout layout;
  };

  int add_argument(const RecordedArgument& argument, DType dtype);
  int add_leaf(const Tensor& tensor);
  int find_leaf(const Tensor& tensor) const;
  int held_count() const;
  Value add_value(int node, const Layout& layout, const char* op);
  /// Fills `report` (optional); false when the group had run already.
  bool run_once(const char* reason, GroupReport* report);
  void compute(GroupReport* report);
  /// Forgets everything; returns what was read, to be let go without the lock.
  std::vector<Tensor> release();

  mutable ForkMutex mutex_;         ///< of all below, also while it is computed
  mutable ForkMutex leaves_mutex_;  ///< of changes of leaves_, for reads()
  bool is_closed_ = false;
  bool is_reader_ = false;               ///< is among those that run_readers() asks
  std::atomic<std::thread::id> runner_;  ///< who computes it now
  std::exception_ptr error_;
  Layout layout_;
  Stream stream_;
  int reduced_axes_ = 0;
  Expr expr_;
  std::vector<Tensor> leaves_;
  std::vector<int> leaf_nodes_;
  std::vector<Scalar> parameters_;
  std::vector<Pending> values_;
  std::vector<const char*> ops_;
  int64_t unfused_bytes_ = 0;
};

/// Runs the groups of all threads that have yet to read elements of `written`. What fails in them
/// is told to those who use their values.
void run_readers(const Tensor& written, const char* reason);

}  // namespace cuop::jit
