// Matrix products of cuBLASLt on the current device, with a cache of plans. Row-major, as the rest
// of cuOP; the library itself counts by columns.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/backend/execution.h"
#include "cuop/core/dtype.h"
#include "cuop/core/linalg.h"
#include "cuop/core/scalar.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// c[m,n] <- alpha * op(a)[m,k] @ op(b)[k,n] + beta * c for `batch` products. kNone: stored as
/// written; kTrans, kConjTrans: stored as the transpose. Leading dimensions (from one stored row to
/// the next) and strides (from one product to the next, 0 for the same matrix again) in elements.
struct GemmShape {
  DType dtype = DType::kFloat32;   ///< of a and b
  DType result = DType::kFloat32;  ///< of c: the same, or float32 beside 16-bit floats
  Trans trans_a = Trans::kNone, trans_b = Trans::kNone;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool operator==(const GemmShape&) const = default;
};

/// True for float16, bfloat16, float32, float64, complex64 and complex128.
bool has_gemm(DType dtype);

/// Bytes that an algorithm's workspace has at most, where less was not asked for.
inline constexpr int64_t kGemmWorkspace = int64_t{32} << 20;

/// Everything on which the choice of an algorithm depends. Alignments in bytes: what the address of
/// every matrix of the operand is a multiple of, up to 256. Matrix units, workspace: what this
/// thread asks for.
struct GemmProblem {
  int device = 0;
  GemmShape shape;
  uint32_t align_a = 0, align_b = 0, align_c = 0;
  MatrixUnits units = MatrixUnits::kAllowed;
  int64_t most_workspace = kGemmWorkspace;  ///< bytes
  bool operator==(const GemmProblem&) const = default;
};
GemmProblem gemm_problem(const GemmShape& shape, const void* a, const void* b, const void* c,
                         Device device);
/// The problem in words, for keys.
std::string gemm_text(const GemmProblem& problem);

/// An algorithm as the library describes it to itself: the same words mean the same to the same
/// version of the library, which is asked whether it takes them.
struct GemmAlgorithm {
  std::array<uint64_t, 8> words{};
  int64_t workspace_bytes = 0;
  bool operator==(const GemmAlgorithm&) const = default;
};
/// "0123456789abcdef ... 65536".
std::string gemm_text(const GemmAlgorithm& algorithm);
std::optional<GemmAlgorithm> parse_gemm_algorithm(const std::string& text);

/// One problem with the algorithm that computes it.
class GemmPlan;
/// The library's ranking of its algorithms for the problem, the default first.
std::vector<GemmAlgorithm> gemm_algorithms(const char* who, const GemmProblem& problem, int most);
/// Null when the library refuses the algorithm for the problem.
std::shared_ptr<const GemmPlan> make_gemm_plan(const char* who, const GemmProblem& problem,
                                               const GemmAlgorithm& algorithm);
/// By the library's first choice; NotImplementedError when it has none.
std::shared_ptr<const GemmPlan> default_gemm_plan(const char* who, const GemmProblem& problem);
/// The plan that the process has for the problem: what `use_gemm_plan` was given, or what make()
/// answered first.
std::shared_ptr<const GemmPlan> known_gemm_plan(
    const GemmProblem& problem, const std::function<std::shared_ptr<const GemmPlan>()>& make);
void use_gemm_plan(const GemmProblem& problem, std::shared_ptr<const GemmPlan> plan);

/// Runs the product on the stream. float32 is computed in IEEE float32; float16 and bfloat16 are
/// accumulated in float32 and, unless c is float32, rounded once. `who` names the operator in
/// errors, here and above: DeviceError when there is no cuBLASLt, ExecutionError for what it
/// refuses.
void run_gemm_plan(const char* who, const GemmPlan& plan, const Scalar& alpha, const void* a,
                   const void* b, const Scalar& beta, void* c, Stream stream);

}  // namespace cuop::backend::cuda
