#include "cuop/backend/cpu/fft.h"

#include <map>
#include <mutex>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/fftw.h"
#include "cuop/core/env.h"

namespace cuop::backend {

FftLibrary& fft_library() { return fftw_library(); }

namespace {

/// The plans that were made, for any number of threads.
class Plans {
 public:
  std::shared_ptr<const FftPlan> find(const FftPlanSpec& spec) const {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(spec);
    return found == plans_.end() ? nullptr : found->second;
  }

  /// The first one stays when two threads made the same.
  std::shared_ptr<const FftPlan> keep(const FftPlanSpec& spec,
                                      std::shared_ptr<const FftPlan> plan) {
    // Enough for any program's sizes; beyond it the cache starts anew (plans in use stay alive).
    constexpr size_t kMaxPlans = 512;
    Map old;
    const std::lock_guard lock(mutex_);
    if (plans_.size() >= kMaxPlans) plans_.swap(old);
    return plans_.emplace(spec, std::move(plan)).first->second;
  }

 private:
  using Map = std::map<FftPlanSpec, std::shared_ptr<const FftPlan>>;
  mutable std::mutex mutex_;
  Map plans_;
};

Plans& plans() {
  static auto* kept = new Plans;  // threads may compute while the process ends
  return *kept;
}

}  // namespace

std::shared_ptr<const FftPlan> fft_plan(const FftPlanSpec& spec) {
  if (auto known = plans().find(spec)) return known;
  const auto made = std::make_shared<std::shared_ptr<const FftPlan>>();
  const auto make = [spec, made] { *made = plans().keep(spec, fft_library().make_plan(spec)); };
  run_apart_if(env().fft_measure.value, make);  // the library may measure for minutes
  return *made;
}

FftInfo fft_info() { return {fft_library().is_available(), fft_library().description()}; }

}  // namespace cuop::backend
