#include "cuop/jit/group.h"

#include <algorithm>
#include <complex>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/trace.h"
#include "cuop/jit/run.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

/// The groups of all threads that have something to read.
class Readers {
 public:
  static Readers& instance() {
    static auto* made = new Readers;  // threads may compute while the process ends
    return *made;
  }
  void add(const std::shared_ptr<Group>& group) {
    const std::lock_guard lock(mutex_);
    groups_.emplace(group.get(), group);
    count_ = groups_.size();
  }
  void remove(const Group* group) noexcept {
    const std::lock_guard lock(mutex_);
    groups_.erase(group);
    count_ = groups_.size();
  }
  std::vector<std::shared_ptr<Group>> all() const {
    if (count_ == 0) return {};
    std::vector<std::shared_ptr<Group>> result;
    const std::lock_guard lock(mutex_);
    for (const auto& [address, group] : groups_) {
      if (auto alive = group.lock()) result.push_back(std::move(alive));
    }
    return result;
  }

 private:
  mutable ForkMutex mutex_;
  std::unordered_map<const Group*, std::weak_ptr<Group>> groups_;
  std::atomic<size_t> count_ = 0;
};

}  // namespace

Group::~Group() {
  if (is_reader_) Readers::instance().remove(this);
}

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
  if (runner_ == std::this_thread::get_id()) return false;  // amid it, as a memory callback is
  const std::lock_guard lock(leaves_mutex_);
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
  if (!std::exchange(is_reader_, true)) Readers::instance().add(shared_from_this());
  const std::lock_guard lock(leaves_mutex_);
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
  unfused_bytes_ += layout_.size() * itemsize(expr_.node(argument.node).dtype);
  return argument.node;
}

Group::Value Group::add_value(int node, const Layout& layout, const char* op) {
  const DType dtype = expr_.node(node).dtype;
  const int64_t bytes = layout.size() * itemsize(dtype);
  auto storage = Storage::deferred(bytes, stream_.device, [self = shared_from_this()] {
    self->run("a value was needed outside of elementwise work");
  });
  values_.push_back({node, storage, dtype, layout});
  ops_.push_back(op);
  unfused_bytes_ += bytes;
  return {node, Tensor(std::move(storage), layout, dtype)};
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
  return add_value(node, layout_, op.name);
}

std::optional<Group::Value> Group::record_cast(const RecordedArgument& argument, DType dtype) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  const int source = add_argument(argument, dtype);
  return add_value(expr_.add_cast(source, dtype), layout_, "cast");
}

std::optional<Group::Value> Group::record_reduction(ReduceKind kind, int node, int axes,
                                                    bool keepdims, DType dtype) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  const int source = expr_.add_cast(add_argument({.node = node}, dtype), dtype);
  Shape kept;
  for (int axis = 0; axis < shape().ndim(); ++axis) {
    const bool is_reduced = axis >= shape().ndim() - axes;
    if (!is_reduced || keepdims) kept.push_back(is_reduced ? 1 : shape()[axis]);
  }
  reduced_axes_ = axes;
  return add_value(expr_.add_reduce(kind, source), contiguous_layout(kept), name(kind));
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
  struct Runner {
    std::atomic<std::thread::id>& who;
    explicit Runner(std::atomic<std::thread::id>& runner) : who(runner) {
      who = std::this_thread::get_id();
    }
    ~Runner() { who = std::thread::id(); }
  } const runner(runner_);
  const StreamScope scope(stream_);
  if (report != nullptr) {
    report->ops.assign(ops_.begin(), ops_.end());
    report->shape = shape();
    report->unfused_bytes = unfused_bytes_;
    report->reason = reason;
  }
  try {
    compute(report);
  } catch (const Interrupted&) {  // whoever needs the values later has not interrupted anything
    error_ = std::make_exception_ptr(
        ExecutionError("fused: the computation of this value was interrupted"));
    read = release();
    throw;
  } catch (...) {
    error_ = std::current_exception();
    read = release();
    throw;
  }
  read = release();
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
    results.emplace_back(memory::allocate_storage(storage->nbytes(), stream_.device), value.layout,
                         value.dtype);
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
  jit::run(expr_, {shape(), reduced_axes_, leaves, parameters_, outputs});
  for (size_t i = 0; i < held.size(); ++i) {
    held[i]->fulfil(results[i].storage()->data(), results[i].storage());
  }
}

/// The values' storages keep the group alive, not its inputs.
std::vector<Tensor> Group::release() {
  if (std::exchange(is_reader_, false)) Readers::instance().remove(this);
  std::vector<Tensor> read;
  {
    const std::lock_guard lock(leaves_mutex_);
    read.swap(leaves_);
  }
  leaf_nodes_.clear();
  parameters_.clear();
  values_.clear();
  expr_.clear();
  return read;
}

void run_readers(const Tensor& written, const char* reason) {
  for (const auto& group : Readers::instance().all()) {
    if (!group->reads(written)) continue;
    try {
      group->run(reason);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception&) {  // kept by the group
    }
  }
}

}  // namespace cuop::jit
