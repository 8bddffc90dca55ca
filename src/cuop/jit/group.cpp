#include "cuop/jit/group.h"

#include <algorithm>
#include <complex>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/trace.h"
#include "cuop/jit/run.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

bool Group::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

int Group::reduced_axes() const {
  const std::lock_guard lock(mutex_);
  return reduced_axes_;
}

/// A value that nobody holds cannot be used again, so what a kernel keeps in registers at any time
/// are its inputs and the values held then: of the largest elements half of a thread's registers.
static_assert((Group::kMaxInputs + kMaxGpuOutputs) * sizeof(std::complex<double>) / 4 <= 128);

int Group::held_count() const {
  return static_cast<int>(std::count_if(values_.begin(), values_.end(), [](const Pending& value) {
    return !value.storage.expired();
  }));
}

const char* Group::obstacle(std::span<const RecordedArgument> arguments) const {
  const std::lock_guard lock(mutex_);
  int inputs = static_cast<int>(leaves_.size()), numbers = static_cast<int>(parameters_.size());
  for (const RecordedArgument& argument : arguments) {
    if (argument.tensor != nullptr && find_leaf(*argument.tensor) < 0) ++inputs;
    if (argument.number != nullptr) ++numbers;
  }
  if (inputs > kMaxInputs) return "the limit of 16 inputs was reached";
  if (numbers > kMaxParameters) return "the limit of 32 numbers was reached";
  if (static_cast<int>(ops_.size()) >= kMaxOps) return "the limit of 64 operations was reached";
  if (!stream_.device.is_cpu() && held_count() >= kMaxGpuOutputs) {
    return "the limit of 16 values of a GPU's group that are held was reached";
  }
  return nullptr;
}

bool Group::reads(const Tensor& written) const {
  const std::lock_guard lock(mutex_);
  for (const Tensor& leaf : leaves_) {
    if (may_overlap(leaf, written)) return true;
  }
  return false;
}

int Group::find_leaf(const Tensor& tensor) const {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Tensor& leaf = leaves_[i];
    if (leaf.storage() == tensor.storage() && leaf.dtype() == tensor.dtype() &&
        leaf.layout() == tensor.layout()) {
      return leaf_nodes_[i];
    }
  }
  return -1;
}

int Group::add_leaf(const Tensor& tensor) {
  const int known = find_leaf(tensor);
  if (known >= 0) return known;
  leaves_.push_back(tensor);
  leaf_nodes_.push_back(expr_.add_leaf(tensor.dtype()));
  return leaf_nodes_.back();
}

int Group::add_argument(const RecordedArgument& argument, DType dtype) {
  if (argument.number != nullptr) {
    parameters_.push_back(*argument.number);
    return expr_.add_parameter(dtype);
  }
  if (argument.tensor != nullptr) {
    unfused_bytes_ += argument.tensor->nbytes();
    return add_leaf(*argument.tensor);
  }
  unfused_bytes_ += element_count(shape_) * itemsize(expr_.node(argument.node).dtype);
  return argument.node;
}

Group::Value Group::add_value(int node, const Shape& shape, const char* op) {
  const DType dtype = expr_.node(node).dtype;
  const int64_t bytes = element_count(shape) * itemsize(dtype);
  auto storage = Storage::deferred(bytes, stream_.device, [self = shared_from_this()] {
    self->run("a value was needed outside of elementwise work");
  });
  values_.push_back({node, storage, dtype, shape});
  ops_.push_back(op);
  unfused_bytes_ += bytes;
  return {node, Tensor(std::move(storage), contiguous_layout(shape), dtype)};
}

std::optional<Group::Value> Group::record_op(int code, OpTypes types,
                                             std::span<const RecordedArgument> arguments) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  const OpInfo& op = op_table()[static_cast<size_t>(code)];
  std::array<int, kMaxArity> nodes{};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_condition = op.rule == Rule::kSelect && i == 0;
    nodes[i] = add_argument(arguments[i], is_condition ? DType::kBool : types.compute);
  }
  const int node = expr_.add_op(code, types, std::span(nodes).first(arguments.size()));
  return add_value(node, shape_, op.name);
}

