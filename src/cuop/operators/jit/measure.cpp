#include "cuop/operators/jit/measure.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop {

namespace {

/// Beyond this the plain loops of one thread lose to anything; running them would only cost time.
constexpr double kMostFlopsOfSimple = 2e7;
constexpr double kMostFlopsOfTile = 1e9;
/// A kernel this much slower in its first run is not run again.
constexpr double kHopeless = 3.0;
/// What a candidate must gain to replace the default.
constexpr double kLeastGain = 0.02;

bool is_hopeless(const Task& task, const Kernel& kernel) {
  if (kernel.type == KernelType::kSimple) return task.cost.flops > kMostFlopsOfSimple;
  return kernel.tile != 0 && task.cost.flops > kMostFlopsOfTile;
}

struct Candidate {
  Kernel kernel;
  Tensor out;
  double best_ms = INFINITY;
  std::string why_out;
};

double timed_run(const Task& task, Candidate& candidate) {
  const int64_t start = trace::now_ns();
  try_kernel(task, candidate.kernel, candidate.out);
  const double ms = static_cast<double>(trace::now_ns() - start) * 1e-6;
  candidate.best_ms = std::min(candidate.best_ms, ms);
  return ms;
}

template <class T>
bool agree(const Tensor& a, const Tensor& b) {
  const T *x = a.data<T>(), *y = b.data<T>();
  const int64_t count = a.size();
  double largest = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(x[i])) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  }
  const double allowed = largest * (sizeof(T) == 4 ? 1e-3 : 1e-9);
  for (int64_t i = 0; i < count; ++i) {
    const bool is_same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) ||
                         std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])) <= allowed;
    if (!is_same) return false;
  }
  return true;
}

}  // namespace

void run_kernel(const Task& task, const Kernel& kernel, const Tensor& out) {
  const backend::KernelScope scope(kernel);
  task.run(out);
}

void try_kernel(const Task& task, const Kernel& kernel, const Tensor& out) {
  const backend::KernelScope scope(kernel);
  (task.trial ? task.trial : task.run)(out);
}

Tensor trial_output(const Task& task) {
  return task.reads_out ? clone(task.out)
                        : empty(task.out.shape(), task.out.dtype(), task.out.device());
}

bool results_agree(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(a), y = contiguous(b);
  return visit_dtype(FloatTypes{}, x.dtype(), "comparison of kernels",
                     [&](auto tag) { return agree<typename decltype(tag)::type>(x, y); });
}

Measured fastest_kernel(const Task& task, const std::vector<Kernel>& kernels,
                        const MeasureOptions& options) {
  const int64_t deadline = trace::now_ns() + static_cast<int64_t>(options.seconds * 1e9);
  std::vector<Candidate> candidates;
  for (const Kernel& kernel : kernels) candidates.push_back({kernel, {}, INFINITY, ""});
  Measured result;
  Candidate& first = candidates.front();
  first.out = trial_output(task);
  timed_run(task, first);

  for (size_t i = 1; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    if (is_hopeless(task, candidate.kernel)) {
      candidate.why_out = "not run: too many operations";
    } else if (trace::now_ns() > deadline) {
      candidate.why_out = "not run: out of time";
      result.is_complete = false;
    } else {
      candidate.out = trial_output(task);
      try {
        timed_run(task, candidate);
        if (!results_agree(first.out, candidate.out)) candidate.why_out = "another result";
      } catch (const Error& error) {
        candidate.why_out = error.what();
      }
    }
  }
  for (int round = 1; round < options.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      const bool is_slow = candidate.best_ms > kHopeless * first.best_ms && round > 1;
      if (!candidate.why_out.empty() || is_slow || trace::now_ns() > deadline) continue;
      timed_run(task, candidate);
    }
  }

  const Candidate* winner = &first;
  for (const Candidate& candidate : candidates) {
    const bool is_out = !candidate.why_out.empty();
    result.text += is_out ? cat(name(candidate.kernel), ": ", candidate.why_out, "\n")
                          : cat(name(candidate.kernel), ": ", candidate.best_ms, " ms\n");
    const double bar = winner == &first ? first.best_ms * (1.0 - kLeastGain) : winner->best_ms;
    if (!is_out && candidate.best_ms < bar) winner = &candidate;
  }
  result.kernel = winner->kernel;
  return result;
}

}  // namespace cuop
