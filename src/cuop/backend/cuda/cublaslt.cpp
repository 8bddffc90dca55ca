#include "cuop/backend/cuda/cublaslt.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 12 and later.
using Handle = struct HandleState*;
using MatmulDesc = struct MatmulDescState*;
using MatrixLayout = struct MatrixLayoutState*;
using Preference = struct PreferenceState*;
enum ScalarType : int {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kComplex32 = 4,
  kComplex64 = 5,
  kRealB16 = 14
};
enum ComputeType : int { kCompute32 = 68, kCompute64 = 70 };
enum DescAttribute : int { kDescTransA = 3, kDescTransB = 4 };
enum LayoutAttribute : int { kLayoutBatchCount = 5, kLayoutBatchStride = 6 };
enum PreferenceAttribute : int {
  kPreferWorkspace = 1,
  kPreferReductions = 3,
  kPreferAlignmentA = 5,
  kPreferAlignmentB = 6,
  kPreferAlignmentC = 7,
  kPreferAlignmentD = 8,
};
constexpr uint32_t kReduceInComputeType = 2;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;
constexpr size_t kMaxPlans = 4096;

struct Library {
  int (*create)(Handle*);
  const char* (*status_name)(int);
  int (*desc_create)(MatmulDesc*, ComputeType, ScalarType);
  int (*desc_set)(MatmulDesc, DescAttribute, const void*, size_t);
  int (*desc_destroy)(MatmulDesc);
  int (*layout_create)(MatrixLayout*, ScalarType, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layout_set)(MatrixLayout, LayoutAttribute, const void*, size_t);
  int (*layout_destroy)(MatrixLayout);
  int (*preference_create)(Preference*);
  int (*preference_set)(Preference, PreferenceAttribute, const void*, size_t);
  int (*preference_destroy)(Preference);
  int (*heuristic)(Handle, MatmulDesc, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,
                   Preference, int, Heuristic*, int*);
  int (*matmul)(Handle, MatmulDesc, const void*, const void*, MatrixLayout, const void*,
                MatrixLayout, const void*, const void*, MatrixLayout, void*, MatrixLayout,
                const Algorithm*, void*, size_t, StreamHandle);
};

const Library& library() {
  static const Library loaded = [] {
    const DynLib& lib = cuda_library(CudaLibrary::kCublasLt);
    Library l{};
    const auto bind = [&]<class Function>(Function*& entry, const char* name) {
      entry = lib.require_function<Function>(name);
    };
    bind(l.create, "cublasLtCreate");
    bind(l.status_name, "cublasLtGetStatusName");
    bind(l.desc_create, "cublasLtMatmulDescCreate");
    bind(l.desc_set, "cublasLtMatmulDescSetAttribute");
    bind(l.desc_destroy, "cublasLtMatmulDescDestroy");
    bind(l.layout_create, "cublasLtMatrixLayoutCreate");
    bind(l.layout_set, "cublasLtMatrixLayoutSetAttribute");
    bind(l.layout_destroy, "cublasLtMatrixLayoutDestroy");
    bind(l.preference_create, "cublasLtMatmulPreferenceCreate");
    bind(l.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    bind(l.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    bind(l.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    bind(l.matmul, "cublasLtMatmul");
    return l;
  }();
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  if (status != 0) [[unlikely]]
    throw ExecutionError(
        cat(who, ": cuBLASLt answered ", library().status_name(status), " to ", step));
}

struct Types {
  ScalarType element;
  ComputeType compute;
  ScalarType scale;
};
Types types_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {kReal16, kCompute32, kReal32};
    case DType::kBFloat16:
      return {kRealB16, kCompute32, kReal32};
    case DType::kFloat64:
      return {kReal64, kCompute64, kReal64};
    case DType::kComplex64:
      return {kComplex32, kCompute32, kComplex32};
    case DType::kComplex128:
      return {kComplex64, kCompute64, kComplex64};
    default:
      return {kReal32, kCompute32, kReal32};
  }
}

/// A coefficient in the type that the library reads it in.
struct Coefficient {
  Coefficient(const Scalar& value, ScalarType type) {
    const std::complex<double> wide = value.to_complex();
    if (type == kReal32) store(static_cast<float>(wide.real()));
    if (type == kReal64) store(wide.real());
    if (type == kComplex32) store(std::complex<float>(wide));
    if (type == kComplex64) store(wide);
  }
  template <class T>
  void store(T value) {
    std::memcpy(bytes, &value, sizeof value);
  }
  alignas(16) unsigned char bytes[16] = {};
};

/// Everything a plan depends on. The names a and b are cuOP's.
struct Key {
  int device = 0;
  GemmShape shape;
  uint32_t align_a = 0, align_b = 0, align_c = 0;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    const GemmShape& s = key.shape;
    const int64_t fields[] = {
        key.device,
        static_cast<int64_t>(s.dtype),
        static_cast<int64_t>(s.trans_a) * 4 + static_cast<int64_t>(s.trans_b),
        s.m,
        s.n,
        s.k,
        s.lda,
        s.ldb,
        s.ldc,
        s.batch,
        s.stride_a,
        s.stride_b,
        s.stride_c,
        key.align_a + (int64_t{key.align_b} << 16) + (int64_t{key.align_c} << 32)};
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(fields), sizeof fields});
  }
};

