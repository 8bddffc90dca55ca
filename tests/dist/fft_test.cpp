#include "cuop/dist/algo/fft.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/spectra.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(DistFft2dPencil, EqualsTheWholeTransform) {
  for (const int ranks : rank_counts()) {
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
    expect_close(parts_of(gather_all(back)), parts_of(gather_all(x)), 1e-14, "there and back");
  });
}

TEST(DistFft, TransformsBatches) {
  for (const int ranks : rank_counts()) {
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
        const Fft2dBatch descending{Dims{9, 4}, Dims{-1, 0}};
        expect_spectrum(comm, fft2d_from_root(comm, on_root(comm, x), descending),
                        cuop::fft2(x, Dims{9, 4}, Dims{-1, 0}), 1e-12, "fft2d, dims descending");
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
    expect_close(parts_of(gather_all(spectrum)), parts_of(cuop::fft(x)), 1e-13, "keep");
    const DistTensor across = fft(laid_out(comm, x, rows), {.dim = 0});
    expect_close(parts_of(gather_all(across)), parts_of(cuop::fft(x, {}, 0)), 1e-13, "across");
  });
}

using Function = Tensor (*)(const Tensor&, const FftDims&, const FftDims&, FftNorm, const Tensor*);
constexpr Function kFunctions[] = {&cuop::fftn, &cuop::ifftn, &cuop::rfftn, &cuop::irfftn};

TEST(DistFftn, RandomTransformsEqualTheWholeOnes) {
  for (const int ranks : {1, 2, 3, 4, 6, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 random(static_cast<unsigned>(ranks));
      const auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
      };
      for (int i = 0; i < 60; i += case_step()) {
        const int ndim = pick(1, 4);
        Shape shape;
        Dims axes, given;
        std::vector<int> order(static_cast<size_t>(ndim));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);  // lengths belong to axes in any order
        for (int dim = 0; dim < ndim; ++dim) shape.push_back(pick(1, 9));
        for (const int dim : order) {
          if (axes.ndim() > 0 && pick(0, 2) == 0) continue;
          axes.push_back(pick(0, 1) == 0 ? dim : dim - ndim);
          given.push_back(pick(0, 3) == 0 ? pick(2, 8) : -1);
        }
        const FftKind kind = kKinds[i % 4];
        if (kind == FftKind::kIrfft) given.back() = pick(1, 9);
        FftDims lengths = given;
        const bool has_default = kind != FftKind::kIrfft || shape[order[0]] > 1;
        if (has_default && axes.ndim() == 1 && pick(0, 1) == 0) lengths.reset();
        const FftNorm norm = i % 3 == 0 ? FftNorm::kOrtho : FftNorm::kBackward;
        const Tensor x = kind == FftKind::kRfft ? noise(shape) : complex_noise(shape);
        const Tensor expected =
            kFunctions[static_cast<size_t>(kind)](x, lengths, axes, norm, nullptr);
        const FftCall call{kind, lengths, axes, norm};
        fftn_from_root(comm, on_root(comm, x), call);
        const std::vector<Candidate> candidates = last_report().plan.candidates;
        const auto chosen = static_cast<size_t>(pick(0, static_cast<int>(candidates.size()) - 1));
        const std::string& strategy = candidates[chosen].strategy;
        const std::string what =
            cat(ranks, " ranks ", strategy, ' ', candidates[chosen].detail, " kind ", i % 4, ' ',
                shape, " axes ", axes, " s ", lengths ? cat(*lengths) : "none");
        expect_spectrum(comm, fftn_from_root(comm, on_root(comm, x), call, {.strategy = strategy}),
                        expected, 1e-12, what);
        // Of a tensor that lies in parts, the result wherever it is made.
        const Sharding rows(Mesh::line(ranks), split_dim(ndim, pick(0, ndim - 1)));
        const DistTensor made = fftn(laid_out(comm, x, rows), call);
        ASSERT_EQ(made.dtype(), expected.dtype()) << what;
        expect_close(parts_of(gather_all(made)), parts_of(expected), 1e-12, "in parts " + what);
      }
    });
  }
}

TEST(DistFftn, EveryLengthThereAndBack) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (int64_t n = 1; n <= 200; n += case_step() * (ranks == 2 || ranks == 3 ? 1 : 7)) {
        const Tensor x = noise({3, n});
        const Sharding columns(Mesh::line(ranks), split_dim(2, 1));
        const DistTensor in_parts = laid_out(comm, x, columns);
        const FftCall there{FftKind::kRfft, {}, {}, {}}, back{FftKind::kIrfft, Dims{3, n}, {}, {}};
        const DistTensor half = fftn(in_parts, there);
        expect_close(parts_of(gather_all(half)), parts_of(cuop::rfftn(x)), 1e-10, cat("rfftn ", n));
        expect_close(gather_all(fftn(half, back)), x, 1e-12, cat("irfftn ", n));
        const DistTensor line = fft(in_parts);
        expect_close(parts_of(gather_all(line)), parts_of(cuop::fft(x)), 1e-10, cat("fft ", n));
      }
    });
  }
}

