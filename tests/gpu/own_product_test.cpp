// Products on a GPU by kernels of our own, against the CPU's in double precision.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

#include "cuop/backend/execution.h"
#include "cuop/backend/library_use.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using backend::Kernel;
using backend::KernelType;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kProductSizes[] = {1, 7, 16, 17, 33, 65};

Kernel with(KernelType type, int64_t tile, int64_t threads = 0, int64_t stages = 0,
            bool is_bulk = false) {
  Kernel kernel{type, tile, threads, stages};
  kernel.is_bulk = is_bulk;
  return kernel;
}

/// What is multiplied, on the CPU; c is not used where beta is 0.
struct ProductCase {
  Tensor a, b, c;
  MatmulOptions options{};
};

/// Values on the GPU in a matrix whose rows are a multiple of 64 elements apart, so that every size
/// is read by the same kernel.
Tensor spread(const Tensor& t) {
  Shape room = t.shape();
  room.back() = (room.back() + 63) / 64 * 64;
  const Tensor on_gpu = slice(empty(room, t.dtype(), kGpu), -1, 0, t.shape().back());
  copy_into(on_gpu, gpu(t));
  return on_gpu;
}

/// Rows (0) or columns (1) of op(matrix).
int64_t side(const Tensor& t, TransLike op, int which) {
  return t.shape(t.ndim() - (op.is_transposed() == (which == 0) ? 1 : 2));
}

/// One unit of rounding in sums of the dtype; matrix units cut what others round.
double unit_of_sums(DType dtype) { return itemsize(real_dtype(dtype)) == 8 ? 0x1p-52 : 0x1p-23; }

/// What rounding to the dtype changes at most, however small a number is.
double least_of(DType dtype) { return dtype == DType::kFloat16 ? 0x1p-24 : 1e-30; }

/// Each element within the rounding errors of its sum and of the dtype.
void expect_product(const Tensor& result, const ProductCase& one, const std::string& what) {
  const DType wide = DType::kComplex128, dtype = one.a.dtype();
  const auto size = [&](const Tensor& t) { return cast(abs(cast(t, wide)), wide); };
  const Tensor c = one.c.is_defined() ? cast(one.c, wide) : zeros(result.shape(), wide);
  const Tensor wanted = clone(c), sizes = size(c);
  matmul(cast(one.a, wide), cast(one.b, wide), one.options, &wanted);
  MatmulOptions of_sizes = one.options;
  of_sizes.alpha = std::abs(one.options.alpha.to_complex());
  of_sizes.beta = std::abs(one.options.beta.to_complex());
  matmul(size(one.a), size(one.b), of_sizes, &sizes);
  const auto given = host_values(result), right = host_values(wanted), bound = host_values(sizes);
  const auto depth = static_cast<double>(side(one.a, one.options.trans_a, 1));
  const double of_sum = (depth + 8) * unit_of_sums(dtype), of_result = test::epsilon(dtype);
  int shown = 0;
  for (size_t i = 0; i < given.size() && shown < 3; ++i) {
    const double allowed =
        of_sum * bound[i].real() + of_result * std::abs(right[i]) + least_of(dtype);
    if (std::abs(given[i] - right[i]) <= allowed) continue;
    ADD_FAILURE() << what << ' ' << dtype << ": element " << i << " is " << given[i]
                  << " instead of " << right[i] << ", allowed is " << allowed;
    ++shown;
  }
}

class GpuOwnProduct : public GpuTest {
 protected:
  static bool has_bulk() { return backend::runtime(kGpu).kernel_limits().capability >= 90; }

