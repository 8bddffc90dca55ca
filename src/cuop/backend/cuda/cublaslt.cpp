#include "cuop/backend/cuda/cublaslt.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cublaslt_api.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/backend/library_use.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/hash.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/workspace.h"

namespace cuop::backend::cuda {

namespace {

using namespace blaslt;

constexpr size_t kMaxPlans = 4096;

struct Types {
  ScalarType element;  ///< of an operand; the rest as a product of such operands needs it
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

struct KeyHash {
  size_t operator()(const GemmProblem& key) const {
    const GemmShape& s = key.shape;
    return hash_numbers(key.device, s.dtype, s.result, s.trans_a, s.trans_b, s.m, s.n, s.k, s.lda,
                        s.ldb, s.ldc, s.batch, s.stride_a, s.stride_b, s.stride_c, key.units,
                        key.align_a, key.align_b, key.align_c, key.most_workspace);
  }
};

/// The largest power of two, up to 256, that divides the address of every matrix of an operand.
uint32_t alignment(const void* data, int64_t stride, DType dtype) {
  const auto bits = reinterpret_cast<uintptr_t>(data) |
                    static_cast<uintptr_t>(stride * itemsize(dtype)) | uintptr_t{256};
  return static_cast<uint32_t>(bits & (~bits + 1));
}

const char* units_text(MatrixUnits units) {
  constexpr const char* kTexts[] = {"", " without matrix units", " on matrix units"};
  return kTexts[static_cast<size_t>(units)];
}

bool is_on_matrix_units(const Algorithm& algorithm) {
  uint64_t implementations = 0;
  size_t written = 0;
  const int status = library().capability(&algorithm, kCapabilityImplementations, &implementations,
                                          sizeof implementations, &written);
  return status == 0 && (implementations & kByMatrixUnits) != 0;
}

}  // namespace

/// What cuBLASLt needs to run one shape: its descriptions and the algorithm that was chosen.
class GemmPlan : NonCopyable {
 public:
  /// Without an algorithm until `choose` or `take`.
  GemmPlan(const char* who, const GemmProblem& problem) : who_(who), problem_(problem) {
    const Library& lib = library();
    const GemmShape& s = problem.shape;
    const Types types = types_of(s.dtype);
    check_status(lib.desc_create(&desc_, types.compute, types.scale), who, "a description");
    // By columns the product is c^T = op(b)^T op(a)^T, so b comes first.
    const int trans_first = operation(s.trans_b), trans_second = operation(s.trans_a);
    check_status(lib.desc_set(desc_, kDescTransA, &trans_first, sizeof(int)), who, "op(b)");
    check_status(lib.desc_set(desc_, kDescTransB, &trans_second, sizeof(int)), who, "op(a)");
    first_ = layout(types.element, s.trans_b, s.n, s.k, s.ldb, s.batch, s.stride_b);
    second_ = layout(types.element, s.trans_a, s.k, s.m, s.lda, s.batch, s.stride_a);
    result_ =
        layout(types_of(s.result).element, Trans::kNone, s.n, s.m, s.ldc, s.batch, s.stride_c);
  }
  ~GemmPlan() {
    const Library& lib = library();
    for (MatrixLayout layout : {first_, second_, result_}) {
      if (layout != nullptr) lib.layout_destroy(layout);
    }
    if (desc_ != nullptr) lib.desc_destroy(desc_);
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }
  bool on_matrix_units() const { return on_matrix_units_; }
  ScalarType scale_type() const { return types_of(problem_.shape.dtype).scale; }

