#include "cuop/dist/plan/wire.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/exec/narrow.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/exec/sparse.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The largest power of two of a sample of exponents times numbers near 1.
Tensor spread(const Shape& shape, double lowest, double highest, DType dtype) {
  const Tensor x = cast(to_device(noise(shape, DType::kFloat64, 5), kCpu), DType::kFloat64);
  double* data = x.data<double>();
  for (int64_t i = 0; i < x.size(); ++i) {
    const double part = std::abs(data[i]);
    data[i] = std::copysign(std::exp2(lowest + (highest - lowest) * part), data[i]);
  }
  return to_device(cast(x, dtype), home());
}

Tensor there_and_back(const Tensor& x, DType wire, int axis) {
  const Tensor out = full(x.shape(), 7.0, x.dtype(), x.device());
  widen_into(out, narrowed(x, wire, axis));
  return out;
}

TEST(NarrowWire, KeepsTheBitsThatTheShorterFormatHas) {
  for (const DType wire : {DType::kFloat16, DType::kBFloat16}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const double epsilon = wire == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
      for (const double offset : {-140.0, -60.0, 0.0, 60.0, 126.0}) {
        for (const int axis : {0, 1}) {
          const Tensor x = spread({7, 50}, offset - 12.0, offset, dtype);
          const std::vector<double> given = values(x), got = values(there_and_back(x, wire, axis));
          // Where float32 itself has fewer bits nothing is lost beyond its last one.
          const double least = dtype == DType::kFloat32 ? 0x1p-149 : 0.0;
          for (size_t i = 0; i < given.size(); ++i) {
            ASSERT_NEAR(got[i], given[i], std::max(epsilon * std::abs(given[i]), least))
                << wire << ' ' << dtype << " 2^" << offset;
          }
        }
      }
    }
  }
}

/// What the shorter format holds, whatever power of two it is multiplied by, comes back as it was.
TEST(NarrowWire, ScalesByPowersOfTwo) {
  std::vector<float> numbers;
  for (int i = 0; i < 64; ++i) numbers.push_back(static_cast<float>(i - 32) / 32.0F);
  for (int power = -126; power <= 127; ++power) {
    const Tensor x = multiply(from_values<float>({64}, numbers), std::ldexp(1.0F, power), nullptr);
    const Tensor here = to_device(x, home());
    ASSERT_EQ(values(there_and_back(here, DType::kFloat16, 0)), values(here)) << power;
  }
}

TEST(NarrowWire, PassesWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = static_cast<float>(kInfinity);
  const Tensor x = to_device(
      from_values<float>({3, 3}, {infinity, 1e38F, -infinity, 0.0F, nan, 3.0F, nan, nan, nan}),
      home());
  const std::vector<double> got = values(there_and_back(x, DType::kFloat16, 1));
  EXPECT_EQ(got[0], kInfinity);
  EXPECT_NEAR(got[1], 1e38, 1e35);
  EXPECT_EQ(got[2], -kInfinity);
  EXPECT_EQ(got[3], 0.0);
  EXPECT_TRUE(std::isnan(got[4]));
  EXPECT_EQ(got[5], 3.0);
  for (size_t i = 6; i < 9; ++i) EXPECT_TRUE(std::isnan(got[i]));
  EXPECT_EQ(there_and_back(zeros({0, 4}, DType::kFloat32, home()), DType::kFloat16, 1).size(), 0);
  EXPECT_EQ(
      values(there_and_back(full({}, 1e30, DType::kFloat64, home()), DType::kBFloat16, 0))[0],
      values(cast(cast(full({}, 1e30, DType::kFloat32), DType::kBFloat16), DType::kFloat64))[0]);
}

/// x with about this part of its elements zero.
Tensor thinned(const Shape& shape, double zeros_part, DType dtype) {
  const Tensor x = noise(shape, DType::kFloat64, 3), keep = noise(shape, DType::kFloat64, 4);
  return cast(where(less(keep, 2.0 * zeros_part - 1.0), 0.0, x), dtype);
}