/// The largest power of two, up to 256, that divides the address of every matrix of an operand.
uint32_t alignment(const void* data, int64_t stride, DType dtype) {
  const auto bits = reinterpret_cast<uintptr_t>(data) |
                    static_cast<uintptr_t>(stride * itemsize(dtype)) | uintptr_t{256};
  return static_cast<uint32_t>(bits & (~bits + 1));
}

/// What cuBLASLt needs to run one shape: its descriptions and the algorithm it chose for them.
class Plan {
 public:
  Plan(const char* who, Handle handle, const Key& key) : who_(who) {
    const Library& lib = library();
    const GemmShape& s = key.shape;
    const Types types = types_of(s.dtype);
    check_status(lib.desc_create(&desc_, types.compute, types.scale), who, "a description");
    // By columns the product is c^T = op(b)^T op(a)^T, so b comes first.
    const int trans_first = operation(s.trans_b), trans_second = operation(s.trans_a);
    check_status(lib.desc_set(desc_, kDescTransA, &trans_first, sizeof(int)), who, "op(b)");
    check_status(lib.desc_set(desc_, kDescTransB, &trans_second, sizeof(int)), who, "op(a)");
    first_ = layout(types.element, s.trans_b, s.n, s.k, s.ldb, s.batch, s.stride_b);
    second_ = layout(types.element, s.trans_a, s.k, s.m, s.lda, s.batch, s.stride_a);
    result_ = layout(types.element, Trans::kNone, s.n, s.m, s.ldc, s.batch, s.stride_c);
    choose(handle, key);
  }
  ~Plan() {
    const Library& lib = library();
    for (MatrixLayout layout : {first_, second_, result_}) {
      if (layout != nullptr) lib.layout_destroy(layout);
    }
    if (desc_ != nullptr) lib.desc_destroy(desc_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  int64_t workspace_bytes() const { return static_cast<int64_t>(chosen_.workspace_bytes); }

  void run(Handle handle, const Coefficient& alpha, const void* a, const void* b,
           const Coefficient& beta, void* c, void* workspace, StreamHandle stream) const {
    check_status(library().matmul(handle, desc_, alpha.bytes, b, first_, a, second_, beta.bytes, c,
                                  result_, c, result_, &chosen_.algorithm, workspace,
                                  chosen_.workspace_bytes, stream),
                 who_, "the product");
  }

 private:
  static int operation(Trans trans) {
    return trans == Trans::kNone ? 0 : trans == Trans::kTrans ? 1 : 2;
  }

  MatrixLayout layout(ScalarType type, Trans trans, int64_t rows, int64_t columns, int64_t ld,
                      int64_t batch, int64_t stride) {
    if (trans != Trans::kNone) std::swap(rows, columns);
    const Library& lib = library();
    MatrixLayout made = nullptr;
    check_status(lib.layout_create(&made, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), ld),
                 who_, "a layout");
    if (batch > 1) {
      const auto count = static_cast<int32_t>(batch);
      check_status(lib.layout_set(made, kLayoutBatchCount, &count, sizeof count), who_, "a batch");
      check_status(lib.layout_set(made, kLayoutBatchStride, &stride, sizeof stride), who_,
                   "the stride of a batch");
    }
    return made;
  }

  void choose(Handle handle, const Key& key) {
    const Library& lib = library();
    Preference raw = nullptr;
    check_status(lib.preference_create(&raw), who_, "a preference");
    const std::unique_ptr<PreferenceState, int (*)(Preference)> preference(raw,
                                                                           lib.preference_destroy);
    const auto set = [&](PreferenceAttribute attribute, auto value) {
      check_status(lib.preference_set(raw, attribute, &value, sizeof value), who_, "a preference");
    };
    set(kPreferWorkspace, kMaxWorkspace);
    set(kPreferAlignmentA, key.align_b);
    set(kPreferAlignmentB, key.align_a);
    set(kPreferAlignmentC, key.align_c);
    set(kPreferAlignmentD, key.align_c);
    if (itemsize(key.shape.dtype) == 2) set(kPreferReductions, kReduceInComputeType);
    int found = 0;
    check_status(
        lib.heuristic(handle, desc_, first_, second_, result_, result_, raw, 1, &chosen_, &found),
        who_, "the choice of an algorithm");
    if (found == 0) {
      throw NotImplementedError(cat(who_, ": cuBLASLt has no algorithm for ", key.shape.dtype,
                                    " matrices of ", key.shape.m, " x ", key.shape.k, " and ",
                                    key.shape.k, " x ", key.shape.n));
    }
  }

  const char* who_;
  MatmulDesc desc_ = nullptr;
  MatrixLayout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  Heuristic chosen_{};
};

/// The plans that were made, shared by all threads; forgotten all at once when there are many.
class PlanCache {
 public:
  std::shared_ptr<const Plan> get(const char* who, Handle handle, const Key& key) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
    }
    auto made = std::make_shared<const Plan>(who, handle, key);
    const std::lock_guard lock(mutex_);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    return plans_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
};

