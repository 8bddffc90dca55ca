#include "cuop/backend/cuda/cublaslt_api.h"

#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda::blaslt {

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
    bind(l.check, "cublasLtMatmulAlgoCheck");
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

}  // namespace cuop::backend::cuda::blaslt
