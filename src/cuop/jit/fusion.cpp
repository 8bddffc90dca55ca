#include "cuop/jit/fusion.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "cuop/core/env.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"
#include "cuop/jit/group.h"
#include "cuop/jit/recording.h"

namespace cuop {

namespace jit {

namespace {

std::atomic<int> chosen_fusion = -1;  // -1: as the environment says

/// A thread's open groups, at most one for each shape and stream, and where pending values are.
class Recorder {
 public:
  struct Place {
    std::weak_ptr<Storage> storage;
    std::shared_ptr<Group> group;
    int node;
    bool is_reduction;
  };

  /// How many scopes are open. Others that end one of them may outlive the thread.
  const std::shared_ptr<std::atomic<int>> depth = std::make_shared<std::atomic<int>>(0);

  bool is_idle() const { return groups_.empty(); }

  void flush_all(const char* reason) {
    // Running a group may not record anything, but it may throw: forget the groups first.
    const auto groups = std::move(groups_);
    groups_.clear();
    places_.clear();
    std::exception_ptr error;
    for (const auto& group : groups) {
      try {
        group->run(reason);
      } catch (const Interrupted&) {  // the others run when somebody needs their values
        throw;
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  void flush_readers(const Tensor& written) {
    const auto groups = groups_;
    for (const auto& group : groups) {
      if (group->reads(written)) flush(group, "a tensor that it reads is written to");
    }
  }

  void flush(const std::shared_ptr<Group>& group, const char* reason) {
    std::erase(groups_, group);
    std::erase_if(places_, [&](const auto& entry) { return entry.second.group == group; });
    group->run(reason);
  }

  /// Where a pending tensor of this thread is, or null.
  const Place* find(const Tensor& tensor) {
    if (!tensor.storage()->is_deferred()) return nullptr;
    const auto found = places_.find(tensor.storage().get());
    if (found == places_.end()) return nullptr;
    const bool is_current = found->second.storage.lock() == tensor.storage();
    return is_current && !found->second.group->is_closed() ? &found->second : nullptr;
  }

  /// The open group of that shape; when there is none a new one, whose values lie as the arguments.
  std::shared_ptr<Group> group_of(const Shape& shape, Device device,
                                  std::span<const Argument> arguments) {
    std::erase_if(groups_, [](const auto& group) { return group->is_closed(); });
    const Stream stream = current_stream(device);
    for (const auto& group : groups_) {
      if (group->shape() == shape && group->stream() == stream) return group;
    }
    groups_.push_back(std::make_shared<Group>(layout_of_result(shape, arguments), stream));
    return groups_.back();
  }

  Tensor remember(const std::shared_ptr<Group>& group, Group::Value value, bool is_reduction) {
    places_[value.tensor.storage().get()] = {value.tensor.storage(), group, value.node,
                                             is_reduction};
    return std::move(value.tensor);
  }

  /// Records one operation over `shape` in the group that it belongs to: record(group, arguments)
  /// does it, giving nothing where the group has run.
  template <class Record>
  Tensor record(const Shape& shape, Device device, std::span<const Argument> arguments,
                const Record& record);

 private:
  /// The value's place when an operation over `shape` can take it from its register; otherwise runs
  /// the group it is pending in, so that it can be read.
  const Place* place_or_settle(const Tensor& tensor, const Shape& shape);

  std::vector<std::shared_ptr<Group>> groups_;
  std::unordered_map<const Storage*, Place> places_;
};

Recorder& recorder() {
  return of_thread([] { return new Recorder; });
}

/// Whether what is recorded now would join the group's work.
bool is_on_current_stream(const Group& group) {
  return group.stream() == current_stream(group.stream().device);
}

const Recorder::Place* Recorder::place_or_settle(const Tensor& tensor, const Shape& shape) {
  const Place* place = find(tensor);
  if (place == nullptr) {
    tensor.data();  // another thread's pending value, if pending at all
    return nullptr;
  }
  const std::shared_ptr<Group> group = place->group;
  if (place->is_reduction) {
    flush(group, "the result of a reduction is used");
    return nullptr;
  }
  if (!is_on_current_stream(*group)) {
    flush(group, "its value is used on another stream");
    return nullptr;
  }
  if (!(group->shape() == shape)) {
    flush(group, cat("its value of shape ", group->shape(), " is broadcast to ", shape).c_str());
    return nullptr;
  }
  if (!(tensor.layout() == group->layout())) {
    flush(group, "a view of its value is used");
    return nullptr;
  }
  return place;
}

template <class Record>
Tensor Recorder::record(const Shape& shape, Device device, std::span<const Argument> arguments,
                        const Record& record) {
  std::array<RecordedArgument, kMaxArity> recorded;
  const auto used = std::span(recorded).first(arguments.size());
  for (;;) {
    // Settling one argument may run the group of another: all are settled before any is placed.
    for (const Argument& argument : arguments) {
      if (argument.tensor != nullptr) place_or_settle(*argument.tensor, shape);
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Place* place = arguments[i].tensor != nullptr ? find(*arguments[i].tensor) : nullptr;
      used[i] = place != nullptr ? RecordedArgument{place->node, nullptr, nullptr}
                                 : RecordedArgument{-1, arguments[i].tensor, arguments[i].number};
    }
    const std::shared_ptr<Group> group = group_of(shape, device, arguments);
    if (const char* reason = group->obstacle(used)) {
      flush(group, reason);
      continue;
    }
    // Nothing when another thread has run the group meanwhile: its values are tensors by now.
    if (auto value = record(*group, used)) return remember(group, std::move(*value), false);
  }
}

}  // namespace

Layout layout_of_result(const Shape& shape, std::span<const Argument> arguments) {
  std::array<const Layout*, kMaxArity> layouts{};
  size_t count = 0;
  for (const Argument& argument : arguments) {
    if (argument.tensor != nullptr) layouts[count++] = &argument.tensor->layout();
  }
  return cuop::layout_of_result(shape, std::span(layouts).first(count));
}

bool is_recording() { return *recorder().depth > 0 && kernel_fusion(); }

Tensor record_op(int code, OpTypes types, const Shape& shape, Device device,
                 std::span<const Argument> arguments) {
  return recorder().record(shape, device, arguments, [&](Group& group, auto recorded) {
    return group.record_op(code, types, recorded);
  });
}

std::optional<Tensor> record_cast(const Tensor& tensor, DType dtype) {
  if (!is_recording() || (is_complex(tensor.dtype()) && !is_complex(dtype))) return std::nullopt;
  const Argument argument{&tensor, nullptr};
  return recorder().record(
      tensor.shape(), tensor.device(), {&argument, 1},
      [&](Group& group, auto recorded) { return group.record_cast(recorded[0], dtype); });
}

std::optional<Tensor> record_reduction(ReduceKind kind, const Tensor& tensor,
                                       std::span<const int> axes, bool keepdims, DType result) {
  if (!is_recording()) return std::nullopt;
  const Recorder::Place* place = recorder().find(tensor);
  if (place == nullptr || place->is_reduction) return std::nullopt;
  const std::shared_ptr<Group> group = place->group;
  if (!is_on_current_stream(*group)) return std::nullopt;
  const int ndim = tensor.ndim(), count = static_cast<int>(axes.size());
  if (count == 0 || !(tensor.layout() == group->layout())) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    if (axes[static_cast<size_t>(i)] != ndim - count + i) return std::nullopt;
  }
  const bool is_selection = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  if (is_selection && (tensor.size() == 0 || is_complex(tensor.dtype()))) return std::nullopt;
  const bool has_kernel = is_selection || is_floating(result) || is_complex(result) ||
                          result == DType::kInt64 || result == DType::kUInt64;
  if (!has_kernel || (kind == ReduceKind::kMean && is_integer(result))) return std::nullopt;
  const RecordedArgument argument{place->node, nullptr, nullptr};
  if (const char* reason = group->obstacle({&argument, 1})) {
    recorder().flush(group, reason);
    return std::nullopt;
  }
  if (group->reduced_axes() != 0 && group->reduced_axes() != count) {
    recorder().flush(group, "its value is reduced over different axes");
    return std::nullopt;
  }
  auto value = group->record_reduction(kind, place->node, count, keepdims, result);
  if (!value) return std::nullopt;
  return recorder().remember(group, std::move(*value), true);
}

void flush_pending(const char* reason) {
  if (!recorder().is_idle()) recorder().flush_all(reason);
}

void before_write(const Tensor& written) {
  if (written.storage()->is_deferred()) written.data();
  if (!recorder().is_idle()) recorder().flush_readers(written);
  run_readers(written, "a tensor that it reads is written to by another thread");
}

}  // namespace jit

Fused::Fused() : depth_(jit::recorder().depth) { ++*depth_; }

Fused::~Fused() {
  try {
    close();
  } catch (...) {  // kept by the group and thrown where a value of it is used
  }
}

void Fused::close() {
  if (const auto depth = std::exchange(depth_, nullptr); depth && --*depth == 0) {
    jit::flush_pending("the fused scope ended");
  }
}

void Fused::abandon() noexcept {
  if (const auto depth = std::exchange(depth_, nullptr)) --*depth;
}

void set_kernel_fusion(bool on) { jit::chosen_fusion = on ? 1 : 0; }

bool kernel_fusion() {
  const int chosen = jit::chosen_fusion;
  return chosen < 0 ? env().kernel_fusion.value : chosen == 1;
}

}  // namespace cuop
