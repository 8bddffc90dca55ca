#include "cuop/jit/warm.h"

#include <algorithm>
#include <future>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/error.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/cuda/expr_cuda.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

/// Planning looks at shapes, strides and alignment only, so that memory of the host will do.
constexpr int64_t kRows = 64, kColumns = 2048;

constexpr ReduceKind kReductions[] = {ReduceKind::kSum,   ReduceKind::kProd, ReduceKind::kMax,
                                      ReduceKind::kMin,   ReduceKind::kMean, ReduceKind::kArgMax,
                                      ReduceKind::kArgMin};

Tensor tensor_of(const Shape& shape, DType dtype) {
  return {memory::allocate_storage(element_count(shape) * itemsize(dtype), kCpu),
          contiguous_layout(shape), dtype};
}

CompileRequest request(const Expr& expr, const Shape& shape, int reduced,
                       const std::vector<Tensor>& leaves, const Tensor& output,
                       const std::string& arch) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& leaf : leaves) pointers.push_back(&leaf);
  const Tensor* out = &output;
  const Bindings bindings{shape, reduced, pointers, {}, {&out, 1}};
  const Loops loops = plan_loops(expr, bindings, element_cost(expr));
  CompileRequest made = kernel_request(expr, loops);
  made.arch = arch;
  return made;
}

void add_op(int code, DType dtype, const std::string& arch, std::vector<CompileRequest>& requests) {
  const OpInfo& op = op_table()[static_cast<size_t>(code)];
  const Shape shape{kRows * kColumns};
  Expr expr;
  std::vector<Tensor> leaves;
  std::vector<int> arguments;
  std::vector<ArgumentType> types;
  for (int i = 0; i < op.arity; ++i) {
    const DType own = op.rule == Rule::kSelect && i == 0 ? DType::kBool : dtype;
    leaves.push_back(tensor_of(shape, own));
    arguments.push_back(expr.add_leaf(own));
    types.push_back({own, nullptr});
  }
  const OpTypes inferred = infer_types(code, types);
  expr.add_output(expr.add_op(code, inferred, arguments));
  requests.push_back(request(expr, shape, 0, leaves, tensor_of(shape, inferred.result), arch));
}

void add_reduction(ReduceKind kind, DType dtype, const std::string& arch,
                   std::vector<CompileRequest>& requests) {
  const Shape shape{kRows, kColumns};
  for (const int reduced : {1, 2}) {
    Expr expr;
    const std::vector<Tensor> leaves{tensor_of(shape, dtype)};
    const int result = expr.add_reduce(kind, expr.add_leaf(dtype));
    expr.add_output(result);
    const Shape kept = reduced == 1 ? Shape{kRows} : Shape{};
    const Tensor output = tensor_of(kept, expr.node(result).dtype);
    requests.push_back(request(expr, shape, reduced, leaves, output, arch));
  }
}

bool takes(const OpInfo& op, DType dtype) {
  const auto allowed = argument_dtypes(op);
  return std::find(allowed.begin(), allowed.end(), dtype) != allowed.end();
}

/// All kernels of one name, elementwise or a reduction.
void add_named(const std::string& wanted, const WarmUp& warm, const std::string& arch,
               std::vector<CompileRequest>& requests) {
  for (const ReduceKind kind : kReductions) {
    if (wanted != name(kind)) continue;
    for (const DType dtype : warm.dtypes) {
      // Sums of integers are sums of converted elements, which is another kernel.
      if (is_floating(dtype)) add_reduction(kind, dtype, arch, requests);
    }
    return;
  }
  const int code = find_op(wanted);
  for (const DType dtype : warm.dtypes) {
    if (takes(op_table()[static_cast<size_t>(code)], dtype)) add_op(code, dtype, arch, requests);
  }
}

std::string first_gpu_architecture() {
  if (const std::string absence = backend::cuda_absence_reason(); !absence.empty()) {
    throw DeviceError(cat("warm_kernels: there is no GPU to compile for (", absence,
                          "); name an architecture, such as sm_90a"));
  }
  const auto& properties = backend::cuda::cuda_runtime({DeviceType::kCuda, 0}).properties();
  return architecture_of(properties.major, properties.minor);
}

}  // namespace

int64_t warm_kernels(const WarmUp& wanted) {
  std::vector<std::string> names = wanted.ops;
  if (names.empty()) {
    for (const OpInfo& op : op_table()) names.emplace_back(op.name);
    for (const ReduceKind kind : kReductions) names.emplace_back(name(kind));
  }
  for (const std::string& each : names) {
    const bool is_reduction = std::any_of(std::begin(kReductions), std::end(kReductions),
                                          [&](ReduceKind kind) { return each == name(kind); });
    if (!is_reduction) find_op(each);  // names are checked before the first compilation
  }
  const std::string arch = wanted.arch.empty() ? first_gpu_architecture() : wanted.arch;
  std::vector<CompileRequest> requests;
  for (const std::string& each : names) add_named(each, wanted, arch, requests);
  std::vector<std::shared_future<CompiledKernel>> compiling;
  for (CompileRequest& each : requests) compiling.push_back(compile_in_background(std::move(each)));
  for (const auto& each : compiling) {
    wait_interruptibly(each);
    each.get();
  }
  return static_cast<int64_t>(compiling.size());
}

}  // namespace cuop::jit
