#include "cuop/dist/plan/fft_plan.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/plan/chirp_plan.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/pass_plan.h"

namespace cuop::dist {
namespace {

using AxisList = std::vector<int>;

AxisList without(AxisList axes, std::initializer_list<int> left_out) {
  std::erase_if(axes, [&](int axis) { return has_axis(AxisList(left_out), axis); });
  return axes;
}

/// Axes that are transformed together, and the sharding under which they are.
struct Stage {
  AxisList axes;
  Sharding at;
};

class Choices {
 public:
  explicit Choices(const FftProblem& problem)
      : problem_(problem), result_(fft_result(problem).shape), ndim_(result_.ndim()) {}

  std::vector<PassChoice> all() {
    one_pass();
    const size_t count = problem_.axes.size();
    if (count < 2) return std::move(choices_);
    for (const int last : problem_.axes) {
      // The halved axis belongs to the pass that meets real numbers.
      if (is_real() && last == problem_.axes.back()) continue;
      two_passes(count == 2 ? "pencil" : "slab", last);
    }
    if (count > 2) three_passes();
    return std::move(choices_);
  }

 private:
  int ranks() const { return problem_.x.sharding.mesh().size(); }
  bool is_real() const {
    return problem_.kind == FftKind::kRfft || problem_.kind == FftKind::kIrfft;
  }
  Sharding split(int dim) const { return split_over_ranks(ranks(), ndim_, dim); }

  int longest(const AxisList& dims) const {
    return *std::max_element(dims.begin(), dims.end(),
                             [&](int a, int b) { return result_[a] < result_[b]; });
  }

  /// What lies after each stage: an axis has its result's length once it is transformed.
  void add(const std::string& strategy, const std::string& detail,
           const std::vector<Stage>& stages) {
    PassChoice choice{strategy, detail, {}};
    Shape shape = problem_.x.shape;
    const DType made = fft_result(problem_).dtype;
    for (size_t i = 0; i < stages.size(); ++i) {
      for (const int axis : stages[i].axes) shape[axis] = result_[axis];
      const bool is_done = i + 1 == stages.size();
      choice.passes.push_back(
          {stages[i].at, stages[i].axes, shape, is_done ? made : complex_dtype(real_dtype(made))});
    }
    choices_.push_back(std::move(choice));
  }

  /// The stages in this order, and from the last to the first, as far as real numbers allow.
  void add_both_ways(const std::string& strategy, const std::string& detail,
                     std::vector<Stage> stages) {
    if (problem_.kind != FftKind::kIrfft) add(strategy, detail, stages);
    if (problem_.kind == FftKind::kRfft) return;
    std::reverse(stages.begin(), stages.end());
    add(strategy, cat(detail, ", backwards"), stages);
  }

  void one_pass() {
    const Sharding& as_is = problem_.x.sharding;
    const bool is_whole_there =
        std::all_of(problem_.axes.begin(), problem_.axes.end(),
                    [&](int axis) { return as_is.spec().axes(axis).empty(); });
    if (as_is.single_rank() >= 0) {
      add("root", "", {{problem_.axes, as_is}});
    } else if (is_whole_there) {
      add("keep", cat(as_is), {{problem_.axes, as_is}});
    }
    AxisList others;
    for (int dim = 0; dim < ndim_; ++dim) {
      if (!has_axis(problem_.axes, dim)) others.push_back(dim);
    }
    if (!others.empty()) {
      const Sharding at = split(longest(others));
      add("batch", cat(at), {{problem_.axes, at}});
    } else if (problem_.axes.size() == 1) {
      const int64_t n = problem_.lengths[0];
      add("one_rank", four_step_factors(n, ranks()) ? "" : cat(n, " has no factors"),
          {{problem_.axes, Sharding::on_rank(as_is.mesh(), 0)}});
    }
  }

  /// All axes but one while that one is split, then that one while another is.
  void two_passes(const char* strategy, int last) {
    const AxisList first = without(problem_.axes, {last});
    const int then = longest(first);
    const std::vector<Stage> stages{{first, split(last)}, {{last}, split(then)}};
    const std::string detail = cat("split along ", last, ", then ", then);
    if (problem_.axes.size() > 2 || is_real()) return add_both_ways(strategy, detail, stages);
    add(strategy, detail, stages);  // the other axis gives the way back
  }

  void three_passes() {
    const int x = problem_.axes.front(), z = problem_.axes.back();
    const int y = problem_.axes[problem_.axes.size() - 2];
    for (int rows = 2; rows <= ranks() / 2; ++rows) {
      if (ranks() % rows != 0) continue;
      const Mesh grid({rows, ranks() / rows}, {"r", "c"});
      const auto split_two = [&](int over_rows, int over_columns) {
        std::vector<Spec::Axes> dims(static_cast<size_t>(ndim_));
        dims[static_cast<size_t>(over_rows)] = {"r"};
        dims[static_cast<size_t>(over_columns)] = {"c"};
        return Sharding(grid, Spec(dims));
      };
      add_both_ways("pencil", cat("grid ", rows, 'x', ranks() / rows),
                    {{without(problem_.axes, {x, y}), split_two(x, y)},
                     {{y}, split_two(x, z)},
                     {{x}, split_two(y, z)}});
    }
    const bool has_grid = std::any_of(choices_.begin(), choices_.end(),
                                      [](const auto& each) { return each.strategy == "pencil"; });
    if (!has_grid) two_passes("pencil", x);  // a prime number of ranks has one row
  }

  const FftProblem& problem_;
  Shape result_;
  int ndim_;
  std::vector<PassChoice> choices_;
};

/// One axis, and no other dimension that gives all ranks something to do.
bool is_long(const FftProblem& problem) {
  if (problem.axes.size() != 1) return false;
  const Shape& shape = problem.x.shape;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    if (dim != problem.axes[0] && shape[dim] >= problem.x.sharding.mesh().size()) return false;
  }
  return true;
}

/// Of shorter lines ranks would have less than a column each, and an infinity in one, which a chirp
/// spreads as NaN over all, does not show in the right places.
bool is_worth_chirp(const FftProblem& problem) {
  const auto [m1, m2] = ChirpSteps(problem).sizes().matrix;
  return std::min(m1, m2) >= std::max(2, problem.x.sharding.mesh().size());
}

}  // namespace

Plan plan_fft(const FftProblem& problem, const Machine& machine, std::string_view strategy) {
  const PassProblem in_passes{problem.op, problem.x, Choices(problem).all(),
                              fft_result(problem).dtype, problem.wanted};
  std::vector<Plan> plans = pass_plans(in_passes, machine);
  if (is_long(problem)) {
    const int ranks = problem.x.sharding.mesh().size();
    const auto factors = four_step_factors(problem.lengths[0], ranks);
    if (factors) plans.push_back(plan_four_step(problem, *factors, machine));
    const bool is_asked_for = strategy == kChirp;
    if (element_count(problem.x.shape) > 0 && (is_asked_for || is_worth_chirp(problem))) {
      plans.push_back(plan_chirp(problem, machine));
    }
  }
  return choose(std::move(plans), machine, strategy, fft_floor(problem, machine));
}

}  // namespace cuop::dist
