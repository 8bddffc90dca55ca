// Internal: a convolution after all checks, brought to three spatial axes, and its kernels.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "cuop/backend/conv_geometry.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/conv/conv_arguments.cuh"
#include "cuop/ops/conv/conv_options.h"

namespace cuop::kernels {

struct ConvSizes : backend::ConvGeometry {
  int spatial = 2;  ///< axes that the user has
};
/// All tensors are row-major of one dtype, on the CPU no 16-bit float; `bias` may be undefined. y
/// is not empty and overlaps nothing; an inner axis may be.
struct Conv {
  ConvSizes sizes;
  Tensor x, w, bias, y;
  ConvWeightCache* cache = nullptr;
  ConvActivation activation = ConvActivation::kNone;  ///< kRelu not for complex dtypes
};

/// The same as elements of one type.
template <class T>
struct ConvElements {
  explicit ConvElements(const Conv& conv)
      : s(conv.sizes),
        x(static_cast<const T*>(conv.x.data())),
        w(static_cast<const T*>(conv.w.data())),
        bias(conv.bias.is_defined() ? static_cast<const T*>(conv.bias.data()) : nullptr),
        y(static_cast<T*>(conv.y.data())) {}

  ConvSizes s;
  const T* x;
  const T* w;
  const T* bias;  ///< or null
  T* y;
};

/// kAuto is chosen here, any other variant must be able to run.
void conv_cpu(const Conv& conv, ConvVariant variant);
/// The sums without the activation, which conv_cpu applies to them.
void conv_gemm_cpu(const Conv& conv);
void conv_direct_cpu(const Conv& conv);
void conv_onednn_cpu(const Conv& conv);

/// A GPU's: cuDNN or our own kernel, which kAuto takes where cuDNN has nothing. NotImplementedError
/// for kCudnn when the library has no engine.
void conv_cuda(const Conv& conv, ConvVariant variant);
std::string conv_obstacle_cuda(ConvVariant variant, const ConvSizes& sizes, DType dtype,
                               Device device);
ConvVariant choose_conv_cuda(const ConvSizes& sizes, DType dtype, Device device);

/// Why the CPU cannot run this variant, or "".
std::string conv_obstacle_cpu(ConvVariant variant, const ConvSizes& sizes, DType dtype,
                              Device device);
/// What kAuto stands for.
ConvVariant choose_conv_cpu(const ConvSizes& sizes, DType dtype, Device device);

struct DirectConvPlan {
  int own = 1;           ///< output channels of a thread
  bool is_wide = false;  ///< indices of 64 bits
  jit::DirectConv arguments{};
};
DirectConvPlan plan_direct_conv(const Conv& conv);

jit::TextKernel direct_conv_kernel(DType dtype, int own, bool is_wide);

/// Every dtype but bool; 16-bit floats are added up in float32 and rounded once.
void conv_direct_cuda(const Conv& conv);

/// Rows that one call computes side by side.
inline constexpr int kDirectRows = 4;
/// Elements past the end of the packed image that a call may read.
inline constexpr int64_t kDirectSlack = 64;

/// For each of `rows` (1 or kDirectRows) output rows r and each i below `width`:
/// out[r][i] = bias[r] + sum over t below `taps` of weights[r][t] * packed[offsets[t] + i].
template <class T>
struct DirectCall {
  int rows;
  int64_t taps, width;
  const T* packed;
  const int64_t* offsets;
  const T* weights[kDirectRows];
  T bias[kDirectRows];
  T* out[kDirectRows];
};

template <class T>
using DirectKernel = void (*)(const DirectCall<T>&);

/// Integers are unsigned here (ops/arithmetic.h).
using DirectKernels =
    std::tuple<DirectKernel<uint8_t>, DirectKernel<uint16_t>, DirectKernel<uint32_t>,
               DirectKernel<uint64_t>, DirectKernel<float>, DirectKernel<double>>;
template <class Level>
const DirectKernels& direct_kernels();

}  // namespace cuop::kernels
