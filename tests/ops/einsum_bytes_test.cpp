// What einsum takes of memory beside operands and result, and its results in float32.
#include "cuop/ops/einsum/einsum_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/gpu/compare.h"
#include "tests/values.h"

namespace cuop {
namespace {

constexpr const char* kSumEquations[] = {
    "ij,jk->ik",     "ij,jk,kl->il",     "ij,jk,kl,lm->im", "abc,cbd->dba",
    "abc,acd->bad",  "ij,ij->",          "ij,kj->i",        "ii,ij->j",
    "ijk->k",        "iij->j",           "i,j,k->kji",      "bij,bjk,k->bi",
    "ai,bi,ci->abc", "abcd,dbe,eaf->fc", "ab,cd->dbca",     "ij,->ji"};
constexpr DType kDTypes[] = {DType::kFloat16, DType::kBFloat16,  DType::kFloat32, DType::kFloat64,
                             DType::kInt32,   DType::kComplex64, DType::kBool};

class EinsumCall {
 public:
  explicit EinsumCall(uint32_t seed) : generator_(seed) {
    equation = kSumEquations[pick(std::size(kSumEquations))];
    const DType usual = kDTypes[pick(std::size(kDTypes))];
    std::array<int64_t, 128> sizes{};
    for (int64_t& size : sizes) size = static_cast<int64_t>(pick(9)) + 1;
    Shape shape;
    const auto add = [&] {
      shapes.push_back(shape);
      dtypes.push_back(pick(5) == 0 ? kDTypes[pick(std::size(kDTypes))] : usual);
      const auto values = [&] { return static_cast<double>(pick(5)) - 2.0; };
      operands.push_back(test::drawn(shape, dtypes.back(), values));
      shape = {};
    };
    for (const char c : equation.substr(0, equation.find('-'))) {
      if (c == ',') {
        add();
      } else {
        shape.push_back(sizes[static_cast<size_t>(c)]);
      }
    }
    add();
  }

  std::string text() const { return cat(equation, " of ", join(shapes), ' ', join(dtypes)); }

  /// Bytes that live at a time while `run` makes its result, without it.
  template <class Run>
  int64_t taken(const Run& run) const {
    const auto limited = memory::make_limited(kCpu, int64_t{1} << 30);
    const memory::ResourceScope scope(*limited);
    const Tensor made = run();
    // A view of an operand has no memory of its own.
    return limited->peak() - (limited->live() > 0 ? made.nbytes() : 0);
  }

  std::string equation;
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  std::vector<Tensor> operands;

 private:
  size_t pick(size_t count) { return generator_() % count; }
  std::mt19937 generator_;
};

TEST(EinsumBytes, BoundWhatIsTaken) {
  int64_t counted = 0, taken = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const EinsumCall call(seed);
    for (const bool is_widened : {false, true}) {
      const int64_t bytes =
          einsum_bytes(call.equation, {call.shapes, call.dtypes}, {}, is_widened, {});
      const int64_t most = call.taken([&] {
        return is_widened ? einsum_widened(call.equation, call.operands)
                          : einsum(call.equation, call.operands);
      });
      ASSERT_LE(most, bytes) << seed << ": " << call.text();
      counted += bytes;
      taken += most;
    }
  }
  EXPECT_LT(counted, 2 * taken);
}

TEST(EinsumWidened, RoundsNothing) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const EinsumCall call(seed);
    std::vector<Tensor> wide;
    DType promoted = call.dtypes[0];
    for (const DType each : call.dtypes) promoted = promote(promoted, each);
    const bool is_narrow = is_floating(promoted) && itemsize(promoted) == 2;
    const DType expected = is_narrow ? DType::kFloat32 : promoted;
    for (const Tensor& operand : call.operands) wide.push_back(cast(operand, expected));
    const Tensor made = einsum_widened(call.equation, call.operands);
    ASSERT_EQ(made.dtype(), expected) << call.text();
    // Whole numbers below 2^24: every sum in float32 is exact.
    ASSERT_TRUE(test::same_bits(made, einsum(call.equation, wide))) << call.text();
  }
  PathOptions limited;
  limited.memory_limit = 1000;
  const Tensor one = EinsumCall(0).operands[0];
  EXPECT_THROW(einsum_widened("...->...", std::array{one}, limited), ExecutionError);
}

}  // namespace
}  // namespace cuop