TEST(SparseWire, TakesTheShortestForm) {
  using Kind = SparseForm::Kind;
  const auto kind = [](double zeros_part, int64_t item, double threshold = 0.0) {
    constexpr int64_t kCount = 1'000'000;
    const auto nonzeros = static_cast<int64_t>((1.0 - zeros_part) * kCount);
    return SparseForm::shortest(kCount, nonzeros, item, threshold).kind;
  };
  EXPECT_EQ(kind(0.0, 4), Kind::kDense);
  EXPECT_EQ(kind(0.5, 4), Kind::kBitmap);
  EXPECT_EQ(kind(0.8, 4), Kind::kBitmap);
  EXPECT_EQ(kind(0.999, 4), Kind::kCoordinates);
  EXPECT_EQ(kind(1.0, 8), Kind::kCoordinates);
  EXPECT_EQ(kind(0.8, 4, 0.9), Kind::kDense);
  EXPECT_EQ(SparseForm::shortest(0, 0, 4, 0.0).kind, Kind::kDense);
  EXPECT_FALSE((SparseForm{Kind::kBitmap, 11}.is_sound(10)));
  EXPECT_FALSE((SparseForm{Kind::kDense, 9}.is_sound(10)));
  EXPECT_FALSE((SparseForm{static_cast<Kind>(3), 0}.is_sound(10)));
}

TEST(SparseWire, BringsEveryTensorBack) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kComplex64, DType::kFloat16}) {
    for (const double part : {0.0, 0.4, 0.8, 0.99, 1.0}) {
      for (const Shape& shape : {Shape{0, 5}, Shape{1}, Shape{3, 67}, Shape{40, 50}}) {
        const Tensor x =
            multiply(thinned(shape, part, dtype), Scalar(dtype == DType::kInt8 ? 100 : 1));
        const Sparse packet = without_zeros(x, 0.0);
        const int64_t bytes = packet.form.index_bytes(x.size()) + packet.values.nbytes();
        EXPECT_LE(bytes, x.nbytes());
        const Tensor out = swap_axes(full(swap_axes(x, 0, -1).shape(), 7, dtype, home()), 0, -1);
        with_zeros_into(out, packet);
        EXPECT_EQ(values(equal(out, x)), std::vector<double>(static_cast<size_t>(x.size()), 1.0))
            << dtype << ' ' << part << ' ' << shape;
      }
    }
  }
}

TEST(SparseWire, KeepsNan) {
  const Tensor x = zeros({200}, DType::kFloat32);
  x.data<float>()[77] = std::numeric_limits<float>::quiet_NaN();
  const Tensor there = to_device(x, home()), out = ones({200}, DType::kFloat32, home());
  const Sparse packet = without_zeros(there, 0.5);
  EXPECT_EQ(packet.form.nonzeros, 1);
  with_zeros_into(out, packet);
  EXPECT_TRUE(std::isnan(values(out)[77]));
  EXPECT_EQ(values(out)[76], 0.0);
}

TEST(SparseWire, KnowsTheZerosOfShortFloatsByTheirBits) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = zeros({64}, dtype);
    auto* bits = static_cast<uint16_t*>(x.data());
    bits[3] = 0x8000;   // -0
    bits[9] = 0x0001;   // the least number
    bits[20] = 0x8001;  // and its opposite
    bits[21] = 0xffff;  // a NaN
    const Tensor there = to_device(x, home()), out = ones({64}, dtype, home());
    const Sparse packet = without_zeros(there, 0.5);
    ASSERT_EQ(packet.form.kind, SparseForm::Kind::kBitmap);
    EXPECT_EQ(packet.form.nonzeros, 3) << dtype;
    with_zeros_into(out, packet);
    const Tensor back = to_device(out, kCpu);
    const auto* got = static_cast<const uint16_t*>(back.data());
    for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], i == 3 ? 0 : bits[i]) << dtype << ' ' << i;
  }
}

const std::vector<Wire>& wires() {
  static const std::vector<Wire> all{Wire::narrow(DType::kFloat16, "test"),
                                     Wire::narrow(DType::kBFloat16, "test"),
                                     Wire::sparse(0.3, "test")};
  return all;
}

double tolerance_of(const Wire& wire) {
  if (wire.form != Wire::Form::kNarrow) return 0.0;
  return wire.dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
}

