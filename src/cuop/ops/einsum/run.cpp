#include <algorithm>
#include <utility>

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/einsum/pair_product_internal.h"
#include "cuop/ops/einsum/run_internal.h"
#include "cuop/ops/elementwise/elementwise.h"

namespace cuop::pairwise {

namespace {

/// Finds for one tensor after the other how it is made.
class Arranger {
 public:
  Arranger(const Contraction& contraction, const std::vector<ContractionStep>& steps,
           const std::vector<Layout>& operands)
      : contraction_(contraction),
        steps_(steps),
        names_(contraction.tensors(steps)),
        layouts_(operands) {}

  std::vector<Layout> run() {
    for (size_t i = 0; i < steps_.size(); ++i) layouts_.push_back(layout_of(i));
    return std::move(layouts_);
  }

 private:
  Layout layout_of(size_t number) const {
    const ContractionStep& step = steps_[number];
    const Shape shape = contraction_.shape(step.result);
    if (!step.is_pair()) return sum_layout(named(step.left), step.result);
    if (number + 1 == steps_.size()) return contiguous_layout(shape);
    return best_layout(named(step.left), named(step.right), step.result, consumer_of(number));
  }

  Consumer consumer_of(size_t number) const {
    const int made = static_cast<int>(contraction_.inputs.size() + number);
    for (size_t i = number + 1; i < steps_.size(); ++i) {
      const ContractionStep& step = steps_[i];
      if (step.left != made && step.right != made) continue;
      Consumer consumer;
      consumer.result = step.result;
      if (step.is_pair()) consumer.other = named(step.left == made ? step.right : step.left);
      if (i + 1 == steps_.size()) {
        consumer.made = contiguous_layout(contraction_.shape(step.result));
      }
      return consumer;
    }
    return {};
  }

  /// Of a tensor that is not there yet row-major.
  Named named(int number) const {
    const auto i = static_cast<size_t>(number);
    if (i < layouts_.size()) return {layouts_[i], names_[i]};
    return {contiguous_layout(contraction_.shape(names_[i])), names_[i]};
  }

