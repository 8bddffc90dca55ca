// The part of cuBLASLt's interface that cuOP uses, declared here so that no header of the library
// is needed to build. Numbers and signatures are those of its documentation for version 12 and
// later.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/backend/cuda/libraries.h"

namespace cuop::backend::cuda::blaslt {

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
  kPreferImplementations = 12,
};
enum AlgorithmCapability : int { kCapabilityImplementations = 15 };
/// Of the masks above: what multiplies.
constexpr uint64_t kByFusedMultiplyAdd = 0x01, kByMatrixUnits = 0xfe;
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

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kCublasLt);
  int (*create)(Handle*) = lib.require("cublasLtCreate");
  const char* (*status_name)(int) = lib.require("cublasLtGetStatusName");
  int (*desc_create)(MatmulDesc*, ComputeType,
                     ScalarType) = lib.require("cublasLtMatmulDescCreate");
  int (*desc_set)(MatmulDesc, DescAttribute, const void*,
                  size_t) = lib.require("cublasLtMatmulDescSetAttribute");
  int (*desc_destroy)(MatmulDesc) = lib.require("cublasLtMatmulDescDestroy");
  int (*layout_create)(MatrixLayout*, ScalarType, uint64_t rows, uint64_t columns,
                       int64_t ld) = lib.require("cublasLtMatrixLayoutCreate");
  int (*layout_set)(MatrixLayout, LayoutAttribute, const void*,
                    size_t) = lib.require("cublasLtMatrixLayoutSetAttribute");
  int (*layout_destroy)(MatrixLayout) = lib.require("cublasLtMatrixLayoutDestroy");
  int (*preference_create)(Preference*) = lib.require("cublasLtMatmulPreferenceCreate");
  int (*preference_set)(Preference, PreferenceAttribute, const void*,
                        size_t) = lib.require("cublasLtMatmulPreferenceSetAttribute");
  int (*preference_destroy)(Preference) = lib.require("cublasLtMatmulPreferenceDestroy");
  int (*heuristic)(Handle, MatmulDesc, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,
                   Preference, int, Heuristic*,
                   int*) = lib.require("cublasLtMatmulAlgoGetHeuristic");
  int (*check)(Handle, MatmulDesc, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,
               const Algorithm*, Heuristic*) = lib.require("cublasLtMatmulAlgoCheck");
  int (*capability)(const Algorithm*, AlgorithmCapability, void*, size_t,
                    size_t* written) = lib.require("cublasLtMatmulAlgoCapGetAttribute");
  int (*matmul)(Handle, MatmulDesc, const void*, const void*, MatrixLayout, const void*,
                MatrixLayout, const void*, const void*, MatrixLayout, void*, MatrixLayout,
                const Algorithm*, void*, size_t, StreamHandle) = lib.require("cublasLtMatmul");
};

/// The library, opened on first use; DeviceError when there is none.
inline const Library& library() {
  static const Library loaded;
  return loaded;
}
/// ExecutionError "who: cuBLASLt answered STATUS to STEP" unless status is 0.
inline void check_status(int status, const char* who, const char* step) {
  check_library(status, "cuBLASLt", who, step, library().status_name);
}

}  // namespace cuop::backend::cuda::blaslt
