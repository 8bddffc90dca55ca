// What the adapters of cuFFT, cuBLAS and cuDNN promise whatever is computed: refusals become errors
// that lose nothing, threads and streams share plans, and recorded work outlives the caches.
#include <gmock/gmock.h>

#include <thread>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cublas.h"
#include "cuop/backend/cuda/cudnn.h"
#include "cuop/backend/cuda/cufft.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/graph.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/ops/blas/blas.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/gpu/foreign_graph.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GpuLibraryCalls : public GpuTest {};

/// `work` on streams of four threads at once, three times each.
template <class Work>
void in_four_threads(const Work& work) {
  backend::runtime(kGpu).synchronize();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const backend::OwnedStream stream(kGpu);
      const StreamScope scope(stream.get());
      for (int round = 0; round < 3; ++round) work();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GpuLibraryCalls, ARefusedTransformIsAnErrorThatLosesNothing) {
  const Tensor x = random_values({4, 30}, 1, DType::kComplex64), there = gpu(x);
  expect_close(fft(there), fft(x), 3e-6);
  const int64_t before = memory::current_resource(kGpu).statistics().allocated_bytes;
  backend::cuda::FftGridSpec spec;
  spec.lines.n = 0;
  EXPECT_THAT(
      [&] { backend::cuda::fft("mine", spec, there.data(), there.data(), current_stream(kGpu)); },
      ThrowsMessage<ExecutionError>(
          HasSubstr("mine: cuFFT answered CUFFT_INVALID_SIZE (8) to a plan")));
  EXPECT_EQ(memory::current_resource(kGpu).statistics().allocated_bytes, before);
  expect_close(fft(there), fft(x), 3e-6);
}

TEST_F(GpuLibraryCalls, CufftRefusesWhatItsDocumentationSays) {
  const DynLib& lib = backend::cuda_library(backend::CudaLibrary::kCufft);
  const backend::cuda::ContextScope scope(kGpu);
  int (*const create)(int*) = lib.require("cufftCreate");
  int (*const destroy)(int) = lib.require("cufftDestroy");
  int (*const set_own_memory)(int, int) = lib.require("cufftSetAutoAllocation");
  int (*const make)(int, int, long long*, long long*, long long, long long, int, long long*,
                    long long, long long, int, long long, size_t*, int) =
      lib.require("cufftXtMakePlanMany");
  int (*const execute)(int, void*, void*, int) = lib.require("cufftXtExec");
  constexpr int kInvalidPlan = 1, kNoWorkspace = 13;
  constexpr int kComplex32 = 4;
  constexpr int64_t kLength = 1000003;
  const Tensor x = random_values({kLength}, 1, DType::kComplex64), there = gpu(x);
  int plan = 0;
  ASSERT_EQ(create(&plan), 0);
  EXPECT_EQ(execute(plan, there.data(), there.data(), -1), kInvalidPlan) << "before it is made";
  EXPECT_EQ(set_own_memory(plan, 0), 0);
  const auto made = [&] {
    long long n = kLength;
    size_t bytes = 0;
    const int status =
        make(plan, 1, &n, &n, 1, n, kComplex32, &n, 1, n, kComplex32, 1, &bytes, kComplex32);
    EXPECT_TRUE(status != 0 || bytes > 0) << "too long a prime for what blocks share";
    return status;
  };
  EXPECT_EQ(made(), 0);
  EXPECT_EQ(made(), kInvalidPlan) << "twice";
  EXPECT_EQ(execute(plan, there.data(), there.data(), -1), kNoWorkspace);
  EXPECT_EQ(destroy(plan), 0);
  EXPECT_EQ(execute(plan, there.data(), there.data(), -1), kInvalidPlan) << "after its end";
}

TEST_F(GpuLibraryCalls, ARefusedProductIsAnErrorThatLosesNothing) {
  const Tensor a = random_values({5, 5}, 1, DType::kFloat32),
               b = random_values({5, 3}, 2, a.dtype());
  const Tensor there = gpu(a), other = gpu(b), c = gpu(b);
  expect_close(symm(there, other), symm(a, b), 1e-5);
  const int64_t before = memory::current_resource(kGpu).statistics().allocated_bytes;
  backend::blas::SymmCall<float> product;
  product.m = 5;
  product.n = 3;
  product.a = there.data<float>();
  product.b = other.data<float>();
  product.c = c.data<float>();
  product.lda = 5;
  product.ldb = 2;  // rows overlap
  product.ldc = 3;
  EXPECT_THAT([&] { backend::cuda::symm(product, current_stream(kGpu)); },
              ThrowsMessage<ExecutionError>(
                  HasSubstr("symm: cuBLAS answered CUBLAS_STATUS_INVALID_VALUE to the product")));
  backend::blas::TrsmCall<float> solution;
  solution.m = 5;
  solution.n = 3;
  solution.a = there.data<float>();
  solution.b = c.data<float>();
  solution.lda = 4;
  solution.ldb = 3;
  EXPECT_THAT([&] { backend::cuda::trsm(solution, current_stream(kGpu)); },
              ThrowsMessage<ExecutionError>(
                  HasSubstr("trsm: cuBLAS answered CUBLAS_STATUS_INVALID_VALUE to the solution")));
  EXPECT_EQ(memory::current_resource(kGpu).statistics().allocated_bytes, before);
  expect_close(symm(there, other), symm(a, b), 1e-5);
  expect_close(trsm(there, other), trsm(a, b), 1e-4);
}

