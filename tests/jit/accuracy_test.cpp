// How far functions of one argument are from the truth, at every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "cuop/backend/cpu/gathers.h"
#include "cuop/core/half.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/jit/levels.h"
#include "tests/jit/true_functions.h"

namespace cuop::jit {
namespace {

using test::TrueFunction;

template <class T>
constexpr DType dtype_for = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;

/// The kernels of an instruction set: those that this processor takes, and of AVX2 those that
/// processors take whose permutations are quick where this one's are not, or the other way round.
struct Kernels {
  isa::Level level;
  std::string name;
  const BlockTable* table;
};
std::vector<Kernels> all_kernels() {
  std::vector<Kernels> result;
  for (const isa::Level level : test::levels()) {
    result.push_back({level, isa::name(level), &block_table(level)});
    if (level != isa::Level::kV3) continue;
    static const BlockTable others = isa::choose(level, []<class Level>(Level) {
      BlockTable table = block_table(isa::Level::kV3);
      add_float_kernels<Level>(table);
      if (!isa::has_slow_permutations()) add_unpermuted_kernels<Level>(table);
      return table;
    });
    result.push_back({level, result.back().name + "_of_others", &others});
  }
  return result;
}

class Accuracy : public testing::TestWithParam<Kernels> {
 protected:
  template <class T>
  std::vector<T> computed(std::string_view name, const std::vector<T>& x) const {
    std::vector<T> y(x.size());
    const BlockKernel kernel = GetParam().table->op(find_op(name), dtype_for<T>);
    kernel(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    return y;
  }
  template <class T>
  T computed_one(std::string_view name, T x) const {
    return computed(name, std::vector<T>(kBlockMultiple, x))[0];
  }
  /// The largest error in a sample.
  template <class T>
  test::WorstAnswer<T> worst(const TrueFunction& f, int count) const {
    const auto x = test::sample<T>(f, count);
    return test::worst_answer(f, x, computed(f.name, x).data());
  }
};

TEST_P(Accuracy, ErrorsAreAtMostWhatTheTableStates) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    const Ulps& stated = op_table()[static_cast<size_t>(find_op(f.name))].ulps;
    const auto single = worst<float>(f, 600);
    EXPECT_LE(single.ulps, stated.float32) << f.name << "(" << single.x << ") = " << single.given;
    const auto twice = worst<double>(f, 600);
    EXPECT_LE(twice.ulps, stated.float64) << f.name << "(" << twice.x << ") = " << twice.given;
  }
}

/// What the table states comes from here: cuop_tests --gtest_also_run_disabled_tests
/// --gtest_filter='*Accuracy.DISABLED_Measure*', some minutes.
TEST_P(Accuracy, DISABLED_Measure) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    print_worst(f, worst<float>(f, 60000), worst<double>(f, 60000));
  }
}

template <class T>
int falls(const TrueFunction& f, const std::vector<T>& y) {
  int count = 0;
  for (size_t i = 1; i < y.size(); ++i) count += (y[i] - y[i - 1]) * T(f.slope) < 0;
  return count;
}

template <class T>
std::vector<T> neighbours(T first, int count) {
  std::vector<T> x;
  for (int i = 0; i < count; ++i) {
    x.push_back(first);
    first = std::nextafter(first, std::numeric_limits<T>::infinity());
  }
  return x;
}

TEST_P(Accuracy, MonotoneFunctionsAreMonotoneOverNeighbours) {
  std::mt19937_64 random(7);
  for (const TrueFunction& f : test::kTrueFunctions) {
    if (f.slope == 0) continue;
    for (int run = 0; run < 60; ++run) {
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      const double start = run % 2 == 0
                               ? f.low + (f.high - f.low) * part
                               : std::exp2(-20 + 25 * part) * (f.low < 0 && run % 4 == 1 ? -1 : 1);
      const auto x = neighbours(start, 4096);
      EXPECT_EQ(falls(f, computed(f.name, x)), 0) << f.name << " of float64 from " << start;
      const auto narrow = neighbours(static_cast<float>(start), 4096);
      EXPECT_EQ(falls(f, computed(f.name, narrow)), 0) << f.name << " of float32 from " << start;
    }
  }
}

