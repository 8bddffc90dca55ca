#include "cuop/backend/cpu/fft.h"

#include <map>
#include <mutex>

#include "cuop/backend/cpu/fftw.h"

namespace cuop::backend {

FftLibrary& fft_library() { return fftw_library(); }

std::shared_ptr<const FftPlan> fft_plan(const FftPlanSpec& spec) {
  // Enough for any program's sizes; beyond it the cache starts anew (plans in use stay alive).
  constexpr size_t kMaxPlans = 512;
  static std::mutex mutex;
  static auto* plans = new std::map<FftPlanSpec, std::shared_ptr<const FftPlan>>;
  const std::lock_guard lock(mutex);
  if (const auto found = plans->find(spec); found != plans->end()) return found->second;
  if (plans->size() >= kMaxPlans) plans->clear();
  std::shared_ptr<const FftPlan> plan = fft_library().make_plan(spec);
  plans->emplace(spec, plan);
  return plan;
}

FftInfo fft_info() { return {fft_library().is_available(), fft_library().description()}; }

}  // namespace cuop::backend