  const Contraction& contraction_;
  const std::vector<ContractionStep>& steps_;
  std::vector<Indices> names_;
  std::vector<Layout> layouts_;
};

/// Elements as a number that sums of many do not overflow.
double size_of(const Layout& layout) { return static_cast<double>(layout.size()); }

int64_t whole_bytes(double bytes) {
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(std::min(bytes, kMost));
}

}  // namespace

std::vector<Layout> step_layouts(const Contraction& contraction,
                                 const std::vector<ContractionStep>& steps,
                                 const std::vector<Layout>& operands) {
  return Arranger(contraction, steps, operands).run();
}

Tensor run_steps(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                 std::vector<Tensor> operands, const std::optional<Tensor>& out) {
  const std::vector<Indices> names = contraction.tensors(steps);
  std::vector<Layout> given;
  for (const Tensor& operand : operands) given.push_back(operand.layout());
  const std::vector<Layout> layouts = step_layouts(contraction, steps, given);
  std::vector<Tensor> tensors = std::move(operands);
  const auto at = [&](int number) {
    const auto i = static_cast<size_t>(number);
    return NamedTensor{tensors[i], names[i]};
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const ContractionStep& step = steps[i];
    const bool is_placed = out && i + 1 == steps.size();
    Tensor made = is_placed ? *out : Tensor();
    if (!step.is_pair()) {
      const Tensor sums = sum_to(at(step.left), step.result);
      if (is_placed) copy_into(*out, sums);
      if (!is_placed) made = sums;
    } else {
      const NamedTensor left = at(step.left), right = at(step.right);
      if (!is_placed) {
        const Layout& layout = layouts[tensors.size()];
        made =
            empty({layout.size()}, left.tensor.dtype(), left.tensor.device()).with_layout(layout);
      }
      multiply_pair(left, right, step.result, made);
    }
    tensors.push_back(std::move(made));
    tensors[static_cast<size_t>(step.left)] = Tensor();
    if (step.is_pair()) tensors[static_cast<size_t>(step.right)] = Tensor();
  }
  return tensors.back();
}

void SliceSums::add(const Tensor& made, const Tensor& block, int64_t place, int64_t count) {
  const DType wide = compute_dtype(block.dtype());
  if (place == 0) {
    const bool is_wider = count > 1 && wide != block.dtype();
    total_ = is_wider ? empty(block.shape(), wide, block.device()) : block;
    copy_into(total_, made);
  } else if (is_bool(block.dtype())) {
    logical_or(total_, made, &total_);
  } else {
    cuop::add(total_, made, &total_);
  }
  if (place + 1 < count) return;
  if (total_.dtype() != block.dtype()) copy_into(block, total_);
  total_ = Tensor();
}

namespace {

/// Bytes of what blocks of a GPU add up of sums that they share.
double partial_sums(const Named& x, const Layout& out, const RunSizes& sizes) {
  if (!sizes.figures.is_gpu() || out.size() == 0) return 0;
  const int64_t state = itemsize(is_complex(sizes.dtype) ? DType::kComplex128 : DType::kFloat64);
  return static_cast<double>(jit::most_partial_bytes(out.size(), x.layout.size() / out.size(),
                                                     state, sizes.figures.multiprocessors));
}

/// Bytes that a pair takes beside its operands and its result.
double pair_bytes(const Named& left, const Named& right, const Indices& result, const Layout& out,
                  const RunSizes& sizes) {
  const DType made = sizes.widened.value_or(sizes.dtype);
  const PairWork work = pair_work(left, right, result, out, sizes.dtype, sizes.device);
  const bool is_cast =
      made != sizes.dtype && !pair_indices(left.indices, right.indices, result).is_matrix_product();
  double elements = work.elements;
  if (is_cast) elements += size_of(left.layout) + size_of(right.layout);
  double bytes = elements * static_cast<double>(itemsize(made));
  if (work.product) {
    const DType taken = is_cast ? made : sizes.dtype;
    bytes += static_cast<double>(product_bytes(*work.product, taken, made, sizes.figures));
  }
  return bytes;
}

}  // namespace

int64_t run_bytes(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                  const RunSizes& sizes) {
  const std::vector<Indices> names = contraction.tensors(steps);
  const std::vector<Layout> layouts = step_layouts(contraction, steps, sizes.operands);
  const auto named = [&](int number) {
    const auto i = static_cast<size_t>(number);
    return Named{layouts[i], names[i]};
  };
  const double item = static_cast<double>(itemsize(sizes.dtype));
  std::vector<double> held(sizes.held.begin(), sizes.held.end());
  held.resize(contraction.inputs.size());
  double live = 0, peak = 0;
  for (const double each : held) live += each;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ContractionStep& step = steps[i];
    const bool is_placed = sizes.out && i + 1 == steps.size();
    const Layout& out = is_placed ? *sizes.out : layouts[contraction.inputs.size() + i];
    double made = is_placed ? 0.0 : item * size_of(out), scratch = 0;
    if (!step.is_pair()) {
      scratch = sum_scratch(named(step.left), step.result, sizes.dtype);
      const bool is_view = names[static_cast<size_t>(step.left)].size() == step.result.size();
      if (is_view) made = 0;
      if (is_placed && !is_view) scratch += item * size_of(out);
      if (!is_view) scratch += partial_sums(named(step.left), out, sizes);
    } else if (sizes.is_any_smaller) {
      const double copied = size_of(named(step.left).layout) + size_of(named(step.right).layout);
      // Short dot products keep what they add up, which is no larger than either.
      scratch = item * (copied + size_of(out));
    } else {
      scratch = pair_bytes(named(step.left), named(step.right), step.result, out, sizes);
    }
    peak = std::max(peak, live + made + scratch);
    held.push_back(made);
    live += made;
    for (const int part : {step.left, step.right}) {
      if (part >= 0) live -= std::exchange(held[static_cast<size_t>(part)], 0.0);
    }
  }
  return whole_bytes(peak);
}

}  // namespace cuop::pairwise
