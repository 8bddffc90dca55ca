#include "cuop/backend/cuda/cublaslt_api.h"

#include "cuop/backend/cuda/libraries.h"

namespace cuop::backend::cuda::blaslt {

const Library& library() {
  static const Library loaded = [] {
    const DynLib& lib = cuda_library(CudaLibrary::kCublasLt);
    Library l{};
    lib.bind(l.create, "cublasLtCreate");
    lib.bind(l.status_name, "cublasLtGetStatusName");
    lib.bind(l.desc_create, "cublasLtMatmulDescCreate");
    lib.bind(l.desc_set, "cublasLtMatmulDescSetAttribute");
    lib.bind(l.desc_destroy, "cublasLtMatmulDescDestroy");
    lib.bind(l.layout_create, "cublasLtMatrixLayoutCreate");
    lib.bind(l.layout_set, "cublasLtMatrixLayoutSetAttribute");
    lib.bind(l.layout_destroy, "cublasLtMatrixLayoutDestroy");
    lib.bind(l.preference_create, "cublasLtMatmulPreferenceCreate");
    lib.bind(l.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    lib.bind(l.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    lib.bind(l.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    lib.bind(l.check, "cublasLtMatmulAlgoCheck");
    lib.bind(l.capability, "cublasLtMatmulAlgoCapGetAttribute");
    lib.bind(l.matmul, "cublasLtMatmul");
    return l;
  }();
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  check_library(status, "cuBLASLt", who, step, library().status_name);
}

}  // namespace cuop::backend::cuda::blaslt
