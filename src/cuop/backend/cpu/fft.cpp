#include "cuop/backend/cpu/fft.h"

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/fft_library.h"
#include "cuop/core/env.h"
#include "cuop/core/lru_cache.h"

namespace cuop::backend {

FftLibrary& fft_library() { return fftw_library(); }

namespace {

using Plans = SharedLruCache<FftPlanSpec, std::shared_ptr<const FftPlan>, FftPlanSpecHash>;
Plans& plans() {
  static auto* kept = new Plans(512);  // threads may compute while the process ends
  return *kept;
}

}  // namespace

std::shared_ptr<const FftPlan> fft_plan(const FftPlanSpec& spec) {
  if (auto known = plans().find(spec)) return known;
  const auto made = std::make_shared<std::shared_ptr<const FftPlan>>();
  const auto make = [spec, made] {
    *made = plans().get(spec, [&] { return fft_library().make_plan(spec); });
  };
  run_apart_if(env().fft_measure.value, make);  // the library may measure for minutes
  return *made;
}

FftInfo fft_info() { return {fft_library().is_available(), fft_library().description()}; }

}  // namespace cuop::backend
