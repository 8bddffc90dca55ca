// Fourier transforms of a GPU against those of the CPU.
#include "cuop/ops/fft/fft.h"

#include <string>

#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_values.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

constexpr bool is_double(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kComplex128;
}
double tolerance_of(DType dtype) { return is_double(dtype) ? 1e-13 : 3e-6; }

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                             DType::kComplex128};

using test::Guarded;

class GpuFft : public GpuTest {};

TEST_F(GpuFft, EveryAxisAndLength) {
  for (const DType dtype : kDTypes) {
    const Tensor x = random_values({7, 32, 15}, 1, dtype), there = gpu(x);
    for (const int64_t axis : {0, 1, 2}) {
      for (const FftSize n : {FftSize(), FftSize(1), FftSize(5), FftSize(13), FftSize(64)}) {
        expect_close(fft(there, n, axis), fft(x, n, axis), tolerance_of(dtype));
        expect_close(ifft(there, n, axis), ifft(x, n, axis), tolerance_of(dtype));
        if (is_complex(dtype)) {
          expect_close(irfft(there, n, axis), irfft(x, n, axis), tolerance_of(dtype));
        } else {
          expect_close(rfft(there, n, axis), rfft(x, n, axis), tolerance_of(dtype));
        }
      }
    }
  }
}

TEST_F(GpuFft, SeveralAxesAndNorms) {
  for (const DType dtype : kDTypes) {
    const Tensor x = random_values({6, 10, 12}, 2, dtype), there = gpu(x);
    for (const FftNorm norm : {FftNorm::kBackward, FftNorm::kOrtho, FftNorm::kForward}) {
      expect_close(fftn(there, {}, {}, norm), fftn(x, {}, {}, norm), tolerance_of(dtype));
      expect_close(ifftn(there, {}, {}, norm), ifftn(x, {}, {}, norm), tolerance_of(dtype));
      expect_close(fft2(there, {}, Dims{-2, -1}, norm), fft2(x, {}, Dims{-2, -1}, norm),
                   tolerance_of(dtype));
      if (is_complex(dtype)) {
        expect_close(irfftn(there, {}, {}, norm), irfftn(x, {}, {}, norm), tolerance_of(dtype));
      } else {
        expect_close(rfftn(there, {}, {}, norm), rfftn(x, {}, {}, norm), tolerance_of(dtype));
      }
    }
  }
}

TEST_F(GpuFft, WritesNothingAroundAnOutput) {
  for (const bool is_wide : {false, true}) {
    const DType real = is_wide ? DType::kFloat64 : DType::kFloat32;
    const DType complex = is_wide ? DType::kComplex128 : DType::kComplex64;
    for (const int64_t n : {1, 2, 13, 64, 100}) {
      const Tensor x = random_values({3, n}, 4, complex), r = random_values({3, n}, 5, real);
      const std::string what = "of " + std::to_string(n);
      const Guarded forward({3, n}, complex, kGpu), backward({3, n}, complex, kGpu),
          half({3, n / 2 + 1}, complex, kGpu), whole({3, n}, real, kGpu);
      fft(gpu(x), {}, -1, FftNorm::kBackward, &forward.tensor());
      ifft(gpu(x), {}, -1, FftNorm::kBackward, &backward.tensor());
      rfft(gpu(r), {}, -1, FftNorm::kBackward, &half.tensor());
      irfft(half.tensor(), n, -1, FftNorm::kBackward, &whole.tensor());
      expect_close(forward.tensor(), fft(x), tolerance_of(complex));
      expect_close(backward.tensor(), ifft(x), tolerance_of(complex));
      expect_close(half.tensor(), rfft(r), tolerance_of(complex));
      expect_close(whole.tensor(), r, tolerance_of(real));
      forward.expect_intact("fft " + what);
      backward.expect_intact("ifft " + what);
      half.expect_intact("rfft " + what);
      whole.expect_intact("irfft " + what);
    }
  }
}

TEST_F(GpuFft, SineAndCosineTransforms) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor x = random_values({5, 17}, 3, dtype), there = gpu(x);
    for (const int64_t axis : {0, 1}) {
      expect_close(dst1(there, axis), dst1(x, axis), tolerance_of(dtype));
      expect_close(dct1(there, axis), dct1(x, axis), tolerance_of(dtype));
      expect_close(dct2(there, axis), dct2(x, axis), tolerance_of(dtype));
      expect_close(dct3(there, axis), dct3(x, axis), tolerance_of(dtype));
    }
  }
}

TEST_F(GpuFft, StridedViewsAndTheirInputIsKept) {
  const Tensor x = random_values({12, 9, 8}, 4, DType::kComplex64);
  const Tensor there = gpu(x);
  expect_close(fft(transpose(there), {}, 0), fft(transpose(x), {}, 0), 3e-6);
  expect_close(irfft(slice(there, 1, 1, 8, 2), {}, 0), irfft(slice(x, 1, 1, 8, 2), {}, 0), 3e-6);
  EXPECT_EQ(host_values(there), host_values(x));
}

TEST_F(GpuFft, ThereAndBack) {
  const Tensor x = random_values({100003}, 5, DType::kFloat64);
  expect_close(irfft(rfft(gpu(x)), 100003), x, 1e-12);
}

}  // namespace
}  // namespace cuop
