#include <algorithm>
#include <complex>
#include <limits>
#include <mutex>
#include <new>

#include "cuop/backend/cpu/fft_library.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

// FFTW's C interface as its manual documents it ("Advanced Complex/Real-data DFTs", "New-array
// Execute Functions", "Planner Flags"); no header of it is needed to build cuOP.
using PlanHandle = void*;
constexpr int kForwardSign = -1;
constexpr int kBackwardSign = +1;
constexpr unsigned kMeasureFlag = 0U;
constexpr unsigned kPreserveInputFlag = 1U << 4;
constexpr unsigned kEstimateFlag = 1U << 6;

/// The functions of one precision: fftw_* for double, fftwf_* for float.
template <class Real>
struct Functions {
  using Complex = std::complex<Real>;
  const DynLib& library;
  std::string prefix;
  PlanHandle (*plan_many_dft)(int, const int*, int, Complex*, const int*, int, int, Complex*,
                              const int*, int, int, int, unsigned) = load("plan_many_dft");
  PlanHandle (*plan_many_dft_r2c)(int, const int*, int, Real*, const int*, int, int, Complex*,
                                  const int*, int, int, unsigned) = load("plan_many_dft_r2c");
  PlanHandle (*plan_many_dft_c2r)(int, const int*, int, Complex*, const int*, int, int, Real*,
                                  const int*, int, int, unsigned) = load("plan_many_dft_c2r");
  void (*execute_dft)(PlanHandle, Complex*, Complex*) = load("execute_dft");
  void (*execute_dft_r2c)(PlanHandle, Real*, Complex*) = load("execute_dft_r2c");
  void (*execute_dft_c2r)(PlanHandle, Complex*, Real*) = load("execute_dft_c2r");
  void (*destroy_plan)(PlanHandle) = load("destroy_plan");

  Symbol load(const char* name) const { return library.require(prefix + name); }
};

/// FFTW's planner keeps global state: one plan is made or destroyed at a time. It is not used in a
/// child of a fork amid a plan that took too long to wait for.
ForkMutex& planner_mutex() {
  static auto& mutex = *new ForkMutex;
  return mutex;
}

struct AlignedFree {
  void operator()(void* block) const { ::operator delete (block, std::align_val_t{64}); }
};
std::unique_ptr<void, AlignedFree> aligned_block(int64_t bytes) {
  return std::unique_ptr<void, AlignedFree>(
      ::operator new (static_cast<size_t>(bytes), std::align_val_t{64}));
}

unsigned planner_flags() { return env().fft_measure.value ? kMeasureFlag : kEstimateFlag; }

template <class Real>
class FftwPlan final : public FftPlan {
 public:
  using Complex = std::complex<Real>;

