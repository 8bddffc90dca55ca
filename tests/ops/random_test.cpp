#include "cuop/ops/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/jit/kernels/random_numbers.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/random/random_kernels.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;

// The known answers that Random123 publishes for philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  struct Case {
    jit::Words counter;
    jit::Word key_low, key_high;
    jit::Words answer;
  };
  const Case cases[] = {{{0, 0, 0, 0}, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         0xffffffff,
                         0xffffffff,
                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         0xa4093822,
                         0x299f31d0,
                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case& c : cases) {
    const jit::Words got = jit::philox_rounds<10>(c.counter, c.key_low, c.key_high);
    EXPECT_EQ(got.a, c.answer.a);
    EXPECT_EQ(got.b, c.answer.b);
    EXPECT_EQ(got.c, c.answer.c);
    EXPECT_EQ(got.d, c.answer.d);
  }
}

/// Largest error of the pair against long double, relative to the radius.
template <class Real>
double largest_draw_error() {
  using Bits = typename jit::RandomConstants<Real>::Bits;
  constexpr int kBits = jit::RandomConstants<Real>::kBits;
  double worst = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const jit::Words w = jit::philox(i, 7);
    Bits radius = static_cast<Bits>(jit::wide(w.a, w.b)),
         turn = static_cast<Bits>(jit::wide(w.c, w.d));
    if (i < 64) radius = static_cast<Bits>(~Bits{0}) >> (i % kBits);  // towards the tail
    if (i < 256) turn = static_cast<Bits>(i) << (kBits - 8);          // all axes and diagonals
    const auto pair = jit::box_muller<Real>(radius, turn);
    const auto u = static_cast<long double>(
        static_cast<Real>(std::fma(static_cast<Real>(radius), jit::RandomConstants<Real>::kUnit,
                                   jit::RandomConstants<Real>::kUnit / 2)));
    const long double r = std::sqrt(-2 * std::log(u));
    const long double angle =
        2 * std::acos(-1.0L) * static_cast<long double>(turn) / std::ldexp(1.0L, kBits);
    const long double scale = std::max(r, 1e-3L);
    worst =
        std::max(worst, static_cast<double>(std::abs(pair.first - r * std::cos(angle)) / scale));
    worst =
        std::max(worst, static_cast<double>(std::abs(pair.second - r * std::sin(angle)) / scale));
  }
  return worst;
}

TEST(BoxMuller, IsAccurateToAFewUnits) {
  EXPECT_LT(largest_draw_error<float>(), 4e-7);
  EXPECT_LT(largest_draw_error<double>(), 7e-16);
}

TEST(BoxMuller, IsFiniteAtTheEnds) {
  EXPECT_NEAR(jit::box_muller<float>(0, 0).first, std::sqrt(66 * std::log(2.0)), 1e-5);
  EXPECT_EQ(jit::box_muller<float>(0xffffffffu, 0).first, 0.0f);
  EXPECT_TRUE(std::isfinite(jit::box_muller<double>(0, 0).first));
}

TEST(RandomLoops, EveryInstructionSetGivesTheSameBits) {
  if (!isa::is_supported(isa::Level::kV3)) GTEST_SKIP() << "one instruction set only";
  const int64_t blocks = 200;
  const auto draw = [&](isa::Level level) {
    const kernels::RandomLoops& loops = isa::choose(
        level,
        []<class L>(L) -> const kernels::RandomLoops& { return kernels::random_loops<L>(); });
    std::vector<float> single(4 * blocks);
    std::vector<double> wide(2 * blocks);
    loops.normal_float({99, 1ull << 32}, blocks, 0.25f, 3.0f, single.data());
    loops.normal_double({99, 5}, blocks, -1.0, 0.1, wide.data());
    std::vector<uint64_t> bits;
    for (float f : single) bits.push_back(std::bit_cast<uint32_t>(f));
    for (double d : wide) bits.push_back(std::bit_cast<uint64_t>(d));
    return bits;
  };
  const auto wanted = draw(isa::Level::kBaseline);
  EXPECT_EQ(draw(isa::Level::kV3), wanted);
  if (isa::is_supported(isa::Level::kV4)) {
    EXPECT_EQ(draw(isa::Level::kV4), wanted);
  }
}