/// Lines of whole kilobytes lie further apart in what a pass hands on; no result keeps the gaps.
TEST(DistFftn, LinesOfWholeKilobytes) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const DType dtype : {DType::kComplex128, DType::kComplex64, DType::kFloat64}) {
        for (const Shape& shape : {Shape{64, 128}, Shape{130, 256}, Shape{3, 64, 128}}) {
          const Tensor x = cast(noise(shape), dtype);
          const Sharding rows(Mesh::line(ranks), split_dim(shape.ndim(), 0));
          const double tolerance = dtype == DType::kComplex64 ? 1e-2 : 1e-9;
          for (const std::optional<Sharding>& output : {std::optional<Sharding>(), {rows}}) {
            const DistTensor y =
                fftn(laid_out(comm, x, rows), {}, {.strategy = "pencil", .output = output});
            expect_close(parts_of(gather_all(y)), parts_of(cuop::fftn(x)), tolerance, cat(shape));
            const Tensor& part = y.local();
            if (!part.is_defined() || part.size() == 0) continue;
            int64_t last = 0;
            for (int axis = 0; axis < part.ndim(); ++axis) {
              last += (part.shape(axis) - 1) * part.strides()[axis];
            }
            EXPECT_EQ(last, part.size() - 1) << shape << " has gaps";
          }
        }
      }
    });
  }
}

/// Bytes that the last call's plan moves before and after the arithmetic and in between.
int64_t planned_bytes() { return last_report().plan.bytes(); }

TEST(DistFftn, SendsHalfOfTheSpectrumOfRealNumbers) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(2, 0));
    const DistTensor x = laid_out(comm, noise({32, 30}), rows);
    fftn(x, {}, {.strategy = "pencil"});
    const int64_t whole = planned_bytes();
    EXPECT_EQ(whole, 32 * 30 * 16 * 3 / 4);
    const DistTensor half = fftn(x, {.kind = FftKind::kRfft}, {.strategy = "pencil"});
    EXPECT_EQ(half.shape(), (Shape{32, 16}));
    EXPECT_EQ(planned_bytes(), 32 * 16 * 16 * 3 / 4);
    // The result is left in columns, from which the way back takes one all-to-all more.
    fftn(half, {.kind = FftKind::kIrfft}, {.strategy = "pencil"});
    EXPECT_EQ(planned_bytes(), 32 * 16 * 16 * 3 / 4);
  });
}

TEST(DistFftn, TakesOneExchangeOfSlabsAndTwoOfPencilsAndNoMoreBack) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding slabs(Mesh::line(4), split_dim(3, 0));
    const DistTensor x = laid_out(comm, complex_noise({8, 8, 8}), slabs);
    const int64_t bytes = 8 * 8 * 8 * 16;
    const DistTensor y = fftn(x, {}, {.strategy = "slab"});
    EXPECT_EQ(planned_bytes(), bytes * 3 / 4);
    const DistTensor back = fftn(y, {.kind = FftKind::kIfft}, {.strategy = "slab"});
    EXPECT_EQ(planned_bytes(), bytes * 3 / 4);
    expect_close(parts_of(gather_all(back)), parts_of(gather_all(x)), 1e-14, "there and back");

    using Axes = Spec::Axes;
    const Sharding pencils(Mesh({2, 2}, {"r", "c"}), P(Axes{"r"}, Axes{"c"}, Axes{}));
    const DistTensor z = laid_out(comm, complex_noise({8, 8, 8}), pencils);
    const DistTensor spectrum = fftn(z, {}, {.strategy = "pencil"});
    EXPECT_EQ(planned_bytes(), bytes);  // half of it twice
    fftn(spectrum, {.kind = FftKind::kIfft}, {.strategy = "pencil"});
    EXPECT_EQ(planned_bytes(), bytes);
  });
}

TEST(DistFftn, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = on_root(comm, noise({4, 5, 2}));
    const auto refusal = [&](const FftCall& call) {
      return failure_of([&] { fftn_from_root(comm, x, call); });
    };
    EXPECT_THAT(refusal({.axes = Dims{0, 3}}), HasSubstr("fftn: axis 3 is out of range"));
    EXPECT_THAT(refusal({.axes = Dims{}}), HasSubstr("fftn: at least one axis is needed"));
    EXPECT_THAT(refusal({.s = Dims{2, 2}, .axes = Dims{0}}),
                HasSubstr("fftn: 2 lengths were given for 1 axes"));
    EXPECT_THAT(refusal({.s = Dims{2, 2, 2, 2}}),
                HasSubstr("fftn: 4 lengths were given for 3 dimensions"));
    EXPECT_THAT(refusal({.s = Dims{0}}), HasSubstr("the length is 0"));
    EXPECT_THAT(refusal({.axes = Dims{1, 1}}), HasSubstr("an axis is given twice in (1, 1)"));
    EXPECT_THAT(failure_of([&] { fft_from_root(comm, x, {.n = -1}); }),
                HasSubstr("fft: the length is -1"));
    const Tensor z = on_root(comm, cuop::fft(noise({4, 5})));
    EXPECT_THAT(failure_of([&] { fftn_from_root(comm, z, {.kind = FftKind::kRfft}); }),
                HasSubstr("rfftn: real input is needed"));
    expect_spectrum(comm, fftn_from_root(comm, x), cuop::fftn(noise({4, 5, 2})), 1e-12, "after");
  });
}

TEST(DistFft, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = on_root(comm, noise({4, 5, 2}));
    EXPECT_THAT(failure_of([&] { fft2d_pencil_from_root(comm, x); }),
                HasSubstr("fft2d_pencil: x: a tensor of 2 dimensions is needed, given (4, 5, 2)"));
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