  /// Runs the product on what `place` makes of the operands, into a result that holds NaN where its
  /// values do not matter.
  template <class Place>
  static void check(const Kernel& kernel, const ProductCase& one, Place&& place) {
    const bool reads_c = one.c.is_defined();
    const int64_t rows = side(one.a, one.options.trans_a, 0);
    const int64_t columns = side(one.b, one.options.trans_b, 1);
    Shape shape = one.a.shape();
    shape[shape.ndim() - 2] = rows;
    shape.back() = columns;
    const Tensor c = spread(reads_c ? one.c : full(shape, NAN, one.a.dtype()));
    const backend::LibraryWatch watch;
    {
      const backend::ExecutionScope scope(backend::with_kernel(kernel));
      matmul(place(one.a), place(one.b), one.options, &c);
    }
    EXPECT_FALSE(watch.has_library());
    EXPECT_EQ(watch.has_matrix_units(), kernel.type == KernelType::kTensorCore);
    expect_product(c, one, cat(name(kernel), " of ", one.a.shape(), " and ", one.b.shape()));
  }
  static void check(const Kernel& kernel, const ProductCase& one) { check(kernel, one, spread); }

  static ProductCase numbers(int64_t m, int64_t k, int64_t n, DType dtype, uint32_t seed) {
    return {random_values({m, k}, seed, dtype), random_values({k, n}, seed + 1, dtype), {}};
  }

  /// Products of sizes drawn from the list, with and without alpha and beta.
  static void check_sizes(const Kernel& kernel, DType dtype, int count) {
    std::mt19937 random(static_cast<unsigned>(itemsize(dtype)) * 64 + kernel.tile);
    const auto draw = [&] { return kProductSizes[random() % std::size(kProductSizes)]; };
    for (int i = 0; i < count; ++i) {
      const int64_t m = draw(), k = draw(), n = draw();
      ProductCase one = numbers(m, k, n, dtype, static_cast<uint32_t>(i));
      if (i % 2 == 0) {
        one.options.alpha =
            is_complex(dtype) ? Scalar(std::complex<double>(0.5, -2)) : Scalar(-1.5);
        one.options.beta = 0.25;
        one.c = random_values({m, n}, 99, dtype);
      }
      check(kernel, one);
    }
  }
};

TEST_F(GpuOwnProduct, TiledInEveryDtype) {
  for (const DType dtype : kFloatsAndComplex)
    check_sizes(with(KernelType::kTiled, 32, 64), dtype, 4);
}

TEST_F(GpuOwnProduct, SimpleInEveryDtype) {
  for (const DType dtype : kFloatsAndComplex) check_sizes(with(KernelType::kSimple, 16), dtype, 4);
}

TEST_F(GpuOwnProduct, OnMatrixUnitsInEveryRealDtype) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    check_sizes(with(KernelType::kTensorCore, 32), dtype, 4);
  }
}

TEST_F(GpuOwnProduct, DocumentedShapesOfBlocks) {
  check_sizes(with(KernelType::kTiled, 32, 256), DType::kFloat32, 3);
  check_sizes(with(KernelType::kTensorCore, 64), DType::kFloat32, 2);
  check_sizes(with(KernelType::kTensorCore, 64, 256), DType::kFloat64, 2);
  check_sizes(with(KernelType::kTiled, 128, 256), DType::kFloat32, 1);
}

/// Too long for a simulated GPU (tests/CMakeLists.txt).
TEST_F(GpuOwnProduct, LargeSizes) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1031, 517, 770}, {512, 1024, 640}}) {
    for (const DType dtype : kFloatsAndComplex) {
      const ProductCase one = numbers(m, k, n, dtype, 1);
      for (const KernelType type : {KernelType::kSimple, KernelType::kTiled}) {
        check(kernels::completed_product({type}), one);
      }
      if (itemsize(dtype) <= 8) check(with(KernelType::kTiled, 64, 256, 3, has_bulk()), one);
      if (is_complex(dtype)) continue;
      for (const int64_t tile : {64, 128}) {
        check(with(KernelType::kTensorCore, tile), one);
        check(with(KernelType::kTensorCore, tile, 0, 4, has_bulk()), one);
      }
    }
  }
}

