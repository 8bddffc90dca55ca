// Normalisations on a GPU beside the CPU's.
#include "cuop/ops/norm/norm.h"

#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::epsilon;
using test::Guarded;
using test::random_tensor;

/// Terms of both signs may cancel, after they were rounded in the dtype that is computed in.
void expect_close(const Tensor& given, const Tensor& wanted, const std::string& what) {
  const double relative = 2 * epsilon(wanted.dtype());
  const double absolute = 64 * epsilon(compute_dtype(wanted.dtype()));
  test::expect_elements(given, wanted, what, [&](const std::complex<double>& element) {
    return relative * std::abs(element) + absolute;
  });
}

class GpuNorm : public GpuTest {};

TEST_F(GpuNorm, RowsOfEveryLength) {
  for (const DType dtype : kFloats) {
    for (const int64_t length : {1, 2, 8, 31, 127, 768, 1000, 4096, 8191, 16384, 100003}) {
      const Tensor x = random_tensor({5, length}, dtype, 1);
      const Tensor gamma = random_tensor({length}, dtype, 2),
                   beta = random_tensor({length}, dtype, 3);
      const Tensor there = to_device(x, kGpu), factor = to_device(gamma, kGpu),
                   offset = to_device(beta, kGpu);
      const std::string what = cat(dtype, ' ', length);
      expect_close(layer_norm(there, factor, offset), layer_norm(x, gamma, beta), "layer " + what);
      expect_close(layer_norm(there, factor), layer_norm(x, gamma), "no beta " + what);
      expect_close(rms_norm(there, factor), rms_norm(x, gamma), "rms " + what);
    }
  }
}

TEST_F(GpuNorm, ChannelsOfImages) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{3, 4, 5, 6}, Shape{2, 7, 3}, Shape{2, 64, 16, 16}}) {
      const Tensor x = random_tensor(shape, dtype, 1);
      const Tensor gamma = random_tensor({shape[1]}, dtype, 2),
                   beta = random_tensor({shape[1]}, dtype, 3);
      expect_close(layer_norm(to_device(x, kGpu), to_device(gamma, kGpu), to_device(beta, kGpu)),
                   layer_norm(x, gamma, beta), cat(dtype, ' ', shape));
    }
  }
}

TEST_F(GpuNorm, ALargeMeanCancelsNothing) {
  const Tensor x = add(random_tensor({4, 5000}, DType::kFloat32, 1), 1e5f);
  const Tensor ones_there = ones({5000}, DType::kFloat32, kGpu);
  expect_close(layer_norm(to_device(x, kGpu), ones_there), layer_norm(x, ones({5000})), "1e5");
  // Squares that float does not hold.
  const Tensor large = full({3, 64}, 1e25, DType::kBFloat16);
  const Tensor gamma = ones({64}, DType::kBFloat16);
  expect_close(rms_norm(to_device(large, kGpu), to_device(gamma, kGpu)), rms_norm(large, gamma),
               "bfloat16");
}

TEST_F(GpuNorm, NaNStaysInItsRow) {
  const Tensor x = random_tensor({3, 500}, DType::kFloat32, 1);
  x.data<float>()[700] = NAN;
  x.data<float>()[1200] = HUGE_VALF;
  expect_close(layer_norm(to_device(x, kGpu), ones({500}, DType::kFloat32, kGpu)),
               layer_norm(x, ones({500})), "NaN");
}

TEST_F(GpuNorm, BatchNorm) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape :
         {Shape{6, 5}, Shape{3, 4, 7, 9}, Shape{2, 1, 1000}, Shape{4, 3, 17}}) {
      for (const bool is_training : {false, true}) {
        const Tensor x = random_tensor(shape, dtype, 1);
        const DType compute = compute_dtype(dtype);
        const BatchNormParameters here{
            random_tensor({shape[1]}, compute, 2), random_tensor({shape[1]}, compute, 3),
            random_tensor({shape[1]}, compute, 4), abs(random_tensor({shape[1]}, compute, 5))};
        const BatchNormParameters there{to_device(here.gamma, kGpu), to_device(here.beta, kGpu),
                                        to_device(here.running_mean, kGpu),
                                        to_device(here.running_var, kGpu)};
        const BatchNormOptions options{.eps = 1e-3, .is_training = is_training};
        const std::string what = cat(dtype, ' ', shape, is_training ? " training" : "");
        expect_close(batch_norm(to_device(x, kGpu), there, options), batch_norm(x, here, options),
                     what);
        expect_close(there.running_mean, here.running_mean, "running mean " + what);
        expect_close(there.running_var, here.running_var, "running variance " + what);
      }
    }
  }
  const Tensor x = random_tensor({2, 3, 4}, DType::kFloat32, 1);
  expect_close(batch_norm(to_device(x, kGpu), {}), batch_norm(x, {}), "no parameters");
}

TEST_F(GpuNorm, ViewsEmptyTensorsAndInPlace) {
  const Tensor x = random_tensor({64, 48}, DType::kFloat32, 1);
  const Tensor there = to_device(x, kGpu), gamma = ones({64}, DType::kFloat32, kGpu);
  expect_close(layer_norm(transpose(there), gamma), layer_norm(transpose(x), ones({64})), "view");
  EXPECT_EQ(rms_norm(zeros({0, 64}, DType::kFloat32, kGpu), gamma).shape(), (Shape{0, 64}));
  const Tensor row = ones({48}, DType::kFloat32, kGpu), wanted = layer_norm(x, ones({48}));
  layer_norm(there, row, {}, 1e-5, &there);
  expect_close(there, wanted, "in place");
}

TEST_F(GpuNorm, WritesNothingBeyondItsOutput) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{3, 5}, Shape{33, 127}, Shape{2, 40001}}) {
      const Guarded out(shape, dtype, kGpu);
      layer_norm(ones(shape, dtype, kGpu), ones({shape[1]}, dtype, kGpu), {}, 1e-5, &out.tensor());
      out.expect_intact(cat(dtype, ' ', shape));
    }
  }
}

}  // namespace
}  // namespace cuop