std::optional<Group::Value> Group::record_cast(const RecordedArgument& argument, DType dtype) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  const int source = add_argument(argument, dtype);
  return add_value(expr_.add_cast(source, dtype), shape_, "cast");
}

std::optional<Group::Value> Group::record_reduction(ReduceKind kind, int node, int axes,
                                                    bool keepdims, DType dtype) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  const int source = expr_.add_cast(add_argument({.node = node}, dtype), dtype);
  Shape shape;
  for (int axis = 0; axis < shape_.ndim(); ++axis) {
    const bool is_reduced = axis >= shape_.ndim() - axes;
    if (!is_reduced || keepdims) shape.push_back(is_reduced ? 1 : shape_[axis]);
  }
  reduced_axes_ = axes;
  return add_value(expr_.add_reduce(kind, source), shape, name(kind));
}

void Group::run(const char* reason) {
  trace::Span span("fused", "op");
  if (!is_reporting() && !span.is_open()) {
    run_once(reason, nullptr);
    return;
  }
  GroupReport filled;
  const bool is_first = run_once(reason, &filled);
  span.add_bytes(filled.fused_bytes);
  if (is_first) report(std::move(filled));
}

bool Group::run_once(const char* reason, GroupReport* report) {
  std::vector<Tensor>
      read;  // let go behind the lock: owners of borrowed memory may wait for others
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (is_closed_) return false;
  is_closed_ = true;
  const StreamScope scope(stream_);
  if (report != nullptr) {
    report->ops.assign(ops_.begin(), ops_.end());
    report->shape = shape_;
    report->unfused_bytes = unfused_bytes_;
    report->reason = reason;
  }
  try {
    compute(report);
  } catch (const Interrupted&) {  // whoever needs the values later has not interrupted anything
    error_ = std::make_exception_ptr(
        ExecutionError("fused: the computation of this value was interrupted"));
    read.swap(leaves_);
    release();
    throw;
  } catch (...) {
    error_ = std::current_exception();
    read.swap(leaves_);
    release();
    throw;
  }
  read.swap(leaves_);
  release();
  return true;
}

void Group::compute(GroupReport* report) {
  std::vector<std::shared_ptr<Storage>> held;
  std::vector<Tensor> results;
  int64_t bytes = 0;
  for (const Pending& value : values_) {
    std::shared_ptr<Storage> storage = value.storage.lock();
    if (!storage) continue;
    // Others may look at the deferred storage meanwhile: it gets its memory when the work is done.
    results.emplace_back(memory::allocate_storage(storage->nbytes(), stream_.device),
                         contiguous_layout(value.shape), value.dtype);
    bytes += storage->nbytes();
    held.push_back(std::move(storage));
    expr_.add_output(value.node);
  }
  for (const Tensor& leaf : leaves_) bytes += leaf.nbytes();
  if (report != nullptr) {
    report->inputs = static_cast<int>(leaves_.size());
    report->outputs = static_cast<int>(held.size());
    report->fused_bytes = held.empty() ? 0 : bytes;
  }
  if (held.empty()) return;
  std::vector<const Tensor*> leaves, outputs;
  for (const Tensor& leaf : leaves_) leaves.push_back(&leaf);
  for (const Tensor& result : results) outputs.push_back(&result);
  jit::run(expr_, {shape_, reduced_axes_, leaves, parameters_, outputs});
  for (size_t i = 0; i < held.size(); ++i) {
    held[i]->fulfil(results[i].storage()->data(), results[i].storage());
  }
}

/// Lets go of everything read: the values' storages keep the group alive, not its inputs.
void Group::release() {
  leaf_nodes_.clear();
  parameters_.clear();
  values_.clear();
  expr_.clear();
}

}  // namespace cuop::jit
