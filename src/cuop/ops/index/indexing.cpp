#include "cuop/ops/index/indexing.h"

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/offsets_internal.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr const char* kValue = "index assignment: value";

bool is_mask(const Index& index) {
  const auto* tensor = std::get_if<Tensor>(&index);
  return tensor != nullptr && is_bool(tensor->dtype());
}

/// How many axes of the tensor an entry uses up.
int consumed_axes(const Index& index) {
  if (std::holds_alternative<NewAxisIndex>(index) || std::holds_alternative<EllipsisIndex>(index)) {
    return 0;
  }
  return is_mask(index) ? std::get<Tensor>(index).ndim() : 1;
}

/// The parsed list: a view by the integers, slices and new axes, and what is picked from it.
struct Parsed {
  Tensor view;
  Picks picks;
  bool has_arrays = false;
};

/// Walks the list from left to right; `axis` is the next axis of the view that grows behind it.
class Parser {
 public:
  Parser(const Tensor& x, std::span<const Index> index)
      : list_(complete_index(x.ndim(), index)), view_(x), unindexed_(x.ndim()) {
    for (const Index& entry : list_) {
      unindexed_ -= consumed_axes(entry);
      has_arrays_ = has_arrays_ || std::holds_alternative<Tensor>(entry);
    }
  }

  Parsed run() {
    for (position_ = 0; position_ < list_.size(); ++position_) {
      std::visit([this](const auto& entry) { add(entry); }, list_[position_]);
    }
    Parsed parsed{view_, {}, has_arrays_};
    if (has_arrays_) parsed.picks = combine_offsets(view_, parts_, axes_, is_together());
    return parsed;
  }

 private:
  void add(int64_t index) {
    // Beside arrays an integer is an array of one: it counts when their place is decided.
    if (has_arrays_) note_array();
    view_ = select(view_, axis_, index);
  }
  void add(const SliceIndex& s) {
    view_ = slice(view_, axis_, s.start, s.stop, s.step);
    ++axis_;
  }
  void add(NewAxisIndex) {
    view_ = unsqueeze(view_, axis_);
    ++axis_;
  }
  void add(EllipsisIndex) { axis_ += unindexed_; }
  void add(const Tensor& array) {
    note_array();
    if (is_bool(array.dtype())) {
      parts_.push_back(mask_offsets(view_, axis_, array));
      for (int i = 0; i < array.ndim(); ++i) axes_.push_back(axis_ + i);
      axis_ += array.ndim();
    } else {
      parts_.push_back(index_offsets("index", view_, axis_, array));
      axes_.push_back(axis_++);
    }
  }

  void note_array() {
    if (arrays_.empty()) first_axis_ = axis_;
    arrays_.push_back(position_);
  }

  /// Arrays that stand side by side leave their axes in place; others go to the front: -1.
  int is_together() const {
    const bool side_by_side = arrays_.back() - arrays_.front() + 1 == arrays_.size();
    return side_by_side ? first_axis_ : -1;
  }

  std::vector<Index> list_;
  Tensor view_;
  int unindexed_;
  bool has_arrays_ = false;
  size_t position_ = 0;
  int axis_ = 0;
  int first_axis_ = 0;
  std::vector<size_t> arrays_;  // positions in the list
  std::vector<Offsets> parts_;
  std::vector<int> axes_;  // of the view, that the parts replace
};

}  // namespace

std::vector<Index> complete_index(int ndim, std::span<const Index> index) {
  std::vector<Index> list(index.begin(), index.end());
  int consumed = 0, ellipses = 0;
  for (const Index& entry : list) {
    consumed += consumed_axes(entry);
    ellipses += std::holds_alternative<EllipsisIndex>(entry) ? 1 : 0;
    const auto* tensor = std::get_if<Tensor>(&entry);
    if (tensor != nullptr && !is_bool(tensor->dtype()) && !is_integer(tensor->dtype())) {
      throw DTypeError(
          cat("index: an index array must be bool or of integers, given ", tensor->dtype()));
    }
    if (const auto* s = std::get_if<SliceIndex>(&entry); s != nullptr && s->step == 0) {
      throw ExecutionError("index: the step of a slice must not be 0");
    }
  }
  if (ellipses > 1) {
    throw IndexError(cat("index: ", ellipses, " ellipses (...) were given, at most 1 is allowed"));
  }
  if (consumed > ndim) {
    throw IndexError(
        cat("index: ", consumed, " axes are indexed of a tensor of ", ndim, " dimensions"));
  }
  if (ellipses == 0) list.emplace_back(EllipsisIndex{});
  return list;
}

Tensor get_item(const Tensor& x, std::span<const Index> index) {
  const Parsed parsed = Parser(x, index).run();
  if (!parsed.has_arrays) return parsed.view;
  const trace::Span span("index", "op");
  return gather_picks(parsed.view, parsed.picks, nullptr);
}

void set_item(const Tensor& x, std::span<const Index> index, const Tensor& value) {
  const trace::Span span("index assignment", "op");
  check_writable("index assignment", x);
  common_device("index assignment", {&x, &value});
  const Parsed parsed = Parser(x, index).run();
  if (parsed.has_arrays) {
    scatter_picks(parsed.view, parsed.picks, value);
  } else {
    const Tensor source = squeeze_leading(value, parsed.view.ndim());
    broadcast_to(source.layout(), parsed.view.shape(), kValue);
    copy_into(parsed.view, source);
  }
}

}  // namespace cuop