/// The same: any kernel that there is, on operands that lie in any way.
TEST_F(GpuOwnProduct, AnyKernelForAnyOperands) {
  std::mt19937 random(1);
  const auto one_of = [&](std::initializer_list<int64_t> all) {
    return all.begin()[random() % all.size()];
  };
  const auto limits = backend::runtime(kGpu).kernel_limits();
  for (int runs = 0; runs < 40;) {
    const DType dtype = kFloatsAndComplex[random() % std::size(kFloatsAndComplex)];
    const KernelType types[] = {KernelType::kSimple, KernelType::kTiled, KernelType::kTensorCore};
    Kernel kernel =
        with(types[random() % 3], one_of({8, 16, 32, 64, 128}),
             one_of({32, 64, 128, 256, 512, 1024}), one_of({1, 2, 3, 4, 6}), random() % 3 == 0);
    kernel.in_shared = random() % 4 != 0;
    kernel.is_coalesced = random() % 4 != 0;
    if (!kernels::product_obstacle(kernel, dtype, limits, 0).empty()) continue;
    ++runs;
    const int64_t m = one_of({1, 31, 200, 257}), k = one_of({1, 5, 64, 129});
    ProductCase one = numbers(m, k, one_of({1, 30, 128, 301}), dtype, static_cast<uint32_t>(runs));
    one.options.trans_a = random() % 2 == 0;
    one.options.trans_b = random() % 2 == 0;
    if (one.options.trans_a.is_transposed()) one.a = contiguous(transpose(one.a));
    if (one.options.trans_b.is_transposed()) one.b = contiguous(transpose(one.b));
    const bool is_spread = random() % 2 == 0;
    check(kernel, one, [&](const Tensor& t) { return is_spread ? spread(t) : gpu(t); });
  }
}

TEST_F(GpuOwnProduct, AnyNumberOfStagesAndThreads) {
  for (const int64_t stages : {1, 2, 5}) {
    check(with(KernelType::kTiled, 16, 32, stages), numbers(17, 130, 33, DType::kFloat32, 1));
    check(with(KernelType::kTensorCore, 32, 32, stages), numbers(17, 130, 33, DType::kFloat64, 2));
  }
  check(with(KernelType::kSimple, 8, 32), numbers(17, 33, 7, DType::kFloat32, 3));
}

TEST_F(GpuOwnProduct, RowsBroughtByTheCopyEngine) {
  if (!has_bulk()) GTEST_SKIP() << "needs compute capability 9.0";
  for (const int64_t stages : {1, 3}) {
    check(with(KernelType::kTiled, 32, 64, stages, true), numbers(65, 130, 97, DType::kFloat32, 1));
  }
  check(with(KernelType::kTensorCore, 32, 128, 2, true), numbers(65, 66, 70, DType::kFloat64, 2));
  check(with(KernelType::kTensorCore, 32, 128, 3, true), numbers(64, 64, 64, DType::kFloat16, 3));
  // Rows that no such copy can begin at are moved first: of odd lengths, and of a view.
  const auto odd = [](const Tensor& t) { return gpu(t); };
  check(with(KernelType::kTiled, 32, 64, 3, true), numbers(33, 65, 67, DType::kFloat32, 4), odd);
  ProductCase batch{random_values({3, 33, 17}, 5, DType::kFloat32),
                    broadcast_to(random_values({17, 65}, 6, DType::kFloat32), {3, 17, 65}),
                    {}};
  const auto shared = [](const Tensor& t) {
    return t.strides()[0] != 0 ? swap_axes(gpu(contiguous(swap_axes(t, 0, 1))), 0, 1)
                               : broadcast_to(gpu(contiguous(select(t, 0, 0))), t.shape());
  };
  check(with(KernelType::kTiled, 32, 64, 3, true), batch, shared);
}

