#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/elementwise/elementwise.h"

namespace cuop::kernels {

namespace {

std::shared_ptr<void> kept_weights(ConvWeightCache* cache) {
  if (cache == nullptr) return nullptr;
  const std::lock_guard lock(cache->mutex);
  if (!cache->onednn) cache->onednn = backend::dnn::new_weights();
  return cache->onednn;
}

/// Whether one call of the library is so much that the user would wait for it: some 0.05 s.
bool is_long(const Conv& conv) {
  constexpr double kShort = 1e9;  // multiplications of a thread
  const auto each = static_cast<double>(conv.w.size() / conv.w.shape(0));
  return static_cast<double>(conv.y.size()) * each > kShort * backend::thread_count();
}

/// A size that oneDNN, which counts positions in 32 bits, does not take; 0 when there is none.
int64_t oversize(const ConvSizes& s) {
  std::vector<int64_t> all{s.batch, s.in_channels, s.out_channels};
  for (size_t i = 0; i < 3; ++i) {
    all.insert(all.end(), {s.in[i] + 2 * s.padding[i], s.out[i], s.stride[i]});
  }
  const int64_t largest = *std::max_element(all.begin(), all.end());
  return largest > std::numeric_limits<int32_t>::max() ? largest : 0;
}

std::string onednn_obstacle(const ConvSizes& sizes, DType dtype) {
  if (compute_dtype(dtype) != DType::kFloat32) {
    return cat("oneDNN computes in float32, the tensors are ", dtype);
  }
  if (!backend::dnn::info().is_available) return backend::dnn::info().reason;
  if (sizes.in_channels == 0 || ConvSizes::volume(sizes.in) == 0) {
    return "oneDNN has no empty problems, and x is empty";
  }
  const int64_t size = oversize(sizes);
  return size == 0 ? "" : cat("oneDNN counts in 32 bits, a padded size or stride is ", size);
}

/// The padded image, of which the direct loops make a copy, is mostly padding.
bool is_mostly_padding(const ConvSizes& s) {
  double padded = 1;
  for (size_t i = 0; i < 3; ++i) padded *= static_cast<double>(s.in[i] + 2 * s.padding[i]);
  const auto used = static_cast<double>(ConvSizes::volume(s.in) + ConvSizes::volume(s.out));
  return padded > 16 * used + (1 << 20);
}

/// Of few input channels our own loops, up to six times faster than oneDNN's kernels, which work on
/// 8 or 16 channels at a time, and up to five times than products, which repeat the image; kAuto
/// where those are as fast, as with AVX-512 oneDNN's are of large windows that step over columns.
ConvVariant choose_for_few_inputs(const ConvSizes& s, DType dtype) {
  const int64_t window = s.group_in() * ConvSizes::volume(s.kernel);
  if (s.groups > 1 || s.group_in() > 3 || window < 4 || window > 160 || is_mostly_padding(s)) {
    return ConvVariant::kAuto;
  }
  const bool is_repeated =
      s.kernel[0] > s.stride[0] || s.kernel[1] > s.stride[1] || s.kernel[2] > s.stride[2];
  const bool is_product = (window <= 9 || !is_repeated) && s.group_out() >= 8;
  if (is_product && backend::blas::info().is_available) return ConvVariant::kGemm;
  const bool is_long_step = s.stride[2] > 1 && window >= 64;
  if (is_long_step && isa::current() == isa::Level::kV4 && onednn_obstacle(s, dtype).empty()) {
    return ConvVariant::kOneDnn;
  }
  return ConvVariant::kDirect;
}

}  // namespace

std::string conv_obstacle_cpu(ConvVariant variant, const ConvSizes& sizes, DType dtype, Device) {
  switch (variant) {
    case ConvVariant::kOneDnn:
      return onednn_obstacle(sizes, dtype);
    case ConvVariant::kGemm:
      if (is_integer(dtype)) return cat("BLAS has no integers, the tensors are ", dtype);
      return backend::blas::info().is_available ? "" : backend::blas::info().reason;
    case ConvVariant::kDirect:
      return is_complex(dtype) ? cat("its loops are for real numbers, the tensors are ", dtype)
                               : "";
    case ConvVariant::kCudnn:
      return "cuDNN computes on a GPU, the tensors are on the CPU";
    case ConvVariant::kSplit:
      return "it is for a GPU's matrix units, the tensors are on the CPU";
    case ConvVariant::kAuto:
      break;
  }
  return "";
}

ConvVariant choose_conv_cpu(const ConvSizes& sizes, DType dtype, Device) {
  if (is_integer(dtype)) return ConvVariant::kDirect;
  if (is_complex(dtype)) return ConvVariant::kGemm;
  const ConvVariant own = choose_for_few_inputs(sizes, dtype);
  if (own != ConvVariant::kAuto) return own;
  if (onednn_obstacle(sizes, dtype).empty()) return ConvVariant::kOneDnn;
  if (!backend::blas::info().is_available) return ConvVariant::kDirect;
  // Few rows in each product leave the matrix kernels idle.
  const bool is_thin = sizes.group_out() < 4;
  return is_thin && !is_mostly_padding(sizes) ? ConvVariant::kDirect : ConvVariant::kGemm;
}

namespace {

/// A position of y whose window has no padding; nothing where there is none.
std::optional<int64_t> whole_window(const ConvSizes& s) {
  int64_t position = 0;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t at = divide_up(s.padding[i], s.stride[i]);
    const int64_t begin = at * s.stride[i] - s.padding[i];
    if (at >= s.out[i] || begin + s.dilation[i] * (s.kernel[i] - 1) >= s.in[i]) return std::nullopt;
    position = position * s.out[i] + at;
  }
  return position;
}

/// Whether a weight is infinite or no number. What the convolution made tells that there is none
/// without a look at them: such a weight makes a whole window's sum infinite or no number too.
bool has_infinite_weight(const Conv& conv) {
  const ConvSizes& s = conv.sizes;
  const std::optional<int64_t> position = whole_window(s);
  const int64_t volume = ConvSizes::volume(s.out), each = conv.w.size() / s.out_channels;
  const float* const w = conv.w.data<float>();
  const float* const y = conv.y.data<float>();
  const auto is_finite = [](float value) { return std::isfinite(value); };
  for (int64_t channel = 0; channel < s.out_channels; ++channel) {
    if (position && is_finite(y[channel * volume + *position])) continue;
    if (!std::all_of(w + channel * each, w + (channel + 1) * each, is_finite)) return true;
  }
  return false;
}

}  // namespace

