// Quotients of integers, element by element, beside the machine's own, at every instruction set
// that this machine runs.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/kernels/op_list.h"
#include "tests/jit/levels.h"

namespace cuop::jit {
namespace {

template <class T>
struct Pairs {
  std::vector<T> a, b;

  void add(T first, T second) {
    a.push_back(first);
    b.push_back(second);
  }
  /// As many as a block takes.
  void fill() {
    while (a.size() % kBlockMultiple != 0) add(1, 1);
  }
};

/// The last and the first numbers of T, those about 0, and about 2^51 and 2^53.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (int i = 0; i < 4; ++i) {
    const auto step = static_cast<T>(i);
    values.insert(values.end(),
                  {static_cast<T>(Limits::min() + step), static_cast<T>(Limits::max() - step), step,
                   static_cast<T>(T(0) - step)});
  }
  for (const int bit : {51, 53}) {
    for (int64_t i = -2; sizeof(T) == 8 && i <= 2; ++i) {
      const auto value = static_cast<uint64_t>((int64_t{1} << bit) + i);
      values.insert(values.end(), {static_cast<T>(value), static_cast<T>(0 - value)});
    }
  }
  return values;
}

/// Multiples of the second and their neighbours, where quotients change, of all lengths up to
/// `bits`.
template <class T>
Pairs<T> random_pairs(int bits, unsigned seed) {
  std::mt19937_64 generator(seed);
  const auto any = [&] {
    const auto size = static_cast<T>((generator() >> (64 - bits)) >> generator() % bits);
    return generator() % 2 == 0 ? size : static_cast<T>(T(0) - size);
  };
  Pairs<T> pairs;
  for (int i = 0; i < 1000; ++i) {
    const T a = any(), b = any();
    pairs.add(a, b);
    if (b == 0 || b == static_cast<T>(-1)) continue;
    const T multiple = static_cast<T>(a / b * b);
    pairs.add(multiple, b);
    pairs.add(static_cast<T>(multiple - 1), b);
    pairs.add(static_cast<T>(multiple + 1), b);
  }
  return pairs;
}

template <class F, class T>
void expect_quotients(const BlockTable& table, Pairs<T> pairs) {
  pairs.fill();
  std::vector<T> got(pairs.a.size());
  table.op(op_code<F>, dtype_of<T>)(got.data(), pairs.a.data(), pairs.b.data(), nullptr,
                                    static_cast<int64_t>(got.size()));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], F::template apply<T>(pairs.a[i], pairs.b[i]))
        << F::name << ' ' << dtype_of<T> << ' ' << +pairs.a[i] << " by " << +pairs.b[i];
  }
}

template <class T>
class Quotients : public testing::Test {
 protected:
  void expect_right(const Pairs<T>& pairs) {
    for (const isa::Level level : test::levels()) {
      SCOPED_TRACE(isa::name(level));
      expect_quotients<fn::FloorDivide>(block_table(level), pairs);
      expect_quotients<fn::Remainder>(block_table(level), pairs);
    }
  }
};
using Integers =
    testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(Quotients, Integers);

TYPED_TEST(Quotients, OfEdges) {
  for (const TypeParam b : edges<TypeParam>()) {
    Pairs<TypeParam> pairs;
    for (const TypeParam a : edges<TypeParam>()) pairs.add(a, b);
    this->expect_right(pairs);
  }
}

/// Short ones of 64 bits go another way than long ones.
TYPED_TEST(Quotients, OfRandomNumbers) {
  constexpr int kBits = 8 * sizeof(TypeParam), kShort = 49;
  this->expect_right(random_pairs<TypeParam>(kBits, 1));
  if (kBits > kShort) this->expect_right(random_pairs<TypeParam>(kShort, 2));
}

/// All there are.
TEST(QuotientsOfBytes, EveryPair) {
  Pairs<int8_t> numbers;
  Pairs<uint8_t> sizes;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      numbers.add(static_cast<int8_t>(a), static_cast<int8_t>(b));
      sizes.add(static_cast<uint8_t>(a), static_cast<uint8_t>(b));
    }
  }
  for (const isa::Level level : test::levels()) {
    expect_quotients<fn::FloorDivide>(block_table(level), numbers);
    expect_quotients<fn::Remainder>(block_table(level), numbers);
    expect_quotients<fn::FloorDivide>(block_table(level), sizes);
    expect_quotients<fn::Remainder>(block_table(level), sizes);
  }
}

}  // namespace
}  // namespace cuop::jit