TEST_P(Accuracy, SoftplusIsMonotoneNextToZero) {
  const TrueFunction* const softplus =
      std::ranges::find(test::kTrueFunctions, std::string_view("softplus"), &TrueFunction::name);
  // Where a rounding boundary lies between answers that differ by less than rounding errors.
  for (const float fall : {0x1.105ca2p-24f, 0x1.882e34p-23f, 0x1.44172cp-22f, 0x1.c4171p-22f,
                           0x1.220b92p-21f, 0x1.620b84p-21f, 0x1.e20b84p-21f}) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto x = neighbours(sign * fall * (1 - sign * 0x1p-19f), 64);
      EXPECT_EQ(falls(*softplus, computed("softplus", x)), 0) << sign * fall;
    }
  }
  for (double start = 0x1p-60; start < 0x1p-10; start *= 1.3) {
    EXPECT_EQ(falls(*softplus, computed("softplus", neighbours(start, 4096))), 0) << start;
  }
}

/// Vectors take erfc from a table of multiples of 1/256: one row's values end where the next one's
/// begin.
TEST_P(Accuracy, ErfcIsMonotoneFromRowToRow) {
  const TrueFunction* const erfc =
      std::ranges::find(test::kTrueFunctions, std::string_view("erfc"), &TrueFunction::name);
  for (int i = -1536; i < 7000; ++i) {
    const double edge = (i + 0.5) / 256;
    const auto start = [&](auto x) {
      return x - 32 * (std::nextafter(std::abs(x), 100) - std::abs(x));
    };
    const auto narrow = neighbours(start(static_cast<float>(edge)), 64);
    EXPECT_EQ(falls(*erfc, computed("erfc", narrow)), 0) << "float32 at " << edge;
    EXPECT_EQ(falls(*erfc, computed("erfc", neighbours(start(edge), 64))), 0)
        << "float64 at " << edge;
  }
}

/// Some processors' vectors take erf of float32 from two polynomials, the second one of arguments
/// without their last bits, of which there are more from one of these to the next.
TEST_P(Accuracy, ErfIsMonotoneWhereItsPolynomialsMeet) {
  const TrueFunction* const erf =
      std::ranges::find(test::kTrueFunctions, std::string_view("erf"), &TrueFunction::name);
  for (const float edge : {1.125f, 1.625f, 1.875f, 2.375f, 3.375f, 4.0f}) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto x = neighbours(sign * edge * (1 - sign * 0x1p-13f), 4096);
      EXPECT_EQ(falls(*erf, computed("erf", x)), 0) << sign * edge;
    }
  }
}

/// All floats, in ascending order; some minutes.
TEST_P(Accuracy, DISABLED_MonotoneFunctionsAreMonotoneOverAllFloats) {
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr int kCount = 1 << 16;
  const auto at = [](int32_t place) {
    const auto bits = static_cast<uint32_t>(place < 0 ? -place : place);
    return std::copysign(std::bit_cast<float>(bits), static_cast<float>(place));
  };
  for (const TrueFunction& f : test::kTrueFunctions) {
    if (f.slope == 0) continue;
    int64_t count = 0;
    std::vector<float> x(kCount);
    for (int64_t first = -kInfinity; first < kInfinity; first += kCount - kBlockMultiple) {
      for (int i = 0; i < kCount; ++i) {
        x[i] = at(static_cast<int32_t>(std::min<int64_t>(first + i, kInfinity)));
      }
      count += falls(f, computed(f.name, x));
    }
    EXPECT_EQ(count, 0) << f.name;
  }
}

/// Vectors take e^-x of double from a table of multiples of ln(2) / 16.
TEST_P(Accuracy, SigmoidIsMonotoneFromRowToRow) {
  const TrueFunction* const sigmoid =
      std::ranges::find(test::kTrueFunctions, std::string_view("sigmoid"), &TrueFunction::name);
  for (int i = -900; i < 900; ++i) {
    const double edge = (i + 0.5) / 16 * std::numbers::ln2;
    const double start = edge - 32 * (std::nextafter(std::abs(edge), 100) - std::abs(edge));
    EXPECT_EQ(falls(*sigmoid, computed("sigmoid", neighbours(start, 64))), 0) << edge;
  }
}