TEST(Wires, BringAnyShardingToAnyOther) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{0, 3}, Shape{1, 5}, Shape{6, 7}}) {
        const Tensor whole = thinned(shape, 0.6, DType::kFloat32);
        for (const Wire& wire : wires()) {
          for (const Sharding& from : matrix_shardings(ranks)) {
            for (const Sharding& to : matrix_shardings(ranks)) {
              const DistTensor moved = redistribute(laid_out(comm, whole, from), to, wire);
              const Tensor expected = laid_out(comm, whole, to).local();
              ASSERT_EQ(moved.sharding(), to);
              ASSERT_EQ(moved.local().is_defined(), expected.is_defined());
              if (!expected.is_defined()) continue;
              expect_close(moved.local(), expected, tolerance_of(wire), cat(from, " -> ", to));
            }
          }
        }
      }
    });
  }
}

TEST(Wires, SendFewerBytes) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(2, 0)), columns(Mesh::line(4), split_dim(2, 1));
    const auto sent = [&](const Tensor& whole, const Wire& wire) {
      const int64_t before = comm->bytes_sent();
      redistribute(laid_out(comm, whole, rows), columns, wire);
      return static_cast<double>(comm->bytes_sent() - before);
    };
    const Tensor full = noise({256, 512}, DType::kFloat32);
    const double plain = sent(full, {});
    EXPECT_LT(sent(full, wires()[0]), 0.53 * plain);  // and a scale for each row
    EXPECT_LT(sent(full, wires()[2]), 1.01 * plain);
    for (const double zeros_part : {0.5, 0.8, 0.95}) {
      // A bit or 4 bytes for each place beside its value.
      const double expected = std::min(1.0 / 32 + 1.0 - zeros_part, 2.0 * (1.0 - zeros_part));
      EXPECT_LT(sent(thinned({256, 512}, zeros_part, DType::kFloat32), wires()[2]),
                (expected + 0.03) * plain);
    }
    // Halves are no shorter as halves.
    const Tensor halves = noise({256, 512}, DType::kFloat16);
    EXPECT_EQ(sent(halves, wires()[0]), sent(halves, {}));
  });
}

struct ProductSizes {
  int64_t m, k, n;
};

double norm_of(const Tensor& x) {
  double squares = 0.0;
  for (const double value : values(x)) squares += value * value;
  return std::sqrt(squares);
}

TEST(Wires, MultiplyMatricesWithinTheirBound) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const double scale : {1.0, 1e18, 1e-30}) {
        const Tensor a = multiply(noise({33, 20}, DType::kFloat32), scale);
        const Tensor b = multiply(noise({20, 41}, DType::kFloat32, 2), 1.0 / scale);
        const Tensor expected = cuop::matmul(cast(a, DType::kFloat64), cast(b, DType::kFloat64));
        for (const Wire& wire : wires()) {
          for (const char* strategy : {"row", "column", "block_2d", "k_split"}) {
            const Tensor c = matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                              {.strategy = strategy}, wire);
            if (comm->rank() != 0) continue;
            ASSERT_EQ(c.dtype(), DType::kFloat32);
            const double bound = 2.0 * std::max(tolerance_of(wire), 0x1p-24) * std::sqrt(20.0) *
                                 norm_of(a) * norm_of(b);
            EXPECT_LE(norm_of(subtract(cast(c, DType::kFloat64), expected)), bound)
                << strategy << wire.text() << ' ' << scale;
          }
        }
      }
    });
  }
}

/// Of ranks that multiply 16-bit floats so fast that rounding pays: matrix units.
Machine with_matrix_units() {
  Machine machine;
  machine.flops = 1e6;
  machine.half_speed = 1000.0;
  return machine;
}

