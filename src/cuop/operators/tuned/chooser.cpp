#include "cuop/operators/tuned/chooser.h"

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/operators/tuned/demands.h"
#include "cuop/operators/tuned/measure.h"
#include "cuop/tune/machine.h"

namespace cuop {

namespace {

tune::Findings& memory() {
  static auto* findings = new tune::Findings(tune::kMostFindings);
  return *findings;
}

/// `names` of the candidates.
std::string key_of(const ChoiceRequest& request, const std::vector<std::string>& names) {
  std::string key = request.who;
  for (const int64_t size : request.task->sizes) key.append(" ").append(std::to_string(size));
  for (const std::string& name : names) key.append(" ").append(name);
  key.append(demands_text());
  key.append(request.is_measured ? " measured on " : " by rule on ");
  return key + tune::machine_text(request.task->out.device());
}

std::string why_default(const ChoiceRequest& request) {
  if (!request.is_measured) return "the choice is by rule";
  const bool has_choice = request.candidates.size() > 1 || request.is_for_library;
  return has_choice ? "" : "there is no other";
}

/// First what the default leaves to a library, then the kernels beside each other.
tune::Finding measure(const ChoiceRequest& request, tune::SearchLimits limits) {
  const Task& task = *request.task;
  if (!request.is_for_library) {
    return tune::finding_of(fastest_kernel(task, request.candidates, limits));
  }
  const int64_t start = trace::now_ns();
  const tune::Finding library = fastest_algorithms(task, request.candidates.front(), limits);
  if (request.candidates.size() < 2) return library;
  limits.seconds -= static_cast<double>(trace::now_ns() - start) * 1e-9;
  tune::Finding found =
      tune::finding_of(fastest_kernel(task, request.candidates, limits, "library"));
  found.text = library.text + found.text;
  found.is_complete = found.is_complete && library.is_complete;
  found.gain = 1.0 - (1.0 - library.gain) * (1.0 - found.gain);
  found.measurements.insert(found.measurements.begin(), library.measurements.begin(),
                            library.measurements.end());
  return found;
}

}  // namespace

ChosenKernel choose_kernel(const ChoiceRequest& request) {
  const int64_t start = trace::now_ns();
  tune::Problem problem;
  for (const Kernel& kernel : request.candidates) problem.values.push_back(name(kernel));
  problem.key = key_of(request, problem.values);
  problem.device = request.task->out.device();
  problem.search = [&](const tune::SearchLimits& limits) { return measure(request, limits); };
  problem.why_default = why_default(request);
  tune::ChoiceOptions options = request.options;
  options.memory = request.is_cached ? &memory() : nullptr;
  if (!request.is_measured) options.limits.rounds = 0;
  if (!request.is_measured || !request.is_cached) options.store = nullptr;
  const tune::Choosing chosen = tune::choose(problem, options);
  return {request.candidates[chosen.found->winner], chosen.source,
          static_cast<double>(trace::now_ns() - start) * 1e-6, chosen.found};
}

int64_t forget_choices() { return static_cast<int64_t>(memory().clear()); }

}  // namespace cuop