  /// The library's ranking, at most `most` of it.
  std::vector<Heuristic> ranked(Handle handle, int most) const {
    const Library& lib = library();
    Preference raw = nullptr;
    check_status(lib.preference_create(&raw), who_, "a preference");
    const std::unique_ptr<PreferenceState, int (*)(Preference)> preference(raw,
                                                                           lib.preference_destroy);
    const auto set = [&](PreferenceAttribute attribute, auto value) {
      check_status(lib.preference_set(raw, attribute, &value, sizeof value), who_, "a preference");
    };
    set(kPreferWorkspace, static_cast<uint64_t>(problem_.most_workspace));
    set(kPreferAlignmentA, problem_.align_b);
    set(kPreferAlignmentB, problem_.align_a);
    set(kPreferAlignmentC, problem_.align_c);
    set(kPreferAlignmentD, problem_.align_c);
    if (itemsize(problem_.shape.dtype) == 2) set(kPreferReductions, kReduceInComputeType);
    if (problem_.units != MatrixUnits::kAllowed) {
      const bool is_required = problem_.units == MatrixUnits::kRequired;
      const uint64_t others = ~(kByFusedMultiplyAdd | kByMatrixUnits);
      set(kPreferImplementations, others | (is_required ? kByMatrixUnits : kByFusedMultiplyAdd));
    }
    std::vector<Heuristic> found(static_cast<size_t>(most));
    int count = 0;
    check_status(lib.heuristic(handle, desc_, first_, second_, result_, result_, raw, most,
                               found.data(), &count),
                 who_, "the choice of an algorithm");
    found.resize(static_cast<size_t>(count));
    std::erase_if(found, [](const Heuristic& one) { return one.status != 0; });
    return found;
  }

  /// Takes the library's first choice.
  void choose(Handle handle) {
    const std::vector<Heuristic> found = ranked(handle, 1);
    if (found.empty()) {
      const GemmShape& s = problem_.shape;
      throw NotImplementedError(cat(who_, ": cuBLASLt has no algorithm for ", s.dtype,
                                    " matrices of ", s.m, " x ", s.k, " and ", s.k, " x ", s.n,
                                    units_text(problem_.units)));
    }
    algorithm_ = found.front().algorithm;
    on_matrix_units_ = is_on_matrix_units(algorithm_);
    workspace_bytes_ = static_cast<int64_t>(found.front().workspace_bytes);
  }

  /// Takes this one, unless the library refuses it for the problem.
  bool take(Handle handle, const GemmAlgorithm& algorithm) {
    Algorithm words{};
    std::copy(algorithm.words.begin(), algorithm.words.end(), words.data);
    Heuristic checked{};
    const int status =
        library().check(handle, desc_, first_, second_, result_, result_, &words, &checked);
    if (status != 0 || checked.status != 0) return false;
    if (static_cast<int64_t>(checked.workspace_bytes) > problem_.most_workspace) return false;
    const bool on_matrix_units = is_on_matrix_units(words);
    if (problem_.units == MatrixUnits::kForbidden && on_matrix_units) return false;
    if (problem_.units == MatrixUnits::kRequired && !on_matrix_units) return false;
    algorithm_ = words;
    on_matrix_units_ = on_matrix_units;
    workspace_bytes_ = static_cast<int64_t>(checked.workspace_bytes);
    return true;
  }

