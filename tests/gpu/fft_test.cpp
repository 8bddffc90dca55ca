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
double fft_tolerance(DType dtype) { return is_double(dtype) ? 1e-13 : 3e-6; }

constexpr DType kFftDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                DType::kComplex128};

using test::Guarded;

class GpuFft : public GpuTest {};

TEST_F(GpuFft, EveryAxisAndLength) {
  for (const DType dtype : kFftDTypes) {
    const Tensor x = random_values({7, 32, 15}, 1, dtype), there = gpu(x);
    for (const int64_t axis : {0, 1, 2}) {
      for (const FftSize n : {FftSize(), FftSize(1), FftSize(5), FftSize(13), FftSize(64)}) {
        expect_close(fft(there, n, axis), fft(x, n, axis), fft_tolerance(dtype));
        expect_close(ifft(there, n, axis), ifft(x, n, axis), fft_tolerance(dtype));
        if (is_complex(dtype)) {
          expect_close(irfft(there, n, axis), irfft(x, n, axis), fft_tolerance(dtype));
        } else {
          expect_close(rfft(there, n, axis), rfft(x, n, axis), fft_tolerance(dtype));
        }
      }
    }
  }
}

TEST_F(GpuFft, SeveralAxesAndNorms) {
  for (const DType dtype : kFftDTypes) {
    const Tensor x = random_values({6, 10, 12}, 2, dtype), there = gpu(x);
    for (const FftNorm norm : {FftNorm::kBackward, FftNorm::kOrtho, FftNorm::kForward}) {
      expect_close(fftn(there, {}, {}, norm), fftn(x, {}, {}, norm), fft_tolerance(dtype));
      expect_close(ifftn(there, {}, {}, norm), ifftn(x, {}, {}, norm), fft_tolerance(dtype));
      expect_close(fft2(there, {}, Dims{-2, -1}, norm), fft2(x, {}, Dims{-2, -1}, norm),
                   fft_tolerance(dtype));
      if (is_complex(dtype)) {
        expect_close(irfftn(there, {}, {}, norm), irfftn(x, {}, {}, norm), fft_tolerance(dtype));
      } else {
        expect_close(rfftn(there, {}, {}, norm), rfftn(x, {}, {}, norm), fft_tolerance(dtype));
      }
    }
  }
}

/// x as the middle of a larger tensor, whose rows are longer and of which every second plane
/// counts.
Tensor with_gaps(const Tensor& x) {
  Shape larger = x.shape();
  larger[0] *= 2;
  larger[x.ndim() - 1] += 3;
  larger[x.ndim() - 2] += 2;
  Tensor view = gpu(random_values(larger, 99, x.dtype()));
  view = slice(view, 0, 0, larger[0], 2);
  for (int axis : {x.ndim() - 2, x.ndim() - 1}) view = slice(view, axis, 1, 1 + x.shape(axis));
  copy_into(view, gpu(x));
  return view;
}

// Two and three axes go to the library in one call where the layouts of both sides are grids.
TEST_F(GpuFft, GridsInAnyLayout) {
  for (const DType dtype : kFftDTypes) {
    const double tolerance = fft_tolerance(dtype);
    for (const Shape& shape : {Shape{3, 4, 5, 6}, Shape{2, 1, 16, 9}, Shape{1, 7, 1, 1}}) {
      const Tensor x = random_values(shape, 7, dtype);
      const Tensor turned = swap_axes(contiguous(swap_axes(gpu(x), 1, 2)), 1, 2);
      for (const Tensor& there : {gpu(x), with_gaps(x), turned}) {
        for (const Dims& axes : {Dims{-2, -1}, Dims{-1, -2}, Dims{1, 2}, Dims{0, 1, 2}, Dims{1, 3},
                                 Dims{1, 2, 3}, Dims{0, 1, 2, 3}}) {
          const std::string what = cat(dtype, ' ', shape, ", axes ", axes);
          expect_close(fftn(there, {}, axes), fftn(x, {}, axes), tolerance, what);
          expect_close(ifftn(there, {}, axes), ifftn(x, {}, axes), tolerance, what);
          if (!is_complex(dtype)) {
            expect_close(rfftn(there, {}, axes), rfftn(x, {}, axes), tolerance, what);
          } else if (x.shape(normalize_axis(axes.back(), 4, "x")) > 1) {
            expect_close(irfftn(there, {}, axes), irfftn(x, {}, axes), tolerance, what);
          }
        }
        expect_close(fft2(there, Dims{5, 4}), fft2(x, Dims{5, 4}), tolerance);  // cut and padded
        expect_close(there, x, 0);
      }
    }
  }
}

TEST_F(GpuFft, WritesNothingAroundAGrid) {
  const Tensor x = random_values({2, 6, 10}, 8, DType::kComplex64);
  const Tensor r = random_values({2, 6, 10}, 9, DType::kFloat32);
  const Guarded whole({2, 6, 10}, DType::kComplex64, kGpu),
      half({2, 6, 6}, DType::kComplex64, kGpu);
  for (const Dims& axes : {Dims{1, 2}, Dims{0, 1, 2}}) {
    ifftn(gpu(x), {}, axes, FftNorm::kBackward, &whole.tensor());
    rfftn(gpu(r), {}, axes, FftNorm::kOrtho, &half.tensor());
    expect_close(whole.tensor(), ifftn(x, {}, axes), fft_tolerance(x.dtype()));
    expect_close(half.tensor(), rfftn(r, {}, axes, FftNorm::kOrtho), fft_tolerance(r.dtype()));
    whole.expect_intact("ifftn");
    half.expect_intact("rfftn");
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
      expect_close(forward.tensor(), fft(x), fft_tolerance(complex));
      expect_close(backward.tensor(), ifft(x), fft_tolerance(complex));
      expect_close(half.tensor(), rfft(r), fft_tolerance(complex));
      expect_close(whole.tensor(), r, fft_tolerance(real));
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
      expect_close(dst1(there, axis), dst1(x, axis), fft_tolerance(dtype));
      expect_close(dct1(there, axis), dct1(x, axis), fft_tolerance(dtype));
      expect_close(dct2(there, axis), dct2(x, axis), fft_tolerance(dtype));
      expect_close(dct3(there, axis), dct3(x, axis), fft_tolerance(dtype));
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