void conv_onednn_cpu(const Conv& conv) {
  const auto convolve = [](const Conv& c, const std::shared_ptr<void>& kept) {
    const bool has_bias = c.bias.is_defined();
    backend::dnn::conv({c.sizes, c.sizes.spatial, has_bias, 0}, c.x.data<float>(),
                       c.w.data<float>(), has_bias ? c.bias.data<float>() : nullptr,
                       c.y.data<float>(), kept.get());
  };
  backend::run_apart_if(is_long(conv), convolve, conv, kept_weights(conv.cache));
  // The library leaves padding out, which other variants and GPUs multiply: NaN of an infinity.
  const bool is_padded = conv.sizes.padding != ConvSizes::Axes{0, 0, 0};
  if (is_padded && has_infinite_weight(conv)) {
    backend::blas::info().is_available ? conv_gemm_cpu(conv) : conv_direct_cpu(conv);
  }
}

void conv_cpu(const Conv& conv, ConvVariant variant) {
  const bool is_auto = variant == ConvVariant::kAuto;
  switch (is_auto ? choose_conv_cpu(conv.sizes, conv.y.dtype(), conv.y.device()) : variant) {
    case ConvVariant::kOneDnn:
      conv_onednn_cpu(conv);
      break;
    case ConvVariant::kGemm:
      conv_gemm_cpu(conv);
      break;
    case ConvVariant::kDirect:
    case ConvVariant::kAuto:
    case ConvVariant::kCudnn:
    case ConvVariant::kSplit:
      conv_direct_cpu(conv);
      break;
  }
  if (conv.activation == ConvActivation::kRelu) relu(conv.y, &conv.y);
}

}  // namespace cuop::kernels