TEST_F(GpuOwnProduct, TransposedOperandsAreReadWhereTheyLie) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      if (!trans_a && !trans_b) continue;
      ProductCase one = numbers(33, 40, 65, DType::kFloat32, 1);
      if (trans_a) one.a = contiguous(transpose(one.a));
      if (trans_b) one.b = contiguous(transpose(one.b));
      one.options.trans_a = trans_a;
      one.options.trans_b = trans_b;
      check(with(KernelType::kTiled, 32, 64), one);
      check(with(KernelType::kTensorCore, 32), one);
      check(with(KernelType::kSimple, 16), one);
    }
  }
  ProductCase one = numbers(17, 33, 20, DType::kFloat16, 2);  // pairs along the depth are far apart
  one.a = contiguous(transpose(one.a));
  one.options.trans_a = true;
  check(with(KernelType::kTensorCore, 32), one);
}

TEST_F(GpuOwnProduct, ConjugateTransposes) {
  ProductCase one = numbers(17, 33, 20, DType::kComplex64, 2);
  one.a = conj(contiguous(transpose(one.a)));
  one.options.trans_a = "conj_trans";
  const ProductCase plain{transpose(conj(one.a)), one.b, {}};
  for (const Kernel& kernel : {with(KernelType::kTiled, 32, 64), with(KernelType::kSimple, 16)}) {
    const Tensor c = full({17, 20}, NAN, DType::kComplex64, kGpu);
    const backend::ExecutionScope scope(backend::with_kernel(kernel));
    matmul(gpu(one.a), gpu(one.b), one.options, &c);
    expect_product(c, plain, name(kernel));
  }
}

TEST_F(GpuOwnProduct, AnyStridesAndBatches) {
  for (const Kernel& kernel : {with(KernelType::kTiled, 32, 64), with(KernelType::kTensorCore, 32),
                               with(KernelType::kSimple, 16)}) {
    // Neither axis of a is dense, b is turned round, the result is every second column.
    const Tensor a = random_values({34, 60}, 1, DType::kFloat32);
    const Tensor b = random_values({20, 18}, 2, DType::kFloat32);
    const auto views = [](const Tensor& wide_a, const Tensor& wide_b) {
      return std::pair{slice(slice(wide_a, 0, 0, 34, 2), 1, 0, 60, 3),
                       slice(wide_b, 1, std::nullopt, std::nullopt, -1)};
    };
    const Tensor c = slice(full({17, 36}, 7.0, DType::kFloat32, kGpu), 1, 0, 36, 2);
    const auto on_gpu = views(gpu(a), gpu(b));
    const auto on_cpu = views(a, b);
    const backend::ExecutionScope scope(backend::with_kernel(kernel));
    matmul(on_gpu.first, on_gpu.second, {}, &c);
    expect_product(c, {contiguous(on_cpu.first), contiguous(on_cpu.second), {}}, name(kernel));
    // Batches, one matrix for all of them on either side.
    for (const auto& [left, right] :
         {std::pair{Shape{2, 3, 9, 7}, Shape{2, 3, 7, 18}}, std::pair{Shape{3, 9, 7}, Shape{7, 18}},
          std::pair{Shape{9, 7}, Shape{3, 7, 18}}, std::pair{Shape{7}, Shape{7, 18}}}) {
      const Tensor x = random_values(left, 3, DType::kFloat32);
      const Tensor y = random_values(right, 4, DType::kFloat32);
      expect_close(matmul(gpu(x), gpu(y)), matmul(x, y), 1e-5, name(kernel));
    }
  }
}

TEST_F(GpuOwnProduct, NothingToAddUpOrToScale) {
  const backend::ExecutionScope scope(backend::with_kernel(with(KernelType::kTiled, 32, 64)));
  const Tensor c = full({4, 5}, NAN, DType::kFloat32, kGpu);
  matmul(zeros({4, 0}, DType::kFloat32, kGpu), zeros({0, 5}, DType::kFloat32, kGpu), {}, &c);
  EXPECT_EQ(host_values(c), host_values(zeros({4, 5})));
  fill(c, 2);
  MatmulOptions options;
  options.alpha = 0;
  options.beta = 3;
  const Tensor nan = full({4, 4}, NAN, DType::kFloat32, kGpu);
  matmul(nan, full({4, 5}, 1.0, DType::kFloat32, kGpu), options, &c);
  EXPECT_EQ(host_values(c), host_values(full({4, 5}, 6.0)));
  EXPECT_EQ(matmul(zeros({0, 4}, DType::kFloat32, kGpu), nan).shape(), (Shape{0, 4}));
}

