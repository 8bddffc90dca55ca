#include "cuop/dist/algo/fft.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // NOLINT: the frame of these tests

/// A complex tensor as a real one with a last dimension of 2, to compare with expect_close.
Tensor parts(const Tensor& x) {
  if (!is_complex(x.dtype())) return x;
  const Tensor whole = contiguous(x);
  Shape shape = x.shape();
  shape.push_back(2);
  Layout layout = contiguous_layout(shape);
  layout.offset = 2 * whole.layout().offset;
  return Tensor(whole.storage(), layout, real_dtype(x.dtype()));
}

void expect_spectrum(const CommunicatorPtr& comm, const Tensor& given, const Tensor& expected,
                     double tolerance, const std::string& what) {
  if (comm->rank() != 0) {
    EXPECT_FALSE(given.is_defined()) << what;
    return;
  }
  ASSERT_EQ(given.dtype(), expected.dtype()) << what;
  expect_close(parts(given), parts(expected), tolerance, what);
}

TEST(DistFft2dPencil, EqualsTheWholeTransform) {
  for (const int ranks : kRanks) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{1, 1}, Shape{8, 6}, Shape{5, 13}, Shape{2, 9}}) {
        const Tensor x = noise(shape);
        for (const FftNorm norm : {FftNorm::kBackward, FftNorm::kForward, FftNorm::kOrtho}) {
          for (const char* strategy : {"", "root", "pencil"}) {
            const Tensor spectrum =
                fft2d_pencil_from_root(comm, on_root(comm, x), {norm}, {.strategy = strategy});
            expect_spectrum(comm, spectrum, cuop::fft2(x, {}, Dims{-2, -1}, norm), 1e-12,
                            cat(shape, ' ', strategy));
          }
        }
        const Tensor y = cuop::fft2(x);
        const Tensor back = fft2d_pencil_from_root(comm, on_root(comm, y), {.is_inverse = true},
                                                   {.strategy = "pencil"});
        expect_spectrum(comm, back, cuop::ifft2(y), 1e-12, cat("inverse ", shape));
      }
    });
  }
}

TEST(DistFft2dPencil, TakesTwoAllToAllsThereAndBack) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(2, 0));
    const Sharding columns(Mesh::line(4), split_dim(2, 1));
    const DistTensor x = laid_out(comm, cast(noise({8, 8}), DType::kComplex128), rows);
    const DistTensor spectrum = fft2d_pencil(x);
    EXPECT_EQ(spectrum.sharding(), columns);
    const int64_t one_pass = 8 * 8 * 16 * 3 / 4;
    EXPECT_EQ(last_report().plan.bytes(), one_pass);
    // Back from columns: the passes need rows first, the result is wanted in rows.
    const DistTensor back = fft2d_pencil(spectrum, {.is_inverse = true}, {.output = rows});
    EXPECT_EQ(back.sharding(), rows);
    expect_close(parts(gather_all(back)), parts(gather_all(x)), 1e-14, "there and back");
  });
}

TEST(DistFft, TransformsBatches) {
  for (const int ranks : kRanks) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{5, 4}, Shape{12}, Shape{2, 3, 7}, Shape{0, 4}}) {
        const Tensor x = noise(shape);
        for (const int64_t dim : {int64_t{-1}, int64_t{0}}) {
          if (shape[dim < 0 ? shape.ndim() - 1 : 0] == 0) continue;
          for (const FftSize n : {FftSize{}, FftSize{6}}) {
            const auto run = [&](FftKind kind, const Tensor& input) {
              return fft_from_root(comm, on_root(comm, input), {kind, n, dim});
            };
            const std::string what = cat(shape, " dim ", dim);
            expect_spectrum(comm, run(FftKind::kFft, x), cuop::fft(x, n, dim), 1e-13, what);
            expect_spectrum(comm, run(FftKind::kIfft, x), cuop::ifft(x, n, dim), 1e-13, what);
            const Tensor half = cuop::rfft(x, n, dim);
            expect_spectrum(comm, run(FftKind::kRfft, x), half, 1e-13, what);
            expect_spectrum(comm, run(FftKind::kIrfft, half), cuop::irfft(half, n, dim), 1e-13,
                            what);
          }
        }
        if (shape.ndim() < 3) continue;
        expect_spectrum(comm, fft2d_from_root(comm, on_root(comm, x), {}, {.strategy = "batch"}),
                        cuop::fft2(x), 1e-12, "fft2d");
        const Fft2dBatch other{Dims{4, -1}, Dims{0, 2}, {FftNorm::kOrtho, true}};
        expect_spectrum(comm, fft2d_from_root(comm, on_root(comm, x), other),
                        cuop::ifft2(x, Dims{4, -1}, Dims{0, 2}, FftNorm::kOrtho), 1e-12, "ifft2d");
      }
    });
  }
}

TEST(DistFft, KeepsAShardedBatchWhereItLies) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor x = noise({5, 8});
    const Sharding rows(Mesh::line(3), split_dim(2, 0));
    const DistTensor spectrum = fft(laid_out(comm, x, rows));
    EXPECT_EQ(spectrum.sharding(), rows);
    EXPECT_EQ(last_report().plan.bytes(), 0);
    expect_close(parts(gather_all(spectrum)), parts(cuop::fft(x)), 1e-13, "keep");
    const DistTensor across = fft(laid_out(comm, x, rows), {.dim = 0});
    expect_close(parts(gather_all(across)), parts(cuop::fft(x, {}, 0)), 1e-13, "across");
  });
}

TEST(DistFft, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = on_root(comm, noise({4, 5, 2}));
    EXPECT_THAT(failure_of([&] { fft2d_pencil_from_root(comm, x); }),
                HasSubstr("fft2d_pencil: a tensor of 2 dimensions is needed, given (4, 5, 2)"));
    EXPECT_THAT(failure_of([&] { fft_from_root(comm, x, {.dim = 3}); }),
                HasSubstr("fft: axis 3 is out of range"));
    EXPECT_THAT(failure_of([&] { fft_from_root(comm, x, {.n = 0}); }),
                HasSubstr("fft: the length is 0"));
    const Tensor z = on_root(comm, cuop::fft(noise({4, 5})));
    EXPECT_THAT(failure_of([&] { fft_from_root(comm, z, {.kind = FftKind::kRfft}); }),
                HasSubstr("rfft: real input is needed"));
    EXPECT_THAT(failure_of([&] { fft2d_from_root(comm, x, {.dims = {0}}); }),
                HasSubstr("two dims"));
  });
}

}  // namespace
}  // namespace cuop::dist