/// The same bits, or NaN both.
template <class T>
bool is_same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(a) && std::isnan(b));
}

/// Where gathers are slow, nothing else runs these kernels.
template <class T>
int compare_kernels(const BlockTable& one, const BlockTable& other) {
  int different = 0;
  for (const TrueFunction& f : test::kTrueFunctions) {
    const int code = find_op(f.name);
    const BlockKernel a = one.op(code, dtype_for<T>), b = other.op(code, dtype_for<T>);
    if (a == b) continue;
    ++different;
    const std::vector<T> x = test::sample<T>(f, 600);
    std::vector<T> y(x.size()), z(x.size());
    a(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    b(z.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(is_same(y[i], z[i])) << f.name << "(" << x[i] << ")";
  }
  return different;
}
TEST_P(Accuracy, GatheredRowsGiveTheBitsOfLoadedOnes) {
  BlockTable loaded, gathered;
  isa::choose(GetParam().level, [&]<class Level>(Level) {
    add_float_kernels<Level>(loaded);
    add_float_kernels<Level>(gathered);
    add_gathering_kernels<Level>(gathered);
  });
  const bool has_gathers = GetParam().level == isa::Level::kV4;
  EXPECT_EQ(compare_kernels<float>(loaded, gathered), has_gathers ? 2 : 0);   // erfc, gelu
  EXPECT_EQ(compare_kernels<double>(loaded, gathered), has_gathers ? 3 : 0);  // and erf
}

TEST_P(Accuracy, WholeAnswersAreExact) {
  for (int n = 1; n < 200; ++n) {
    EXPECT_EQ(computed_one("cbrt", double(n) * n * n), n);
    EXPECT_EQ(computed_one("cbrt", -float(n) * float(n) * float(n)), -float(n));
  }
  double power = 1;
  for (int n = 0; n <= 22; ++n, power *= 10) {
    EXPECT_EQ(computed_one("log10", power), n);
    if (n > 10) continue;  // what float holds
    EXPECT_EQ(computed_one("log10", float(power)), float(n));
  }
  for (int n = -1074; n < 1024; ++n) {
    EXPECT_EQ(computed_one("log2", std::ldexp(1.0, n)), n);
    EXPECT_EQ(computed_one("exp2", double(n)), std::ldexp(1.0, n));
  }
}

TEST_P(Accuracy, ActivationsUnderflowWhereTheTruthDoes) {
  for (float x = -110; x < -80; x += 0.37f) {
    for (const TrueFunction& f : test::kTrueFunctions) {
      if (f.name != "sigmoid" && f.name != "silu" && f.name != "softplus") continue;
      const float y = computed_one(f.name, x);
      EXPECT_LE(test::distance_in_ulps(y, f.of(x), test::format_of<float>), 1) << f.name << x;
    }
  }
  EXPECT_GT(computed_one("sigmoid", -103.0f), 0.0f);
  EXPECT_EQ(computed_one("sigmoid", -104.0f), 0.0f);
  EXPECT_LT(computed_one("silu", -107.0f), 0.0f);
  for (const char* name : {"silu", "gelu", "gelu_tanh"}) {
    for (const float x : {-200.0f, -3e38f, -std::numeric_limits<float>::infinity()}) {
      EXPECT_TRUE(computed_one(name, x) == 0 && std::signbit(computed_one(name, x))) << name << x;
    }
    EXPECT_EQ(computed_one(name, 3e38f), 3e38f) << name;
  }
}

TEST_P(Accuracy, AValueDoesNotDependOnItsNeighbours) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    const auto x = test::sample<double>(f, 50);
    const auto y = computed(f.name, x);
    for (size_t i = 0; i < x.size(); i += 37) {
      EXPECT_EQ(std::bit_cast<uint64_t>(computed_one(f.name, x[i])), std::bit_cast<uint64_t>(y[i]))
          << f.name << "(" << x[i] << ")";
    }
  }
}

