#include "cuop/backend/cuda/cufft.h"

#include <array>
#include <memory>
#include <mutex>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/workspace.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 11 and later.
using Handle = int;
enum ElementType : int { kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5 };
enum Direction : int { kForwards = -1, kBackwards = 1 };

constexpr size_t kMaxPlans = 64;

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kCufft);
  int (*create)(Handle*) = lib.require("cufftCreate");
  int (*destroy)(Handle) = lib.require("cufftDestroy");
  int (*set_auto_allocation)(Handle, int) = lib.require("cufftSetAutoAllocation");
  int (*set_work_area)(Handle, void*) = lib.require("cufftSetWorkArea");
  int (*set_stream)(Handle, StreamHandle) = lib.require("cufftSetStream");
  int (*make_plan)(Handle, int rank, long long* n, long long* in_embed, long long in_stride,
                   long long in_distance, ElementType in, long long* out_embed,
                   long long out_stride, long long out_distance, ElementType out, long long batch,
                   size_t* work_bytes,
                   ElementType computed_in) = lib.require("cufftXtMakePlanMany");
  int (*execute)(Handle, void* in, void* out, int direction) = lib.require("cufftXtExec");
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

const char* name_of(int status) {
  constexpr const char* kNames[] = {"CUFFT_SUCCESS",
                                    "CUFFT_INVALID_PLAN",
                                    "CUFFT_ALLOC_FAILED",
                                    "CUFFT_INVALID_TYPE",
                                    "CUFFT_INVALID_VALUE",
                                    "CUFFT_INTERNAL_ERROR",
                                    "CUFFT_EXEC_FAILED",
                                    "CUFFT_SETUP_FAILED",
                                    "CUFFT_INVALID_SIZE",
                                    "CUFFT_UNALIGNED_DATA",
                                    "CUFFT_INCOMPLETE_PARAMETER_LIST",
                                    "CUFFT_INVALID_DEVICE",
                                    "CUFFT_PARSE_ERROR",
                                    "CUFFT_NO_WORKSPACE",
                                    "CUFFT_NOT_IMPLEMENTED",
                                    "CUFFT_LICENSE_ERROR",
                                    "CUFFT_NOT_SUPPORTED",
                                    "CUFFT_MISSING_DEPENDENCY",
                                    "CUFFT_NVRTC_FAILURE",
                                    "CUFFT_NVJITLINK_FAILURE",
                                    "CUFFT_NVSHMEM_FAILURE"};
  return status >= 0 && status < static_cast<int>(std::size(kNames)) ? kNames[status] : "an error";
}

void check_status(int status, const char* who, const char* step) {
  check_library(status, "cuFFT", who, step,
                [](int given) { return cat(name_of(given), " (", given, ')'); });
}

struct Key {
  int device = 0;
  FftGridSpec spec;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    const auto& [first, second] = key.spec.slower;
    return hash_numbers(key.device, FftPlanSpecHash()(key.spec.lines), first.n, first.in_pitch,
                        first.out_pitch, second.n, second.in_pitch, second.out_pitch);
  }
};

class CufftPlan : NonCopyable {
 public:
  CufftPlan(const char* who, const Key& key)
      : device_{DeviceType::kCuda, key.device}, kind_(key.spec.lines.kind) {
    const FftPlanSpec& spec = key.spec.lines;
    const trace::Interruption interruption;
    const RelaxedCapture relaxed;
    const Library& lib = library();
    check_status(lib.create(&handle_), who, "a plan");
    const ElementType real = spec.is_double ? kReal64 : kReal32;
    const ElementType complex = spec.is_double ? kComplex64 : kComplex32;
    // In one dimension only that embeddings are not null matters; else the first is not looked at.
    const int rank = key.spec.slower_count + 1;
    std::array<long long, 3> n = {}, in_embed = {1, 1, 1}, out_embed = {1, 1, 1};
    for (int i = 0; i + 1 < rank; ++i) {
      const FftSlowerAxis& axis = key.spec.slower[static_cast<size_t>(i)];
      n[static_cast<size_t>(i)] = axis.n;
      in_embed[static_cast<size_t>(i) + 1] = axis.in_pitch;
      out_embed[static_cast<size_t>(i) + 1] = axis.out_pitch;
    }
    n[static_cast<size_t>(rank) - 1] = spec.n;
    int status = lib.set_auto_allocation(handle_, 0);
    if (status == 0) {
      status =
          lib.make_plan(handle_, rank, n.data(), in_embed.data(), spec.in_stride, spec.in_distance,
                        spec.kind == TransformKind::kRealForward ? real : complex, out_embed.data(),
                        spec.out_stride, spec.out_distance,
                        spec.kind == TransformKind::kRealBackward ? real : complex, spec.batch,
                        &work_bytes_, complex);
    }
    if (status != 0) lib.destroy(handle_);
    check_status(status, who, "a plan");
  }
  ~CufftPlan() {
    try {
      const RelaxedCapture relaxed;
      const ContextScope scope(device_);  // the plan goes when work of its own device is behind it
      library().destroy(handle_);
    } catch (const Error&) {
      // The device was lost, and the plan with it.
    }
  }

  int64_t work_bytes() const { return static_cast<int64_t>(work_bytes_); }

  /// A plan has one work area and one stream, so threads take turns to start it.
  void run(const char* who, void* in, void* out, void* work, StreamHandle stream) {
    const Library& lib = library();
    const bool is_forward =
        kind_ == TransformKind::kForward || kind_ == TransformKind::kRealForward;
    const std::lock_guard lock(mutex_);
    check_status(lib.set_stream(handle_, stream), who, "a stream");
    if (work_bytes_ > 0) check_status(lib.set_work_area(handle_, work), who, "a work area");
    check_status(lib.execute(handle_, in, out, is_forward ? kForwards : kBackwards), who,
                 "the transforms");
  }

 private:
  ForkMutex mutex_;
  Handle handle_ = -1;
  Device device_;
  TransformKind kind_;
  size_t work_bytes_ = 0;
};

std::shared_ptr<CufftPlan> plan_of(const char* who, const Key& key) {
  // Outlives what may still run at the end.
  static auto* plans = new SharedLruCache<Key, std::shared_ptr<CufftPlan>, KeyHash>(kMaxPlans);
  return plans->get(key, [&] { return std::make_shared<CufftPlan>(who, key); });
}

}  // namespace

void fft(const char* who, const FftGridSpec& spec, void* in, void* out, Stream stream) {
  const ContextScope scope(stream.device);
  const auto plan = plan_of(who, {stream.device.index, spec});
  keep_if_recorded(stream, plan);
  const memory::Workspace work(plan->work_bytes(), stream);
  Operation operation("fft", stream);
  plan->run(who, in, out, work.data(), static_cast<StreamHandle>(stream.handle));
  operation.started();
}

}  // namespace cuop::backend::cuda