TEST(Wires, MultiplyNarrowBlocksWhereThoseAreFaster) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const double scale : {1.0, 1e18, 1e-30}) {
        for (const ProductSizes& s :
             {ProductSizes{33, 20, 41}, {1, 1, 1}, {1, 60, 5}, {0, 3, 2}, {6, 0, 7}}) {
          const Tensor a = multiply(noise({s.m, s.k}, DType::kFloat32), scale);
          const Tensor b = multiply(noise({s.k, s.n}, DType::kFloat32, 2), 1.0 / scale);
          const Tensor expected = cuop::matmul(cast(a, DType::kFloat64), cast(b, DType::kFloat64));
          for (const Wire& wire : {wires()[0], wires()[1]}) {
            for (const char* strategy : {"row", "column", "block_2d", "k_split"}) {
              const Tensor c =
                  matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                   {.strategy = strategy, .machine = with_matrix_units()}, wire);
              const bool is_product = s.m * s.n * s.k > 1;
              if (ranks > 1 && is_product) {
                EXPECT_EQ(last_report().plan.setting("narrow"), 1) << strategy;
              }
              if (comm->rank() != 0) continue;
              ASSERT_EQ(c.dtype(), DType::kFloat32);
              const double bound = 2.0 * tolerance_of(wire) * std::sqrt(static_cast<double>(s.k)) *
                                   norm_of(a) * norm_of(b);
              EXPECT_LE(norm_of(subtract(cast(c, DType::kFloat64), expected)), bound)
                  << strategy << wire.text() << ' ' << scale;
            }
          }
        }
      }
    });
  }
}

TEST(Wires, MultiplyInFloat32WhereNothingIsGained) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({8, 8}, DType::kFloat32);
    const auto setting = [&](const CallOptions& options, const Wire& wire, ProductPath path) {
      matmul_from_root(comm, on_root(comm, a), on_root(comm, a), options, wire, path);
      return last_report().plan.setting("narrow");
    };
    const Machine fast = with_matrix_units();
    const CallOptions rows{.strategy = "row", .machine = fast};
    EXPECT_EQ(setting(rows, wires()[0], ProductPath::kDense), 1);
    EXPECT_EQ(setting(rows, {}, ProductPath::kDense), 0);
    EXPECT_EQ(setting(rows, wires()[2], ProductPath::kDense), 0);
    EXPECT_EQ(setting(rows, wires()[0], ProductPath::kAuto), 0);
    EXPECT_EQ(setting({.strategy = "root", .machine = fast}, wires()[0], ProductPath::kDense), 0);
    EXPECT_EQ(setting({.strategy = "row", .machine = Machine()}, wires()[0], ProductPath::kDense),
              0);
  });
}

TEST(Wires, MultiplyNarrowBlocksOfAnySize) {
  const auto infinity = static_cast<float>(kInfinity);
  const auto product = [](const std::vector<float>& a, const std::vector<float>& b, bool adds) {
    const auto k = static_cast<int64_t>(a.size()) / 2;
    const Tensor left = to_device(from_values<float>({2, k}, a), home());
    const Tensor right = to_device(from_values<float>({k, 2}, b), home());
    const Tensor c = full({2, 2}, 1.0, DType::kFloat32, home());
    multiply_narrowed(left, right, DType::kFloat16, adds, c);
    return values(c);
  };
  EXPECT_THAT(product({2, 3, 4, 5}, {1, 2, 3, 4}, false), ElementsAre(11, 16, 19, 28));
  EXPECT_THAT(product({2, 3, 4, 5}, {1, 2, 3, 4}, true), ElementsAre(12, 17, 20, 29));
  // 2^127 times 2^-149 and back, 2^127 times 2, numbers that leave nothing, and what is not finite.
  const float huge = 0x1p127F, tiny = 0x1p-149F;
  EXPECT_THAT(product({huge, tiny}, {tiny, 2.0F}, false),
              ElementsAre(0x1p-22, kInfinity, 0.0, 0x1p-148));
  const std::vector<double> rows = product({infinity, 1.0F}, {tiny, -tiny}, false);
  EXPECT_EQ(rows[0], kInfinity);
  EXPECT_EQ(rows[1], -kInfinity);
  EXPECT_EQ(rows[2], tiny);
  const std::vector<double> tiny_beside_infinity =
      product({infinity, tiny, tiny, tiny}, {tiny, tiny, tiny, tiny}, false);
  EXPECT_EQ(tiny_beside_infinity[0], kInfinity);
  EXPECT_EQ(tiny_beside_infinity[2], 0.0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(product({nan, 1.0F}, {1.0F, 1.0F}, false)[0]));
  EXPECT_TRUE(std::isnan(product({infinity, 1.0F}, {0.0F, 1.0F}, false)[0]));
}

