#include "cuop/backend/cuda/cudnn.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 9.
using Handle = struct DnnHandleState*;
using TensorDesc = struct DnnTensorState*;
using FilterDesc = struct DnnFilterState*;
using ConvDesc = struct DnnConvState*;
enum ElementType : int { kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealB16 = 9 };
enum MathType : int { kDefaultMath = 0, kFmaMath = 3 };
constexpr int kChannelsFirst = 0;
constexpr int kCrossCorrelation = 1;
struct AlgorithmFigures {
  int algorithm;
  int status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism;
  int math_type;
  int reserved[3];
};
static_assert(sizeof(AlgorithmFigures) == 48);

constexpr int kMaxAlgorithms = 16;
constexpr size_t kMaxWorkspace = size_t{1} << 30;
constexpr size_t kMaxPlans = 256;

struct Library {
  int (*create)(Handle*);
  int (*set_stream)(Handle, StreamHandle);
  const char* (*status_text)(int);
  int (*tensor_create)(TensorDesc*);
  int (*tensor_set)(TensorDesc, ElementType, int, const int*, const int*);
  int (*tensor_destroy)(TensorDesc);
  int (*filter_create)(FilterDesc*);
  int (*filter_set)(FilterDesc, ElementType, int, int, const int*);
  int (*filter_destroy)(FilterDesc);
  int (*conv_create)(ConvDesc*);
  int (*conv_set)(ConvDesc, int, const int*, const int*, const int*, int, ElementType);
  int (*conv_set_groups)(ConvDesc, int);
  int (*conv_set_math)(ConvDesc, MathType);
  int (*conv_destroy)(ConvDesc);
  int (*choose)(Handle, TensorDesc, FilterDesc, ConvDesc, TensorDesc, int, int*, AlgorithmFigures*);
  int (*forward)(Handle, const void*, TensorDesc, const void*, FilterDesc, const void*, ConvDesc,
                 int, void*, size_t, const void*, TensorDesc, void*);
  int (*add)(Handle, const void*, TensorDesc, const void*, const void*, TensorDesc, void*);
};

const Library& library() {
  static const Library loaded = [] {
    const DynLib& lib = cuda_library(CudaLibrary::kCudnn);
    Library l{};
    const auto bind = [&]<class Function>(Function*& entry, const char* name) {
      entry = lib.require_function<Function>(name);
    };
    bind(l.create, "cudnnCreate");
    bind(l.set_stream, "cudnnSetStream");
    bind(l.status_text, "cudnnGetErrorString");
    bind(l.tensor_create, "cudnnCreateTensorDescriptor");
    bind(l.tensor_set, "cudnnSetTensorNdDescriptor");
    bind(l.tensor_destroy, "cudnnDestroyTensorDescriptor");
    bind(l.filter_create, "cudnnCreateFilterDescriptor");
    bind(l.filter_set, "cudnnSetFilterNdDescriptor");
    bind(l.filter_destroy, "cudnnDestroyFilterDescriptor");
    bind(l.conv_create, "cudnnCreateConvolutionDescriptor");
    bind(l.conv_set, "cudnnSetConvolutionNdDescriptor");
    bind(l.conv_set_groups, "cudnnSetConvolutionGroupCount");
    bind(l.conv_set_math, "cudnnSetConvolutionMathType");
    bind(l.conv_destroy, "cudnnDestroyConvolutionDescriptor");
    bind(l.choose, "cudnnGetConvolutionForwardAlgorithm_v7");
    bind(l.forward, "cudnnConvolutionForward");
    bind(l.add, "cudnnAddTensor");
    return l;
  }();
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  if (status != 0) [[unlikely]]
    throw ExecutionError(
        cat(who, ": cuDNN answered ", library().status_text(status), " to ", step));
}

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return kReal64;
    case DType::kFloat16:
      return kReal16;
    case DType::kBFloat16:
      return kRealB16;
    default:
      return kReal32;
  }
}