/// One handle a device serves all threads; made while the device's context is current.
Handle handle_for(const char* who, Device device) {
  static std::mutex mutex;
  static std::unordered_map<int, Handle> handles;
  const std::lock_guard lock(mutex);
  Handle& handle = handles[device.index];
  if (handle == nullptr) check_status(library().create(&handle), who, "its start");
  return handle;
}

PlanCache& plan_cache() {
  static PlanCache* cache = new PlanCache;  // outlives what may still run at the end
  return *cache;
}

}  // namespace

bool has_gemm(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

void gemm(const char* who, const GemmShape& shape, const Scalar& alpha, const void* a,
          const void* b, const Scalar& beta, void* c, Stream stream) {
  const ContextScope scope(stream.device);
  const Handle handle = handle_for(who, stream.device);
  const Key key{stream.device.index, shape, alignment(a, shape.stride_a, shape.dtype),
                alignment(b, shape.stride_b, shape.dtype),
                alignment(c, shape.stride_c, shape.dtype)};
  const auto plan = plan_cache().get(who, handle, key);
  const ScalarType scale = types_of(shape.dtype).scale;
  memory::MemoryResource& resource = memory::current_resource(stream.device);
  const int64_t bytes = plan->workspace_bytes();
  void* const workspace = resource.allocate(bytes, stream);
  const std::shared_ptr<void> owner(workspace, [&](void* block) {
    resource.deallocate(block, bytes, stream);  // freed in the stream's order, behind the product
  });
  const auto queue = static_cast<StreamHandle>(stream.handle);
  plan->run(handle, Coefficient(alpha, scale), a, b, Coefficient(beta, scale), c, workspace, queue);
  note_started(who, queue);
}

}  // namespace cuop::backend::cuda
