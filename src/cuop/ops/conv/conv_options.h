// The options of a convolution.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cuop/core/dims.h"
#include "cuop/core/fork_mutex.h"

namespace cuop {

/// How a convolution is computed. kOneDnn: the oneDNN library (float32, where it is installed).
/// kGemm: patches gathered in cache-sized tiles, then matrix products (not for integers). kDirect:
/// one pass over the padded input for each weight, best for depthwise convolutions (on the CPU not
/// for complex dtypes; on a GPU for all). kCudnn: the cuDNN library on a GPU (floating dtypes).
/// kSplit: on the matrix units of a GPU of compute capability 9.0 by three bfloat16 parts of each
/// element, as accurate as sums in float32 (float32, one group, at most 64 taps). kAuto picks; on a
/// GPU kDirect where cuDNN has nothing for the case.
enum class ConvVariant : uint8_t { kAuto, kOneDnn, kGemm, kDirect, kCudnn, kSplit };
const char* name(ConvVariant variant);
/// Inverse of `name`: auto, onednn, gemm, direct, cudnn, split; ExecutionError, which `who` begins,
/// names them.
ConvVariant parse_conv_variant(std::string_view text, const char* who = "conv");

/// What becomes of a sum before it is rounded to the dtype of the result. kRelu: 0 where it is
/// negative, as by `relu` (NaN stays), for real numbers; it costs no pass over memory of its own
/// where the library has a kernel for both.
enum class ConvActivation : uint8_t { kNone, kRelu };
const char* name(ConvActivation activation);
/// Inverse of `name`: none, relu; ExecutionError, which `who` begins, names them.
ConvActivation parse_conv_activation(std::string_view text, const char* who = "conv");

/// A place beside weights that do not change, where a variant keeps its own form of them from call
/// to call. Several threads may use it.
struct ConvWeightCache {
  ForkMutex mutex;
  std::shared_ptr<void> onednn;
};

/// One value for each spatial axis, one value for all of them, or none (the default).
struct ConvOptions {
  Dims stride{};    ///< default 1
  Dims padding{};   ///< zeros on both sides, default 0; may exceed the kernel. They are multiplied
                    ///< like other elements: an infinite weight makes them NaN
  Dims dilation{};  ///< default 1
  int64_t groups = 1;
  ConvVariant variant = ConvVariant::kAuto;
  ConvWeightCache* cache = nullptr;  ///< passing one says that it has seen no other w
  ConvActivation activation = ConvActivation::kNone;
};

}  // namespace cuop
