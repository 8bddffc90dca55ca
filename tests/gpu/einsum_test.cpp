// Products of many tensors on a GPU against those of the CPU.
#include "cuop/ops/einsum/einsum.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/ops/einsum/tensordot.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

/// Small whole numbers: every sum is exact.
Tensor small_whole_numbers(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> numbers(-2, 2);
  return test::drawn(shape, dtype, [&] { return numbers(generator); });
}

struct EinsumCase {
  const char* equation;
  std::vector<Shape> shapes;
};

const EinsumCase kCases[] = {
    {"ij,jk->ki", {{5, 7}, {7, 4}}},
    {"ij,jk,kl->il", {{3, 5}, {5, 6}, {6, 2}}},
    {"bqhd,bkhd->bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}}},
    {"aij,jib->ab", {{3, 4, 5}, {5, 4, 6}}},
    {"bi,bi->b", {{9, 5}, {9, 5}}},
    {"iij,jkk->ik", {{4, 4, 3}, {3, 5, 5}}},
    {"ij->", {{6, 5}}},
    {"ii->i", {{6, 6}}},
    {"...i,ij->j...", {{2, 3, 4}, {4, 5}}},
    {"i,j,j->ij", {{5}, {1}, {7}}},
    {"ij,jk->ik", {{3, 0}, {0, 4}}},
};

class GpuEinsum : public GpuTest {};

TEST_F(GpuEinsum, AgreesWithTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kComplex64,
                            DType::kInt8, DType::kBool}) {
    for (const EinsumCase& each : kCases) {
      std::vector<Tensor> here, there;
      for (const Shape& shape : each.shapes) {
        here.push_back(small_whole_numbers(shape, static_cast<uint32_t>(here.size() + 1), dtype));
        there.push_back(gpu(here.back()));
      }
      const Tensor result = einsum(each.equation, there);
      EXPECT_EQ(result.device(), kGpu);
      EXPECT_EQ(result.dtype(), dtype);
      EXPECT_EQ(host_values(result), host_values(einsum(each.equation, here)))
          << dtype << ' ' << each.equation;
    }
  }
}

TEST_F(GpuEinsum, FillsOutputsOfAnyStrides) {
  const Tensor a = small_whole_numbers({3, 4, 5}, 1, DType::kFloat32);
  const Tensor b = small_whole_numbers({5, 6}, 2, DType::kFloat32);
  const Tensor out = transpose(gpu(small_whole_numbers({6, 4, 3}, 3, DType::kFloat32)));
  einsum("abi,ic->abc", std::array{gpu(a), gpu(b)}, {}, &out);
  EXPECT_EQ(host_values(out), host_values(einsum("abi,ic->abc", std::array{a, b})));
  const std::vector<int64_t> of_a{2}, of_b{0};
  EXPECT_EQ(host_values(tensordot(gpu(a), gpu(b), of_a, of_b)), host_values(out));
}

}  // namespace
}  // namespace cuop
