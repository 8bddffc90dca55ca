// The part of cuBLASLt's interface that cuOP uses, declared here so that no header of the library
// is needed to build. Numbers and signatures are those of its documentation for version 12 and
// later.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuop/backend/cuda/driver_types.h"

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
  int (*check)(Handle, MatmulDesc, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,
               const Algorithm*, Heuristic*);
  int (*capability)(const Algorithm*, AlgorithmCapability, void*, size_t, size_t* written);
  int (*matmul)(Handle, MatmulDesc, const void*, const void*, MatrixLayout, const void*,
                MatrixLayout, const void*, const void*, MatrixLayout, void*, MatrixLayout,
                const Algorithm*, void*, size_t, StreamHandle);
};

/// The library, opened on first use; DeviceError when there is none.
const Library& library();
/// ExecutionError "who: cuBLASLt answered STATUS to STEP" unless status is 0.
void check_status(int status, const char* who, const char* step);

}  // namespace cuop::backend::cuda::blaslt
