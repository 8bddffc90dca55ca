#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/core/text.h"
#include "cuop/ops/conv/conv_kernels.h"

namespace cuop::kernels {

namespace {

CuopDnnConv to_problem(const ConvSizes& s, bool has_bias) {
  CuopDnnConv p{};
  p.batch = s.batch;
  p.in_channels = s.in_channels;
  p.out_channels = s.out_channels;
  p.groups = s.groups;
  p.spatial = s.spatial;
  p.has_bias = has_bias;
  for (size_t i = 0; i < 3; ++i) {
    p.in[i] = s.in[i];
    p.kernel[i] = s.kernel[i];
    p.out[i] = s.out[i];
    p.stride[i] = s.stride[i];
    p.padding[i] = s.padding[i];
    p.dilation[i] = s.dilation[i];
  }
  return p;
}

void* kept_weights(ConvWeightCache* cache) {
  if (cache == nullptr) return nullptr;
  const std::lock_guard lock(cache->mutex);
  if (!cache->onednn) cache->onednn = backend::dnn::new_weights();
  return cache->onednn.get();
}

}  // namespace

std::string conv_obstacle_cpu(ConvVariant variant, DType dtype) {
  if (variant == ConvVariant::kOneDnn) {
    if (compute_dtype(dtype) != DType::kFloat32) {
      return cat("oneDNN computes in float32, the tensors are ", dtype);
    }
    return backend::dnn::info().is_available ? "" : backend::dnn::info().reason;
  }
  if (variant == ConvVariant::kGemm && !backend::blas::info().is_available) {
    return backend::blas::info().reason;
  }
  return "";
}

ConvVariant choose_conv_cpu(const ConvSizes& sizes, DType dtype) {
  // oneDNN has no empty problems.
  const bool is_empty = sizes.in_channels == 0 || ConvSizes::volume(sizes.in) == 0;
  if (!is_empty && conv_obstacle_cpu(ConvVariant::kOneDnn, dtype).empty()) {
    return ConvVariant::kOneDnn;
  }
  // Few rows in each product leave the matrix kernels idle.
  if (sizes.group_out() < 4 || !backend::blas::info().is_available) return ConvVariant::kDirect;
  return ConvVariant::kGemm;
}

void conv_onednn_cpu(const Conv& conv) {
  const bool has_bias = conv.bias.is_defined();
  backend::dnn::conv(to_problem(conv.sizes, has_bias), conv.x.data<float>(), conv.w.data<float>(),
                     has_bias ? conv.bias.data<float>() : nullptr, conv.y.data<float>(),
                     kept_weights(conv.cache));
}

void conv_cpu(const Conv& conv, ConvVariant variant) {
  switch (variant) {
    case ConvVariant::kOneDnn:
      return conv_onednn_cpu(conv);
    case ConvVariant::kGemm:
      return conv_gemm_cpu(conv);
    case ConvVariant::kDirect:
    case ConvVariant::kAuto:
      return conv_direct_cpu(conv);
  }
}

}  // namespace cuop::kernels
