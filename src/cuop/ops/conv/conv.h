// Convolutions (cross-correlations, as neural networks use the word) of batches of channels-first
// images.
#pragma once

#include <memory>
#include <mutex>

#include "cuop/core/tensor.h"

namespace cuop {

/// How a convolution is computed. kOneDnn: the oneDNN library (float32, where it is installed).
/// kGemm: patches gathered in cache-sized tiles, then matrix products (not for integers). kDirect:
/// one pass over the padded input for each weight, best for depthwise convolutions (on the CPU not
/// for complex dtypes; on a GPU for all). kCudnn: the cuDNN library on a GPU (floating dtypes).
/// kAuto picks; on a GPU kDirect where cuDNN has nothing for the case.
enum class ConvVariant : uint8_t { kAuto, kOneDnn, kGemm, kDirect, kCudnn };
const char* name(ConvVariant variant);
/// Inverse of `name`: auto, onednn, gemm, direct, cudnn; ExecutionError names them.
ConvVariant parse_conv_variant(std::string_view text);

/// What becomes of a sum before it is rounded to the dtype of the result. kRelu: 0 where it is
/// negative, as by `relu` (NaN stays), for real numbers; it costs no pass over memory of its own
/// where the library has a kernel for both.
enum class ConvActivation : uint8_t { kNone, kRelu };
const char* name(ConvActivation activation);
/// Inverse of `name`: none, relu; ExecutionError names them.
ConvActivation parse_conv_activation(std::string_view text);

/// A place beside weights that do not change, where a variant keeps its own form of them from call
/// to call. Several threads may use it.
struct ConvWeightCache {
  std::mutex mutex;
  std::shared_ptr<void> onednn;
};

/// One value for each spatial axis, one value for all of them, or none (the default).
struct ConvOptions {
  Dims stride{};    ///< default 1
  Dims padding{};   ///< zeros on both sides, default 0; may exceed the kernel
  Dims dilation{};  ///< default 1
  int64_t groups = 1;
  ConvVariant variant = ConvVariant::kAuto;
  ConvWeightCache* cache = nullptr;  ///< passing one says that it has seen no other w
  ConvActivation activation = ConvActivation::kNone;
};

/// x [N, C, spatial...], w [O, C / groups, kernel...], bias [O] or null -> [N, O, out...] with
/// out = (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down. Every dtype but
/// bool, one for x, w and bias: float16 and bfloat16 accumulate in float32, integers wrap, nothing
/// is conjugated. Errors: ShapeError naming the argument (an output size below 1 too), DTypeError
/// (kRelu of complex numbers too), ExecutionError for a variant that cannot run the case, saying
/// why; NotImplementedError for kCudnn where no engine of the library keeps this precision.
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);

/// The shape that the convolution above would answer with, after all its checks.
Shape conv_output_shape(const char* who, const Shape& x, const Shape& w,
                        const ConvOptions& options);
/// The variant that kAuto stands for in this case (or the one asked for, when it can run).
ConvVariant conv_variant(const Tensor& x, const Tensor& w, const ConvOptions& options);

}  // namespace cuop