TEST(Wires, HalveTheBytesOfAProduct) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({128, 96}, DType::kFloat32), b = noise({96, 64}, DType::kFloat32, 2);
    const auto planned = [&](const Wire& wire) {
      matmul_from_root(comm, on_root(comm, a), on_root(comm, b), {.strategy = "row"}, wire);
      return last_report().plan.bytes();
    };
    EXPECT_EQ(2 * planned(wires()[0]), planned({}));
  });
}

/// Of ranks with so slow a link that zeros are worth leaving out.
Machine with_slow_link() {
  Machine machine;
  machine.link_bandwidth = 1e7;
  return machine;
}

TEST(SparseWire, ByCostLeavesOutWhatPaysForItself) {
  const auto zeros_of = [](const Machine& machine, DType dtype, const LinkLoad& load) {
    return Wire::sparse_by_cost().over(machine, dtype, load).per_mille();
  };
  constexpr int64_t kNever = 1001;
  const LinkLoad load{4'000'000, 3};
  Machine machine;
  machine.link_bandwidth = 1e8;
  // 40 ns for 4 bytes, 100 / 4e10 + 10 * 4 / 1e10 = 6.5 ns for taking zeros out and in, a bit is
  // 1.25 ns, and 3 * 4 us + 3 * 0.5 us of 40 ms for looking: 0.03 + 6.5 / 40 + 1.25 / 40 + 0.0003.
  EXPECT_EQ(zeros_of(machine, DType::kFloat32, load), 225);
  EXPECT_EQ(zeros_of(machine, DType::kFloat64, load), 178);  // 10.5 and 1.25 of 80 ns
  machine.link_bandwidth = 5e8;
  EXPECT_EQ(zeros_of(machine, DType::kFloat32, load), 876);  // 6.5 and 0.25 of 8 ns
  machine.link_bandwidth = 4e9;
  EXPECT_EQ(zeros_of(machine, DType::kFloat32, load), kNever);
  machine.ranks_per_host = 2;  // what goes over the network takes longer
  machine.network_bandwidth = 5e8;
  EXPECT_EQ(zeros_of(machine, DType::kFloat32, load), kNever);
  EXPECT_EQ(zeros_of(machine, DType::kFloat32, {0, 0, 4'000'000, 2}), 886);  // and 92 us of 8 ms
  // A few kilobytes are there before a sample is looked at.
  EXPECT_EQ(zeros_of(with_slow_link(), DType::kFloat32, {1000, 1}), kNever);
  EXPECT_EQ(zeros_of(with_slow_link(), DType::kFloat32, {}), kNever);
  const Wire given = Wire::sparse(0.25, "test");
  EXPECT_EQ(given.over(Machine{}, DType::kFloat32, load).threshold, 0.25);
  EXPECT_EQ(Wire::of_per_mille(kNever).form, Wire::Form::kPlain);
  EXPECT_EQ(Wire::of_per_mille(225).threshold, 0.225);
}

TEST(SparseWire, ASampleSavesTheCounting) {
  const auto form = [](const Tensor& x, double threshold) {
    return without_zeros(x, threshold, true).form;
  };
  for (const Shape& shape : {Shape{300, 500}, Shape{150000}, Shape{2, 75000}, Shape{3, 1}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      const Tensor x = thinned(shape, 0.8, dtype);
      EXPECT_EQ(form(x, 0.95).kind, SparseForm::Kind::kDense);
      EXPECT_EQ(form(x, 0.95).nonzeros, x.size());
      if (x.size() > 100) {
        EXPECT_NE(form(x, 0.7).kind, SparseForm::Kind::kDense) << shape;
      }
      EXPECT_EQ(form(zeros(shape, dtype, home()), 0.5).nonzeros, 0) << shape;
    }
  }
  EXPECT_EQ(form(zeros({0, 4}, DType::kFloat32, home()), 0.5).kind, SparseForm::Kind::kDense);
}