  FftwPlan(const Functions<Real>& functions, const FftPlanSpec& spec)
      : functions_(functions), kind_(spec.kind) {
    const std::lock_guard lock(planner_mutex());
    if (planner_mutex().was_left_behind()) {
      throw ExecutionError(
          "fft: this process was forked while another thread made a plan of FFTW for longer than a "
          "fork waits (5 s), and cannot make plans of its own; fork when no other thread makes "
          "one, or make them faster without CUOP_FFT_MEASURE");
    }
    // The planner may write to its arrays, so it gets its own.
    const auto room = [&](int64_t stride, int64_t distance) {
      const int64_t elements = (spec.n - 1) * stride + (spec.batch - 1) * distance + 1;
      return aligned_block(static_cast<int64_t>(sizeof(Complex)) * elements);
    };
    const auto in = room(spec.in_stride, spec.in_distance);
    const auto out = room(spec.out_stride, spec.out_distance);
    const int n = static_cast<int>(spec.n), batch = static_cast<int>(spec.batch);
    const int in_step = static_cast<int>(spec.in_distance);
    const int out_step = static_cast<int>(spec.out_distance);
    const int in_stride = static_cast<int>(spec.in_stride);
    const int out_stride = static_cast<int>(spec.out_stride);
    const unsigned flags = planner_flags();
    const auto complex = [](const auto& block) { return static_cast<Complex*>(block.get()); };
    const auto real = [](const auto& block) { return static_cast<Real*>(block.get()); };
    switch (kind_) {
      case TransformKind::kForward:
      case TransformKind::kBackward:
        handle_ = functions_.plan_many_dft(
            1, &n, batch, complex(in), nullptr, in_stride, in_step, complex(out), nullptr,
            out_stride, out_step, kind_ == TransformKind::kForward ? kForwardSign : kBackwardSign,
            flags | kPreserveInputFlag);
        break;
      case TransformKind::kRealForward:
        handle_ = functions_.plan_many_dft_r2c(1, &n, batch, real(in), nullptr, in_stride, in_step,
                                               complex(out), nullptr, out_stride, out_step,
                                               flags | kPreserveInputFlag);
        break;
      case TransformKind::kRealBackward:
        handle_ =
            functions_.plan_many_dft_c2r(1, &n, batch, complex(in), nullptr, in_stride, in_step,
                                         real(out), nullptr, out_stride, out_step, flags);
        break;
    }
    if (handle_ == nullptr) {
      throw ExecutionError(cat("fft: FFTW has no plan for ", batch, " transforms of length ", n));
    }
  }

  ~FftwPlan() override {
    const std::lock_guard lock(planner_mutex());
    if (planner_mutex().was_left_behind()) return;
    functions_.destroy_plan(handle_);
  }

  void execute(void* in, void* out) const override {
    switch (kind_) {
      case TransformKind::kForward:
      case TransformKind::kBackward:
        functions_.execute_dft(handle_, static_cast<Complex*>(in), static_cast<Complex*>(out));
        break;
      case TransformKind::kRealForward:
        functions_.execute_dft_r2c(handle_, static_cast<Real*>(in), static_cast<Complex*>(out));
        break;
      case TransformKind::kRealBackward:
        functions_.execute_dft_c2r(handle_, static_cast<Complex*>(in), static_cast<Real*>(out));
        break;
    }
  }

 private:
  const Functions<Real>& functions_;
  TransformKind kind_;
  PlanHandle handle_ = nullptr;
};

class Fftw final : public FftLibrary {
 public:
  bool is_available() const override { return float_.is_loaded() && double_.is_loaded(); }

  std::string description() const override {
    if (!is_available()) return cat(float_.reason(), double_.reason());
    const auto* version = static_cast<const char*>(double_.find("fftw_version"));
    return cat(version != nullptr ? version : "FFTW 3", " in ", double_.path(), " and ",
               float_.path());
  }

  std::unique_ptr<FftPlan> make_plan(const FftPlanSpec& spec) override {
    constexpr int64_t kMax = std::numeric_limits<int>::max();
    if (std::max({spec.n, spec.batch, spec.in_distance, spec.out_distance, spec.in_stride,
                  spec.out_stride}) > kMax) {
      throw ExecutionError(cat("fft: FFTW takes lengths up to ", kMax, ", not ", spec.n));
    }
    if (spec.is_double) {
      static const Functions<double> functions{double_, "fftw_"};
      return std::make_unique<FftwPlan<double>>(functions, spec);
    }
    static const Functions<float> functions{float_, "fftwf_"};
    return std::make_unique<FftwPlan<float>>(functions, spec);
  }

 private:
  DynLib float_{"FFTW (single precision)", {"libfftw3f.so.3", "libfftw3f.so", "libfftw3f.3.dylib"}};
  DynLib double_{"FFTW (double precision)", {"libfftw3.so.3", "libfftw3.so", "libfftw3.3.dylib"}};
};

}  // namespace

FftLibrary& fftw_library() {
  static Fftw* instance = new Fftw;  // plans may outlive static destructors
  return *instance;
}

}  // namespace cuop::backend