  void run(Handle handle, const Coefficient& alpha, const void* a, const void* b,
           const Coefficient& beta, void* c, void* workspace, StreamHandle stream) const {
    check_status(library().matmul(handle, desc_, alpha.bytes, b, first_, a, second_, beta.bytes, c,
                                  result_, c, result_, &algorithm_, workspace,
                                  static_cast<size_t>(workspace_bytes_), stream),
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

  const char* who_;
  const GemmProblem problem_;
  MatmulDesc desc_ = nullptr;
  MatrixLayout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  Algorithm algorithm_{};
  int64_t workspace_bytes_ = 0;
  bool on_matrix_units_ = false;
};

namespace {

using PlanCache = SharedLruCache<GemmProblem, std::shared_ptr<const GemmPlan>, KeyHash>;
PlanCache& plan_cache() {
  static PlanCache* cache = new PlanCache(kMaxPlans);  // outlives what may still run at the end
  return *cache;
}

/// One handle a device serves all threads; made while the device's context is current.
Handle handle_for(const char* who, Device device) {
  // Never destroyed: threads may compute while the process ends.
  static auto& mutex = *new ForkMutex;
  static auto& handles = *new std::unordered_map<int, Handle>;
  const std::lock_guard lock(mutex);
  Handle& handle = handles[device.index];
  if (handle == nullptr) {
    const trace::Interruption interruption;
    const RelaxedCapture relaxed;
    check_status(library().create(&handle), who, "its start");
  }
  return handle;
}

}  // namespace

bool has_gemm(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

GemmProblem gemm_problem(const GemmShape& shape, const void* a, const void* b, const void* c,
                         Device device) {
  return {device.index,
          shape,
          alignment(a, shape.stride_a, shape.dtype),
          alignment(b, shape.stride_b, shape.dtype),
          alignment(c, shape.stride_c, shape.result),
          execution_options().matrix_units,
          std::min(kGemmWorkspace, execution_options().spare.workspace.value_or(kGemmWorkspace))};
}

std::string gemm_text(const GemmProblem& problem) {
  const GemmShape& s = problem.shape;
  const std::string limited = problem.most_workspace == kGemmWorkspace
                                  ? ""
                                  : cat(" in a workspace of ", problem.most_workspace);
  const std::string widened = s.result == s.dtype ? "" : cat(" to ", s.result);
  return cat("gemm ", s.dtype, widened, " op ", static_cast<int>(s.trans_a),
             static_cast<int>(s.trans_b), " m ", s.m, " n ", s.n, " k ", s.k, " ld ", s.lda, ' ',
             s.ldb, ' ', s.ldc, " batch ", s.batch, " by ", s.stride_a, ' ', s.stride_b, ' ',
             s.stride_c, " aligned ", problem.align_a, ' ', problem.align_b, ' ', problem.align_c,
             units_text(problem.units), limited);
}

std::string gemm_text(const GemmAlgorithm& algorithm) {
  std::ostringstream text;
  for (const uint64_t word : algorithm.words) text << std::hex << word << ' ';
  text << std::dec << algorithm.workspace_bytes;
  return text.str();
}

std::optional<GemmAlgorithm> parse_gemm_algorithm(const std::string& text) {
  GemmAlgorithm algorithm;
  std::istringstream in(text);
  for (uint64_t& word : algorithm.words) in >> std::hex >> word;
  in >> std::dec >> algorithm.workspace_bytes;
  if (!in || !in.eof() || algorithm.workspace_bytes < 0) return std::nullopt;
  return algorithm;
}

std::vector<GemmAlgorithm> gemm_algorithms(const char* who, const GemmProblem& problem, int most) {
  const Device device{DeviceType::kCuda, problem.device};
  const ContextScope scope(device);
  std::vector<GemmAlgorithm> algorithms;
  for (const Heuristic& found : GemmPlan(who, problem).ranked(handle_for(who, device), most)) {
    GemmAlgorithm& algorithm = algorithms.emplace_back();
    std::copy(std::begin(found.algorithm.data), std::end(found.algorithm.data),
              algorithm.words.begin());
    algorithm.workspace_bytes = static_cast<int64_t>(found.workspace_bytes);
  }
  return algorithms;
}

std::shared_ptr<const GemmPlan> make_gemm_plan(const char* who, const GemmProblem& problem,
                                               const GemmAlgorithm& algorithm) {
  const Device device{DeviceType::kCuda, problem.device};
  const ContextScope scope(device);
  auto plan = std::make_shared<GemmPlan>(who, problem);
  return plan->take(handle_for(who, device), algorithm) ? plan : nullptr;
}

std::shared_ptr<const GemmPlan> default_gemm_plan(const char* who, const GemmProblem& problem) {
  const Device device{DeviceType::kCuda, problem.device};
  const ContextScope scope(device);
  auto plan = std::make_shared<GemmPlan>(who, problem);
  plan->choose(handle_for(who, device));
  return plan;
}

std::shared_ptr<const GemmPlan> known_gemm_plan(
    const GemmProblem& problem, const std::function<std::shared_ptr<const GemmPlan>()>& make) {
  return plan_cache().get(problem, [&] {
    const trace::Interruption interruption;
    return make();
  });
}

void use_gemm_plan(const GemmProblem& problem, std::shared_ptr<const GemmPlan> plan) {
  plan_cache().put(problem, std::move(plan));
}

void run_gemm_plan(const char* who, const GemmPlan& plan, const Scalar& alpha, const void* a,
                   const void* b, const Scalar& beta, void* c, Stream stream) {
  const ContextScope scope(stream.device);
  const ScalarType scale = plan.scale_type();
  const memory::Workspace workspace(plan.workspace_bytes(), stream);
  const auto queue = static_cast<StreamHandle>(stream.handle);
  Operation operation(who, stream);
  plan.run(handle_for(who, stream.device), Coefficient(alpha, scale), a, b,
           Coefficient(beta, scale), c, workspace.data(), queue);
  operation.started();
  note_library_use(plan.on_matrix_units());
}

}  // namespace cuop::backend::cuda