/// Numbers without two parts, and sums that leave the range, give what float32 gives.
TEST_F(GpuOwnProduct, MatrixUnitsKeepInfinitiesAndTheRangeOfFloat32) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  const Tensor a = zeros({4, 8}), b = zeros({8, 3});
  auto* x = a.data<float>();
  auto* y = b.data<float>();
  x[0] = kInf, x[1] = 1;         // row 0: inf * 2, inf * -1, inf * 0
  x[8] = kMax, x[9] = 0;         // row 1: the largest number, once
  x[16] = NAN;                   // row 2
  x[24] = 3e38F, x[25] = 3e38F;  // row 3: 3e38 * 2 overflows, -3e38 - 3e38 too
  y[0] = 2, y[1] = -1, y[2] = 0;
  y[3] = 0, y[4] = -1, y[5] = 1;
  y[3 * 0 + 0] = 1;
  const Tensor wanted = matmul(a, b);
  for (const int64_t tile : {32, 64}) {
    const backend::ExecutionScope scope(backend::with_kernel(with(KernelType::kTensorCore, tile)));
    test::expect_same(matmul(gpu(a), gpu(b)), wanted, 1, cat("tile ", tile));
  }
}

TEST_F(GpuOwnProduct, WhatIsNotThereIsAnErrorThatSaysWhy) {
  const auto expect = [](const Kernel& kernel, DType dtype, const std::string& why) {
    const Tensor a = zeros({4, 4}, dtype, kGpu);
    const backend::ExecutionScope scope(backend::with_kernel(kernel));
    EXPECT_THAT([&] { matmul(a, a); }, ThrowsMessage<CompilationError>(HasSubstr("matmul: " + why)))
        << name(kernel);
  };
  expect(
      with(KernelType::kTiled, 48), DType::kFloat32,
      "tile_size is 48, allowed for a 'tiled' product on a GPU are powers of two from 16 to 128");
  expect(with(KernelType::kSimple, 64), DType::kFloat32, "tile_size is 64, allowed for a 'simple'");
  expect(with(KernelType::kTiled, 32, 96), DType::kFloat32, "block_size is 96, allowed");
  expect(with(KernelType::kTiled, 16, 512), DType::kFloat32,
         "a 16-wide tile has 256 elements, fewer than the 512 threads");
  expect(
      with(KernelType::kTensorCore, 32, 512), DType::kFloat32,
      "a 32-wide tile on 512 threads has parts of 8 x 8 for each warp; matrix units need 16 x 8");
  expect(with(KernelType::kTiled, 32, 0, 9), DType::kFloat32, "num_stages is 9, allowed");
  expect(with(KernelType::kSimple, 16, 0, 2), DType::kFloat32,
         "num_stages is 2, allowed for a 'simple' product are 1");
  expect(with(KernelType::kSimple, 16, 0, 0, true), DType::kFloat32, "enable_tma is True, but");
  expect(with(KernelType::kTensorCore, 32), DType::kComplex64,
         "kernel_type is 'tensor_core', but matrix units multiply real numbers, not complex64");
  expect(with(KernelType::kTiled, 128, 64), DType::kFloat64, "a 128-wide 'tiled");
  Kernel scattered = with(KernelType::kTiled, 32);
  scattered.is_coalesced = false;
  expect(scattered, DType::kFloat32, "enable_memory_coalescing is False, but a 'tiled' product");
}

}  // namespace
}  // namespace cuop