TEST_F(GpuLibraryCalls, ThreadsShareAPlanOfTransforms) {
  const Tensor x = random_values({20, 90}, 3, DType::kComplex64), there = gpu(x);
  const Tensor wanted = fft(x);
  in_four_threads([&] { expect_close(fft(there), wanted, 3e-6); });
}

TEST_F(GpuLibraryCalls, ThreadsHaveHandlesOfCublasForThemselves) {
  const Tensor a = random_values({40, 40}, 4, DType::kFloat64);
  const Tensor there = gpu(a), wanted = symm(a, a);
  in_four_threads([&] { expect_close(symm(there, there), wanted, 1e-13); });
}

TEST_F(GpuLibraryCalls, RecordedTransformsOutliveTheCacheOfPlans) {
  const Tensor x = gpu(random_values({3, 100}, 5, DType::kComplex64));
  const Tensor other = random_values({3, 100}, 6, DType::kComplex64);
  const auto graph = backend::runtime(kGpu).create_graph();
  fft(x);
  graph->begin();
  const Tensor spectrum = fft(x);
  graph->end();
  for (int64_t n = 1; n < 100; ++n) fft(x, n);
  copy_into(x, gpu(other));
  graph->replay(current_stream(kGpu));
  expect_close(spectrum, fft(other), 3e-6);
}

TEST_F(GpuLibraryCalls, RecordedProductsAreReplayed) {
  const Tensor a = gpu(random_values({20, 20}, 7, DType::kFloat64));
  const Tensor other = random_values({20, 20}, 8, DType::kFloat64);
  const auto graph = backend::runtime(kGpu).create_graph();
  symm(a, a);
  graph->begin();
  const Tensor product = symm(a, symm(a, a));
  graph->end();
  symm(a, a);  // takes the handle
  copy_into(a, gpu(other));
  graph->replay(current_stream(kGpu));
  expect_close(product, symm(other, symm(other, other)), 1e-13);
}

TEST_F(GpuLibraryCalls, RecordedConvolutionsOutliveTheirPlans) {
  if (!backend::cuda::cudnn_absence().empty()) GTEST_SKIP() << "needs cuDNN";
  const Tensor x = gpu(random_values({1, 2, 9, 9}, 9, DType::kFloat32));
  const Tensor w = random_values({4, 2, 3, 3}, 10, DType::kFloat32), w_there = gpu(w);
  const Tensor other = random_values(x.shape(), 11, DType::kFloat32);
  const auto graph = backend::runtime(kGpu).create_graph();
  conv2d(x, w_there);
  graph->begin();
  const Tensor y = conv2d(x, w_there);
  graph->end();
  for (int64_t i = 0; i < 256; ++i) {  // as many as are kept
    backend::cuda::ConvShape other_shape;
    other_shape.batch = 100 + i;
    other_shape.in_channels = 2;
    other_shape.out_channels = 4;
    other_shape.in = other_shape.out = {1, 3, 3};
    ASSERT_TRUE(backend::cuda::has_conv("conv2d", other_shape, "", current_stream(kGpu)));
  }
  conv2d(x, w_there);
  copy_into(x, gpu(other));
  graph->replay(current_stream(kGpu));
  expect_close(y, conv2d(other, w), 1e-5);
}

TEST_F(GpuLibraryCalls, WhatTheyNeedIsMadeWhileAnotherLibraryRecords) {
  if (!backend::cuda::cudnn_absence().empty()) GTEST_SKIP() << "needs cuDNN";
  const Tensor x = random_values({3, 45}, 12, DType::kComplex64), x_there = gpu(x);
  const Tensor a = random_values({20, 20}, 13, DType::kFloat64), a_there = gpu(a);
  const Tensor image = random_values({1, 2, 9, 9}, 14, DType::kFloat32), image_there = gpu(image);
  const Tensor w = random_values({4, 2, 3, 3}, 15, DType::kFloat32), w_there = gpu(w);
  backend::runtime(kGpu).synchronize();
  const backend::OwnedStream recorded(kGpu);
  Tensor spectrum, product, y;
  ForeignGraph graph(recorded.get(), [&] {
    spectrum = fft(x_there);
    product = symm(a_there, matmul(a_there, a_there));
    y = conv2d(image_there, w_there);
  });
  graph.launch(recorded.get());
  backend::runtime(kGpu).synchronize();
  expect_close(spectrum, fft(x), 3e-6);
  expect_close(product, symm(a, matmul(a, a)), 1e-13);
  expect_close(y, conv2d(image, w), 1e-5);
}

}  // namespace
}  // namespace cuop
