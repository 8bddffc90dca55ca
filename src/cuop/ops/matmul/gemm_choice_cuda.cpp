#include "cuop/ops/matmul/gemm_choice_cuda.h"

#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/ops/trial.h"
#include "cuop/tune/database.h"
#include "cuop/tune/library_tuning.h"
#include "cuop/tune/machine.h"

namespace cuop::kernels {

namespace {

namespace cuda = backend::cuda;

constexpr int kMostAlgorithms = 16;

std::string key_of(const cuda::GemmProblem& problem) {
  // Never destroyed: threads may compute while the process ends.
  static const std::string& version =
      *new std::string(backend::cuda_library_version(backend::CudaLibrary::kCublasLt));
  return cat(cuda::gemm_text(problem), " on ",
             tune::machine_text({DeviceType::kCuda, problem.device}), ", cuBLASLt ", version);
}

/// What is stored for the problem, when the library takes it.
std::shared_ptr<const cuda::GemmPlan> stored_plan(const char* who,
                                                  const cuda::GemmProblem& problem) {
  const auto choice = tune::stored_choice(key_of(problem));
  const auto algorithm = choice ? cuda::parse_gemm_algorithm(choice->value) : std::nullopt;
  if (!algorithm) return nullptr;
  auto plan = cuda::make_gemm_plan(who, problem, *algorithm);
  tune::note_loaded(plan != nullptr);
  return plan;
}

/// Elements from the first to the last of `batch` matrices.
int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride) {
  return (batch - 1) * stride + (rows - 1) * ld + columns;
}

Trial trial_of(const cuda::GemmProblem& problem, const void* a, const void* b, const void* c,
               Device device) {
  const cuda::GemmShape& s = problem.shape;
  const auto operand = [&](Trans trans, const void* data, int64_t rows, int64_t columns, int64_t ld,
                           int64_t stride, int64_t alignment, DType dtype) {
    if (trans != Trans::kNone) std::swap(rows, columns);
    const int64_t elements = extent(rows, columns, ld, s.batch, stride);
    return Trial::Operand{borrowed(data, elements, dtype, device), false, alignment};
  };
  std::vector<Trial::Operand> operands{
      operand(s.trans_a, a, s.m, s.k, s.lda, s.stride_a, problem.align_a, s.dtype),
      operand(s.trans_b, b, s.k, s.n, s.ldb, s.stride_b, problem.align_b, s.dtype),
      operand(Trans::kNone, c, s.m, s.n, s.ldc, s.stride_c, problem.align_c, s.result)};
  operands[2].is_written = true;
  return {std::move(operands), backend::runtime(device).l2_bytes()};
}

/// Lets this thread's scope search, where there is one, for the plan that is used from now on.
void search(const char* who, const cuda::GemmProblem& problem, const Scalar& alpha, const void* a,
            const void* b, const Scalar& beta, const void* c, Stream stream) {
  tune::LibraryTuning* const tuning = tune::LibraryTuning::current();
  if (tuning == nullptr) return;
  std::vector<std::shared_ptr<const cuda::GemmPlan>> plans;
  tune::Problem offered{.key = key_of(problem), .device = stream.device};
  offered.search = [&](const tune::SearchLimits& limits) {
    std::vector<std::string> names;
    for (const auto& algorithm : cuda::gemm_algorithms(who, problem, kMostAlgorithms)) {
      auto plan = cuda::make_gemm_plan(who, problem, algorithm);
      if (plan == nullptr) continue;
      plans.push_back(std::move(plan));
      offered.values.push_back(cuda::gemm_text(algorithm));
      names.push_back(cat("cuBLASLt's choice ", plans.size()));
    }
    if (plans.empty()) cuda::default_gemm_plan(who, problem);  // which says why there is none
    Trial trial = trial_of(problem, a, b, c, stream.device);
    const auto run = [&](size_t i, const std::vector<Tensor>& set) {
      cuda::run_gemm_plan(who, *plans[i], alpha, set[0].data(), set[1].data(), beta, set[2].data(),
                          stream);
    };
    return tune::finding_of(trial.search(names, stream.device, run, limits));
  };
  if (const auto winner = tuning->search(offered)) cuda::use_gemm_plan(problem, plans[*winner]);
}

}  // namespace

void tuned_gemm(const char* who, const cuda::GemmShape& shape, const Scalar& alpha, const void* a,
                const void* b, const Scalar& beta, void* c, Stream stream) {
  const cuda::GemmProblem problem = cuda::gemm_problem(shape, a, b, c, stream.device);
  search(who, problem, alpha, a, b, beta, c, stream);
  const auto plan = cuda::known_gemm_plan(problem, [&] {
    auto stored = stored_plan(who, problem);
    return stored ? stored : cuda::default_gemm_plan(who, problem);
  });
  cuda::run_gemm_plan(who, *plan, alpha, a, b, beta, c, stream);
}

}  // namespace cuop::kernels
