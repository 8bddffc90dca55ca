// Convolutions that rectify their sums on a GPU, against relu of those of the CPU.
#include <limits>

#include "cuop/backend/cuda/cudnn.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/conv_values.h"

namespace cuop {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_simulated() {
  const auto cudnn = backend::CudaLibrary::kCudnn;
  return backend::cuda_library_version(cudnn) == backend::version_text(cudnn, 999);
}
/// The simulated cuDNN's engine that is there to be found out by the tuner.
bool is_wrong_on_purpose(const std::string& engine) {
  return is_simulated() && engine.starts_with("12 ");
}

/// Small whole numbers, so that every dtype holds their sums.
Tensor small_numbers(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 random(seed);
  return test::drawn(shape, dtype, [&] { return static_cast<int>(random() % 5) - 2; });
}

/// A convolution of 2 images of 8 channels by 6 kernels, in which some sums are NaN or infinite.
struct Rectified {
  Tensor x, w, bias;
  ConvOptions options;

  explicit Rectified(DType dtype)
      : x(small_numbers({2, 8, 12, 11}, 1, dtype)),
        w(small_numbers({6, 8, 3, 3}, 2, dtype)),
        bias(small_numbers({6}, 3, dtype)) {
    if (is_floating(dtype)) {
      const auto put = [&](int64_t image, int64_t row, int64_t column, double value) {
        fill(select(select(select(select(x, 0, image), 0, 1), 0, row), 0, column), value);
      };
      put(0, 2, 2, std::numeric_limits<double>::quiet_NaN());
      put(0, 2, 8, kInfinite);
      put(1, 5, 5, -kInfinite);
      put(1, 9, 9, std::numeric_limits<double>::max());  // beyond the narrower dtypes
    }
    options.padding = {1};
    options.activation = ConvActivation::kRelu;
  }
  Tensor expected(const Tensor* offset) const {
    ConvOptions plain = options;
    plain.activation = ConvActivation::kNone;
    return relu(conv2d(x, w, offset, plain));
  }
};

class GpuConvActivation : public GpuTest {};

/// On whatever the variant runs: cuDNN with the rectifier in its kernel, cuDNN and then relu, or
/// our kernel. Tensors start at any element, and what lies around the result stays.
TEST_F(GpuConvActivation, RectifiesAsReluDoesOfNanAndInfinitiesToo) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt8, DType::kUInt16, DType::kInt64}) {
    Rectified p(dtype);
    const Tensor around = full({2 * 6 * 12 * 11 + 2}, 7, dtype, kGpu);
    const Tensor out = reshape(slice(around, 0, 1, around.size() - 1), {2, 6, 12, 11});
    const Tensor bias = gpu(p.bias), shifted = misaligned(p.bias);
    for (const ConvVariant variant : {ConvVariant::kAuto, ConvVariant::kDirect}) {
      p.options.variant = ConvVariant::kAuto;
      const Tensor bare = p.expected(nullptr), biased = p.expected(&p.bias);
      p.options.variant = variant;
      const auto what = [&](const char* form) { return cat(dtype, ' ', name(variant), form); };
      test::expect_same(conv2d(gpu(p.x), gpu(p.w), nullptr, p.options), bare, 0.0, what(""));
      test::expect_same(conv2d(gpu(p.x), gpu(p.w), &bias, p.options), biased, 0.0, what(" bias"));
      conv2d(misaligned(p.x), misaligned(p.w), &shifted, p.options, &out);
      test::expect_same(out, biased, 0.0, what(" misaligned"));
      const auto all = host_values(around);
      EXPECT_EQ(all.front(), std::complex<double>(7));
      EXPECT_EQ(all.back(), std::complex<double>(7));
    }
  }
}

/// One pass over memory: by the engine that cuDNN ranks first and by every other that may be tuned
/// to. Where it has none the test above has seen what runs instead.
TEST_F(GpuConvActivation, EveryEngineOfCudnnThatRectifiesKeepsNanAndInfinities) {
  if (!backend::cuda::cudnn_absence().empty()) GTEST_SKIP() << "needs cuDNN";
  const Stream stream = current_stream(kGpu);
  int runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const Rectified p(dtype);
    const Tensor x = gpu(p.x), w = gpu(p.w), bias = gpu(p.bias);
    backend::cuda::ConvShape shape;
    shape.dtype = dtype;
    shape.batch = 2;
    shape.in_channels = 8;
    shape.out_channels = 6;
    shape.in = shape.out = {1, 12, 11};
    shape.kernel = {1, 3, 3};
    shape.padding = {0, 1, 1};
    shape.has_relu = true;
    for (const bool has_bias : {false, true}) {
      shape.has_bias = has_bias;
      const Tensor wanted = p.expected(has_bias ? &p.bias : nullptr);
      for (const auto& engine : backend::cuda::conv_engines("conv2d", shape, stream, 12)) {
        if (is_wrong_on_purpose(engine)) continue;
        const Tensor y = full(wanted.shape(), 7, dtype, kGpu);
        const backend::cuda::ConvData data{x.data(), w.data(), bias.data(), y.data()};
        ASSERT_TRUE(backend::cuda::conv("conv2d", shape, engine, data, stream));
        const char* const form = has_bias ? " with bias" : "";
        test::expect_same(y, wanted, 0.0, cat(dtype, form, " by engine ", engine));
        ++runs;
      }
    }
  }
  RecordProperty("engines", runs);
  EXPECT_TRUE(runs > 0 || !is_simulated());
}

}  // namespace
}  // namespace cuop