TEST(Wires, SendZerosByCostOverSlowLinksAlone) {
  for (const int ranks : {2, 3, 4}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Sharding rows(Mesh::line(ranks), split_dim(2, 0)),
          columns(Mesh::line(ranks), split_dim(2, 1));
      const auto sent = [&](double zeros_part, const Wire& wire) {
        const Tensor whole = thinned({256, 512}, zeros_part, DType::kFloat32);
        const int64_t before = comm->bytes_sent();
        const DistTensor moved = redistribute(laid_out(comm, whole, rows), columns, wire);
        const auto bytes = static_cast<double>(comm->bytes_sent() - before);
        expect_close(moved.local(), laid_out(comm, whole, columns).local(), 0.0, wire.text());
        return bytes;
      };
      const Wire wire = Wire::sparse_by_cost();
      const double plain = sent(0.9, {});
      EXPECT_EQ(sent(0.9, wire), plain);  // by the figures that are assumed
      auto& figures = comm->figures(Communicator::Figures::kParts);
      figures = std::make_shared<const Machine>(with_slow_link());
      EXPECT_LT(sent(0.9, wire), 0.2 * plain);
      EXPECT_LT(sent(0.0, wire), 1.01 * plain);
      figures = std::make_shared<const Machine>();
      EXPECT_EQ(sent(0.9, wire), plain);
      EXPECT_LT(sent(0.9, Wire::sparse(0.5, "test")), 0.2 * plain);  // as it was asked for
    });
  }
}

TEST(Wires, MultiplyWhatTravelsByCost) {
  for (const int ranks : {1, 2, 4}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = thinned({128, 96}, 0.95, DType::kFloat32);
      const Tensor b = noise({96, 64}, DType::kFloat32, 2);
      const Tensor expected = cuop::matmul(a, b);
      const auto sent = [&](const Wire& wire, const Machine& machine) {
        const int64_t before = comm->bytes_sent();
        const Tensor c = matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                          {.strategy = "row", .machine = machine}, wire);
        expect_rooted(comm, c, expected, 1e-5, wire.text());
        return comm->bytes_sent() - before;
      };
      const Wire wire = Wire::sparse_by_cost();
      sent(wire, with_slow_link());
      const Plan slow = last_report().plan;
      const int64_t never = 1001;
      const auto travels = [&](const char* key) { return slow.setting(key) < never; };
      const bool is_shared = slow.ranks > 1;  // by the GPUs of a plain process, too
      EXPECT_EQ(travels("sparse_a"), is_shared) << slow.explain();
      EXPECT_EQ(travels("sparse_b"), is_shared);
      EXPECT_EQ(travels("sparse_c"), is_shared);
      sent(wire, {});
      EXPECT_EQ(last_report().plan.setting("sparse_a"), never);
      const int64_t fewer = sent(wire, with_slow_link()), all = sent({}, with_slow_link());
      const int64_t saved = 128 * 96 * 4 * 4 / 5 * (ranks - 1) / ranks;  // of A, which rank 0 sends
      if (comm->rank() == 0 && ranks > 1) {
        EXPECT_LT(fewer, all - saved);
      }
    });
  }
}

TEST(Wires, RefuseWhatTheyCannotCarry) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = counting({4, 4}, DType::kInt32);
    const Sharding rows(Mesh::line(2), split_dim(2, 0)), columns(Mesh::line(2), split_dim(2, 1));
    const DistTensor parts = laid_out(comm, x, rows);
    EXPECT_THAT(test::error_of<Error>([&] { redistribute(parts, columns, wires()[0]); }),
                HasSubstr("int32 cannot travel as float16, needed are floats"));
    EXPECT_THAT(test::error_of<Error>([&] { matmul(parts, parts, {}, wires()[1]); }),
                HasSubstr("int32 cannot travel as bfloat16"));
    EXPECT_EQ(values(redistribute(parts, columns, wires()[2]).local()),
              values(redistribute(parts, columns).local()));
  });
  EXPECT_THROW(Wire::narrow(DType::kFloat32, "test"), DTypeError);
  EXPECT_THROW(Wire::sparse(-0.1, "test"), ExecutionError);
  EXPECT_THROW(Wire::sparse(std::nan(""), "test"), ExecutionError);
}

}  // namespace
}  // namespace cuop::dist