TEST(Random, ValuesDependOnSeedAndCallsOnly) {
  Generator a(42), b(42);
  const int64_t n = 100003;
  const auto draw = [&](Generator& g) {
    std::vector<float> all = values<float>(normal({n}, 0, 1, {.generator = &g}));
    for (float v : values<float>(uniform({7, 3}, -2, 5, {.generator = &g}))) all.push_back(v);
    return all;
  };
  const auto many = draw(a);
  backend::set_thread_count(1);
  const auto one = draw(b);
  backend::set_thread_count(0);
  EXPECT_EQ(many, one);
  EXPECT_EQ(a.counter(), b.counter());
  EXPECT_NE(draw(a), many);
}

TEST(Random, APrefixOfALongerDrawIsTheShorterOne) {
  Generator a(1), b(1);
  const auto longer =
      values<double>(normal({1000}, 0, 1, {.dtype = DType::kFloat64, .generator = &a}));
  const auto shorter =
      values<double>(normal({333}, 0, 1, {.dtype = DType::kFloat64, .generator = &b}));
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

TEST(Random, FillsOutputsOfAnyStrides) {
  Generator a(3), b(3);
  const Tensor whole = zeros({5, 4});
  const Tensor out = transpose(whole);
  normal({4, 5}, 0, 1, {.generator = &a, .out = &out});
  const auto wanted = values<float>(normal({4, 5}, 0, 1, {.generator = &b}));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_EQ(whole.data<float>()[j * 4 + i], wanted[static_cast<size_t>(i * 5 + j)]);
    }
  }
}

TEST(Random, IntegersReachTheGreatestOfTheirDtype) {
  Generator g(9);
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  const auto drawn = values<uint64_t>(randint_through(Scalar(kTop - 1), Scalar(kTop), {100},
                                                      {.dtype = DType::kUInt64, .generator = &g}));
  EXPECT_EQ(std::ranges::count(drawn, kTop) + std::ranges::count(drawn, kTop - 1), 100);
  EXPECT_GT(std::ranges::count(drawn, kTop), 20);
  Generator a(2), b(2);
  EXPECT_EQ(values<int64_t>(randint_through(-3, 4, {50}, {DType::kInt64, kCpu, &a})),
            values<int64_t>(randint(-3, 5, {50}, {DType::kInt64, kCpu, &b})));
  EXPECT_EQ(values<int64_t>(randint_through(7, 7, {2}, {DType::kInt64})),
            (std::vector<int64_t>{7, 7}));
  EXPECT_THROW(randint_through(1, 0, {2}), ExecutionError);
  for (const int64_t size : {0, 2}) {
    EXPECT_THROW(randint(0, 5, {size}, {DType::kFloat32}), DTypeError);
  }
  EXPECT_THROW(randint_through(0, 256, {2}, {DType::kUInt8}), ExecutionError);
  EXPECT_THROW(randint_through(0, 1.5, {2}), DTypeError);
}

TEST(Random, RangesWiderThanTheDtypeAreFilled) {
  Generator g(4);
  constexpr float kHigh = 0x1p127f;
  const auto drawn = values<float>(uniform({1000}, -kHigh, kHigh, {.generator = &g}));
  const auto [least, most] = std::ranges::minmax(drawn);
  EXPECT_LT(least, -0.9f * kHigh);
  EXPECT_GT(most, 0.9f * kHigh);
  EXPECT_LT(most, kHigh);
}

TEST(Generator, ResumesFromASavedCounter) {
  Generator g(11);
  normal({10}, 0, 1, {.generator = &g});
  const uint64_t saved = g.counter();
  const auto first = values<float>(normal({10}, 0, 1, {.generator = &g}));
  g.set_counter(saved);
  EXPECT_EQ(values<float>(normal({10}, 0, 1, {.generator = &g})), first);
  EXPECT_EQ(saved, 3u);
}

}  // namespace
}  // namespace cuop
