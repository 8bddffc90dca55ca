#include <mutex>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/text.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/matmul/gemm_choice_internal.h"
#include "cuop/ops/trial_buffers.h"
#include "cuop/tune/database.h"
#include "cuop/tune/library_tuning.h"
#include "cuop/tune/machine.h"
#include "cuop/tune/permission.h"

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

void advise() {
  static std::once_flag once;
  std::call_once(once, [] {
    cuda::set_gemm_advisor({[](const cuda::GemmProblem& problem) {
                              const auto choice = tune::stored_choice(key_of(problem));
                              return choice ? cuda::parse_gemm_algorithm(choice->value)
                                            : std::nullopt;
                            },
                            tune::note_loaded});
  });
}

/// Elements from the first to the last of `batch` matrices.
int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride) {
  return (batch - 1) * stride + (rows - 1) * ld + columns;
}

TrialBuffers buffers_for(const cuda::GemmProblem& problem, const void* a, const void* b,
                         const void* c, Device device) {
  const cuda::GemmShape& s = problem.shape;
  const auto operand = [&](Trans trans, const void* data, int64_t rows, int64_t columns, int64_t ld,
                           int64_t stride, int64_t alignment) {
    if (trans != Trans::kNone) std::swap(rows, columns);
    return TrialBuffers::Stretch{data, extent(rows, columns, ld, s.batch, stride), s.dtype,
                                 alignment};
  };
  return TrialBuffers({operand(s.trans_a, a, s.m, s.k, s.lda, s.stride_a, problem.align_a),
                       operand(s.trans_b, b, s.k, s.n, s.ldb, s.stride_b, problem.align_b),
                       operand(Trans::kNone, c, s.m, s.n, s.ldc, s.stride_c, problem.align_c)},
                      device, cuda::cuda_runtime(device).properties().l2_bytes);
}

void search(tune::LibraryTuning& tuning, const char* who, const cuda::GemmProblem& problem,
            const std::string& key, const Scalar& alpha, const void* a, const void* b,
            const Scalar& beta, const void* c, Stream stream) {
  TrialBuffers buffers = buffers_for(problem, a, b, c, stream.device);
  tune::LibraryProblem offered{.key = key, .use = {}, .most_repetitions = buffers.count()};
  std::vector<std::shared_ptr<const cuda::GemmPlan>> plans;
  for (const auto& algorithm : cuda::gemm_algorithms(who, problem, kMostAlgorithms)) {
    auto plan = cuda::make_gemm_plan(who, problem, algorithm);
    if (plan == nullptr) continue;
    plans.push_back(std::move(plan));
    offered.values.push_back(cuda::gemm_text(algorithm));
  }
  Tensor expected;
  for (size_t i = 0; i < plans.size(); ++i) {
    tune::Candidate candidate;
    candidate.name = cat("cuBLASLt's choice ", i + 1);
    candidate.run = [&, i](int64_t turn) {
      cuda::run_gemm_plan(who, *plans[i], alpha, buffers.copy(turn, 0).data(),
                          buffers.copy(turn, 1).data(), beta, buffers.copy(turn, 2).data(), stream);
      if (turn == 0 && i == 0) expected = clone(buffers.copy(0, 2));
    };
    candidate.disagreement = [&] { return disagreement(expected, buffers.copy(0, 2)); };
    offered.candidates.push_back(std::move(candidate));
  }
  if (plans.empty()) return;  // gemm says so in its own words
  offered.before_sample = [&](int64_t first, int turns) { buffers.restore(2, first, turns); };
  offered.use = [&](size_t winner) { cuda::use_gemm_plan(problem, plans[winner]); };
  tuning.search(offered, *tune::clock_for(stream.device));
}

}  // namespace

void tuned_gemm(const char* who, const cuda::GemmShape& shape, const Scalar& alpha, const void* a,
                const void* b, const Scalar& beta, void* c, Stream stream) {
  advise();
  if (tune::LibraryTuning* tuning = tune::LibraryTuning::current()) {
    const cuda::GemmProblem problem = cuda::gemm_problem(shape, a, b, c, stream.device);
    const std::string key = key_of(problem);
    if (tuning->wants(key, stream.device)) {
      search(*tuning, who, problem, key, alpha, a, b, beta, c, stream);
    }
  }
  cuda::gemm(who, shape, alpha, a, b, beta, c, stream);
}

}  // namespace cuop::kernels