/// Blocks that hold nothing but what the quick forms cover; a sample has other arguments all over.
template <class T, class Computed>
void expect_usual_answers(const TrueFunction& f, double stated, const Computed& computed) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> usual(f.low, f.high);
  for (const int count : {16, 48, 208, 1024, 3008}) {
    std::vector<T> x(static_cast<size_t>(count));
    for (T& each : x) each = static_cast<T>(usual(random));
    const std::vector<T> y = computed(x);
    EXPECT_LE(test::worst_answer(f, x, y.data()).ulps, stated) << f.name << " of " << count;
    for (size_t i = 0; i < x.size(); i += 5) {
      const T alone = computed(std::vector<T>(kBlockMultiple, x[i]))[0];
      EXPECT_EQ(std::memcmp(&alone, &y[i], sizeof(T)), 0) << f.name << "(" << x[i] << ")";
    }
  }
}
TEST_P(Accuracy, BlocksOfUsualArgumentsHaveTheSameAnswers) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    const Ulps& stated = op_table()[static_cast<size_t>(find_op(f.name))].ulps;
    const auto of = [&](const auto& x) { return computed(f.name, x); };
    expect_usual_answers<float>(f, stated.float32, of);
    expect_usual_answers<double>(f, stated.float64, of);
  }
}

TEST_P(Accuracy, AnArgumentMayBeOverwritten) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    const BlockKernel kernel = GetParam().table->op(find_op(f.name), DType::kFloat64);
    // Once with arguments that the quick form does not cover, once without.
    for (const bool is_usual : {false, true}) {
      auto x = test::sample<double>(f, 400);
      for (double& each : x) {
        if (is_usual && !(each >= 1 && each < 2)) each = f.high == 1 ? 0.7 : 1.7;
      }
      const auto y = computed(f.name, x);
      kernel(x.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(double)), 0) << f.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Accuracy, testing::ValuesIn(all_kernels()),
                         [](const auto& kernels) { return kernels.param.name; });

TEST(OtherKernels, AreOthers) {
  for (const Kernels& kernels : all_kernels()) {
    if (!kernels.name.ends_with("_of_others")) continue;
    for (const char* name : {"sin", "cos", "erf", "tan"}) {
      const auto op = [&](const BlockTable& table) {
        return table.op(find_op(name), DType::kFloat32);
      };
      EXPECT_NE(op(*kernels.table), op(block_table(isa::Level::kV3))) << name;
    }
  }
}

TEST(AccuracyTable, NoFunctionStatesMoreThanIsPromised) {
  for (const OpInfo& op : op_table()) {
    EXPECT_LE(op.ulps.float32, 1.0) << op.name;
    EXPECT_LE(op.ulps.float64, 1.5) << op.name;
    if (op.arity != 1 || op.rule != Rule::kInexact) continue;
    EXPECT_GE(op.ulps.float32, 0.5) << op.name << " states nothing";
    const auto has_name = [&](const TrueFunction& f) { return f.name == op.name; };
    EXPECT_TRUE(std::ranges::any_of(test::kTrueFunctions, has_name))
        << op.name << " is not measured";
  }
}

/// What the 16-bit floats add to the float32 answer is one rounding.
template <class Narrow>
void expect_rounded_once(const TrueFunction& f, DType dtype, const test::FloatFormat& format) {
  const Tensor x = empty({65536}, dtype, kCpu);
  for (int i = 0; i < 65536; ++i) x.data<Narrow>()[i].bits = static_cast<uint16_t>(i);
  const Operand operand(x);
  const Operand* const operands[] = {&operand};
  const Tensor y = elementwise(f.name.data(), operands);
  for (int i = 0; i < 65536; i += 41) {
    const float argument = x.data<Narrow>()[i], given = y.data<Narrow>()[i];
    EXPECT_LE(test::distance_in_ulps(given, f.of(argument), format), 0.501)
        << f.name << "(" << argument << ") of " << dtype << " = " << given;
  }
}

TEST(AccuracyOf16Bits, ResultsAreRoundedOnce) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    expect_rounded_once<Half>(f, DType::kFloat16, test::kHalfFormat);
    expect_rounded_once<BFloat16>(f, DType::kBFloat16, test::kBFloat16Format);
  }
}

}  // namespace
}  // namespace cuop::jit