/// A handle serves one thread at a time, so that streams do not mix.
class HandlePool {
 public:
  using Lease = std::unique_ptr<std::remove_pointer_t<Handle>, std::function<void(Handle)>>;
  Lease take(const char* who, Device device) {
    Handle handle = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::vector<Handle>& idle = idle_[device.index];
      if (!idle.empty()) {
        handle = idle.back();
        idle.pop_back();
      }
    }
    if (handle == nullptr) check_status(library().create(&handle), who, "its start");
    return Lease(handle, [this, device](Handle given) {
      const std::lock_guard lock(mutex_);
      idle_[device.index].push_back(given);
    });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::vector<Handle>> idle_;
};

struct Key {
  int device = 0;
  ConvShape shape;
  bool operator==(const Key&) const = default;
};

/// What cuDNN needs to run one shape: its descriptions and the algorithm it chose for them.
class Plan {
 public:
  Plan(const char* who, Handle handle, const ConvShape& s) {
    try {
      describe(who, s);
      choose(who, handle, s.dtype);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Plan() { destroy(); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  int64_t workspace_bytes() const { return static_cast<int64_t>(workspace_bytes_); }

  void run(const char* who, Handle handle, const void* x, const void* w, const void* bias, void* y,
           void* workspace) const {
    const Library& lib = library();
    const double one[] = {1.0, 0.0};
    const float one_float[] = {1.0F, 0.0F};
    const auto number = [&](int i) {
      return is_double_ ? static_cast<const void*>(one + i) : one_float + i;
    };
    check_status(lib.forward(handle, number(0), x_, x, w_, w, conv_, algorithm_, workspace,
                             workspace_bytes_, number(1), y_, y),
                 who, "the convolution");
    if (bias == nullptr) return;
    check_status(lib.add(handle, number(0), bias_, bias, number(0), y_, y), who, "the bias");
  }

 private:
  void describe(const char* who, const ConvShape& s) {
    const Library& lib = library();
    const ElementType type = element_type(s.dtype);
    is_double_ = type == kReal64;
    const bool is_flat = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.padding[0] == 0;
    const size_t first = is_flat ? 1 : 0;
    tensor(who, x_, type, s.batch, s.in_channels, std::span(s.in).subspan(first));
    tensor(who, y_, type, s.batch, s.out_channels, std::span(s.out).subspan(first));
    constexpr ConvShape::Axes kOnes{1, 1, 1};
    tensor(who, bias_, type, 1, s.out_channels, std::span(kOnes).subspan(first));
    const std::vector<int> filter =
        sizes(s.out_channels, s.in_channels / s.groups, std::span(s.kernel).subspan(first));
    check_status(lib.filter_create(&w_), who, "a description");
    check_status(
        lib.filter_set(w_, type, kChannelsFirst, static_cast<int>(filter.size()), filter.data()),
        who, "the shape of w");
    const auto axes = [first](const ConvShape::Axes& all) {
      return std::vector<int>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
    };
    const auto padding = axes(s.padding), stride = axes(s.stride), dilation = axes(s.dilation);
    check_status(lib.conv_create(&conv_), who, "a description");
    check_status(
        lib.conv_set(conv_, static_cast<int>(padding.size()), padding.data(), stride.data(),
                     dilation.data(), kCrossCorrelation, is_double_ ? kReal64 : kReal32),
        who, "stride, padding and dilation");
    check_status(lib.conv_set_groups(conv_, static_cast<int>(s.groups)), who, "groups");
    const bool is_wide = itemsize(s.dtype) > 2;  // matrix units would round float32 to fewer bits
    check_status(lib.conv_set_math(conv_, is_wide ? kFmaMath : kDefaultMath), who,
                 "the arithmetic");
  }

  static std::vector<int> sizes(int64_t first, int64_t second, std::span<const int64_t> spatial) {
    std::vector<int> all{static_cast<int>(first), static_cast<int>(second)};
    for (const int64_t size : spatial) all.push_back(static_cast<int>(size));
    return all;
  }

  static void tensor(const char* who, TensorDesc& desc, ElementType type, int64_t first,
                     int64_t second, std::span<const int64_t> spatial) {
    const std::vector<int> shape = sizes(first, second, spatial);
    std::vector<int> strides(shape.size(), 1);
    for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
    check_status(library().tensor_create(&desc), who, "a description");
    check_status(library().tensor_set(desc, type, static_cast<int>(shape.size()), shape.data(),
                                      strides.data()),
                 who, "a shape");
  }

  void choose(const char* who, Handle handle, DType dtype) {
    AlgorithmFigures found[kMaxAlgorithms];
    int count = 0;
    check_status(library().choose(handle, x_, w_, conv_, y_, kMaxAlgorithms, &count, found), who,
                 "the choice of an algorithm");
    const auto* const chosen = std::find_if(found, found + count, [](const AlgorithmFigures& a) {
      return a.status == 0 && a.workspace_bytes <= kMaxWorkspace;
    });
    if (chosen == found + count) {
      throw NotImplementedError(cat(who, ": cuDNN has no algorithm for this shape in ", dtype));
    }
    algorithm_ = chosen->algorithm;
    workspace_bytes_ = chosen->workspace_bytes;
  }

  void destroy() {
    const Library& lib = library();
    for (TensorDesc desc : {x_, y_, bias_}) {
      if (desc != nullptr) lib.tensor_destroy(desc);
    }
    if (w_ != nullptr) lib.filter_destroy(w_);
    if (conv_ != nullptr) lib.conv_destroy(conv_);
  }

  TensorDesc x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  FilterDesc w_ = nullptr;
  ConvDesc conv_ = nullptr;
  bool is_double_ = false;
  int algorithm_ = 0;
  size_t workspace_bytes_ = 0;
};

/// The plans used last, the newest first.
class PlanCache {
 public:
  std::shared_ptr<const Plan> get(const char* who, Handle handle, const Key& key) {
    {
      const std::lock_guard lock(mutex_);
      for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
        if (!(plan->first == key)) continue;
        plans_.splice(plans_.begin(), plans_, plan);
        return plan->second;
      }
    }
    auto made = std::make_shared<const Plan>(who, handle, key.shape);
    const std::lock_guard lock(mutex_);
    plans_.emplace_front(key, made);
    if (plans_.size() > kMaxPlans) plans_.pop_back();
    return made;
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
};

// Never destroyed: work may still run when static objects are.
HandlePool& handle_pool() {
  static HandlePool* pool = new HandlePool;
  return *pool;
}
PlanCache& plan_cache() {
  static PlanCache* cache = new PlanCache;
  return *cache;
}

}  // namespace

std::string conv_obstacle(const ConvShape& s) {
  if (!is_floating(s.dtype))
    return cat("cuDNN convolves floating dtypes, the tensors are ", s.dtype);
  const DynLib& lib = cuda_library(CudaLibrary::kCudnn);
  if (!lib.is_loaded()) return cat("cuDNN was not found: ", lib.reason());
  int64_t largest = std::max({s.batch, s.in_channels, s.out_channels});
  for (size_t i = 0; i < 3; ++i) {
    largest =
        std::max({largest, s.in[i] + 2 * s.padding[i], s.kernel[i], s.stride[i], s.dilation[i]});
  }
  const auto volume = [](const ConvShape::Axes& axes) { return axes[0] * axes[1] * axes[2]; };
  largest = std::max(
      {largest, s.batch * s.in_channels * volume(s.in), s.batch * s.out_channels * volume(s.out)});
  const bool fits = largest <= std::numeric_limits<int32_t>::max();
  return fits ? "" : cat("cuDNN counts in 32 bits, a size or a tensor has ", largest);
}

void conv(const char* who, const ConvShape& shape, const void* x, const void* w, const void* bias,
          void* y, Stream stream) {
  const ContextScope scope(stream.device);
  const HandlePool::Lease handle = handle_pool().take(who, stream.device);
  const auto queue = static_cast<StreamHandle>(stream.handle);
  check_status(library().set_stream(handle.get(), queue), who, "a stream");
  const auto plan = plan_cache().get(who, handle.get(), {stream.device.index, shape});
  memory::MemoryResource& resource = memory::current_resource(stream.device);
  void* const workspace = resource.allocate(plan->workspace_bytes(), stream);
  const std::shared_ptr<void> owner(workspace, [&](void* block) {
    resource.deallocate(block, plan->workspace_bytes(), stream);  // behind the work, by the stream
  });
  plan->run(who, handle.get(), x, w, bias, y, workspace);
  note_started("conv", queue);
}

}  // namespace cuop::backend::cuda
