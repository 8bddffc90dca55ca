// The text of the GPU's kernels of integer products and sequences, run on the host beside the CPU's
// kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/create/create_kernels.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "tests/gpu/compare.h"
#include "tests/jit/host_text.h"
#include "tests/values.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/create/create.cuh"
#include "cuop/ops/matmul/integer_product.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

using test::random_tensor;
using test::run_threads;
using test::run_together;
using test::same_bits;

// --- integer products ----------------------------------------------------------------------------

template <class T>
void run_product_text(const Product& product, bool is_symmetric) {
  const IntegerProductPlan plan = plan_integer_product(product, is_symmetric);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.arguments.tiles, 2));
  run_together(blocks, jit::kProductThreads, [&] {
    if (is_symmetric) {
      jit::multiply_integers<T, 4, true>(plan.arguments);
    } else if (plan.own == 8) {
      jit::multiply_integers<T, 8, false>(plan.arguments);
    } else {
      jit::multiply_integers<T, 4, false>(plan.arguments);
    }
  });
}

/// The last two axes exchanged where they lie.
Tensor turned(const Tensor& t) { return contiguous(swap_axes(t, -1, -2)); }

template <class T>
void expect_cpu_product(DType dtype, Shape batch, int64_t m, int64_t k, int64_t n, int seed) {
  const auto shape = [&](int64_t rows, int64_t columns) {
    Shape all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return all;
  };
  for (const bool is_turned : {false, true}) {
    const Tensor a = random_tensor(shape(m, k), dtype, seed);
    const Tensor b = random_tensor({k, n}, dtype, seed + 1),
                 c = random_tensor(shape(m, n), dtype, seed + 2);
    Product product;
    product.a = is_turned ? swap_axes(turned(a), -1, -2) : a;
    product.b = broadcast_to(is_turned ? swap_axes(turned(b), -1, -2) : b, shape(k, n));
    product.alpha = 3;
    product.beta = seed % 2;
    const Tensor given = clone(c), wanted = clone(c);
    product.c = wanted;
    matmul_cpu(product);
    product.c = given;
    run_product_text<T>(product, false);
    EXPECT_TRUE(same_bits(given, wanted))
        << dtype << ' ' << shape(m, k) << " times " << n << " columns, turned " << is_turned;
  }
}

TEST(ProductText, IntegersMultiplyAsOnTheCpu) {
  expect_cpu_product<int32_t>(DType::kInt32, {}, 1, 1, 1, 1);
  expect_cpu_product<int32_t>(DType::kInt32, {}, 65, 33, 67, 2);
  expect_cpu_product<int8_t>(DType::kInt8, {2, 3}, 5, 17, 7, 3);
  expect_cpu_product<uint16_t>(DType::kUInt16, {3}, 70, 16, 3, 4);
  expect_cpu_product<int64_t>(DType::kInt64, {}, 66, 15, 64, 5);
  expect_cpu_product<uint64_t>(DType::kUInt64, {2}, 3, 40, 5, 6);
  expect_cpu_product<bool>(DType::kBool, {2}, 9, 31, 66, 7);
  expect_cpu_product<int32_t>(DType::kInt32, {140}, 5, 2, 3, 8);  // large tiles
  expect_cpu_product<uint8_t>(DType::kUInt8, {}, 4, 0, 4, 9);
}

TEST(ProductText, SymmetricIntegersReadOneTriangle) {
  const int64_t order = 37;
  const Tensor lower = random_tensor({order, order}, DType::kInt32, 1), whole = clone(lower);
  for (int64_t i = 0; i < order; ++i) {
    for (int64_t j = i + 1; j < order; ++j) {
      whole.data<int32_t>()[i * order + j] = lower.data<int32_t>()[j * order + i];
    }
  }
  const Tensor b = random_tensor({order, 5}, DType::kInt32, 2);
  Product product{whole, b, empty({order, 5}, DType::kInt32)};
  const Tensor wanted = product.c;
  matmul_integer_cpu(product);
  product.a = lower;
  product.c = empty({order, 5}, DType::kInt32);
  run_product_text<int32_t>(product, true);
  EXPECT_TRUE(same_bits(product.c, wanted));
}

// --- sequences -----------------------------------------------------------------------------------

template <class T>
void expect_cpu_sequences() {
  const jit::WholeSequence wholes[] = {{7, 1},
                                       {100, ~uint64_t{0}},
                                       {0, uint64_t{1} << 60, 8, 16},
                                       {~uint64_t{0}, ~(uint64_t{1} << 57), 0, 64}};
  const jit::RealSequence reals[] = {
      {0.1, 0.3}, {-3.7, 0.1, 16, 42.5, 1}, {1e30, -1e28}, {0.0, 0.0, 3, 1.0, 0}};
  const jit::PowerSequence powers[] = {
      {{{0x1.a934f0979a371p+1, 0x1.7f2495fb7fa6dp-53}, 0, 0, 0, 0}, {-1.5, 0.05}},  // of ten
      {{{1, 0}, 0, 0, 0, 1}, {0, 1, 16, 3}},                                        // of minus two
      {{{0, 0}, HUGE_VAL, 0, 1, 0}, {-1, 0.5}}};                                    // of zero
  for (const int64_t count : {1, 17, 64}) {
    for (const int64_t start : {0, 1}) {
      const auto compare = [&](const auto& sequence, auto fill_cpu) {
        const Tensor given = zeros({count + 2}, dtype_of<T>),
                     wanted = zeros({count + 2}, dtype_of<T>);
        fill_cpu(slice(wanted, 0, start, start + count), sequence);
        const jit::SequenceFill<std::decay_t<decltype(sequence)>> a{given.data<T>() + start, count,
                                                                    sequence};
        run_threads(2, 2, [&] { jit::fill_sequence<T>(a); });
        EXPECT_TRUE(same_bits(given, wanted)) << dtype_of<T> << ' ' << count << " from " << start;
      };
      for (const auto& sequence : wholes) compare(sequence, fill_whole_cpu);
      for (const auto& sequence : reals) compare(sequence, fill_real_cpu);
      for (const auto& sequence : powers) compare(sequence, fill_powers_cpu);
    }
  }
}

TEST(ProductText, SequencesAreTheCpusBits) {
  expect_cpu_sequences<bool>();
  expect_cpu_sequences<int8_t>();
  expect_cpu_sequences<int64_t>();
  expect_cpu_sequences<uint64_t>();
  expect_cpu_sequences<Half>();
  expect_cpu_sequences<BFloat16>();
  expect_cpu_sequences<float>();
  expect_cpu_sequences<double>();
}

}  // namespace
}  // namespace cuop::kernels
