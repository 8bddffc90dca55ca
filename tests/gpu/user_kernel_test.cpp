// Kernels of the user's own on a GPU: launches, and the search among configurations.
#include "cuop/operators/tuned/user_kernel.h"

#include <gmock/gmock.h>

#include "cuop/core/error.h"
#include "cuop/operators/tuned/config.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/tune/database.h"
#include "cuop/tune/permission.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// y <- x + a, and wrong by what the configuration says.
constexpr const char* kAdd = R"(
extern "C" __global__ void add(const float* x, float* y, float a, long long n) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = x[i] + a + WRONG;
  }
})";
constexpr const char* kIncrement = R"(
extern "C" __global__ void increment(int* x) { atomicAdd(x, 1); }
)";

class GpuUserKernel : public GpuTest {
 protected:
  void TearDown() override { tune::set_frozen(false); }

  static UserKernelOptions options(std::initializer_list<const char*> wrongs) {
    UserKernelOptions made{.key = {"n"}};
    for (const char* wrong : wrongs) made.configs.push_back({{{"WRONG", wrong}}});
    return made;
  }
  static KernelLaunch one_block(size_t) { return {.block = {64, 1, 1}}; }
  static float first(const Tensor& t) { return to_device(t, kCpu).data<float>()[0]; }

  const test::OwnCache cache_;
};

TEST_F(GpuUserKernel, RunsOnTensorsAndNumbers) {
  UserKernel add(kAdd, "add", options({"0"}));
  const Tensor x = full({1000}, 2.0, DType::kFloat32, kGpu),
               y = full(x.shape(), 0.0, DType::kFloat32, kGpu);
  add.launch({x, y, 0.5, 1000}, [](size_t) {
    return KernelLaunch{.grid = {4, 1, 1}, .block = {256, 1, 1}};
  });
  const Tensor host = to_device(y, kCpu);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(host.data<float>()[i], 2.5F) << i;
  fill(y, 7);
  add.launch({x, y, 0.5, 1000}, [](size_t) { return KernelLaunch{.grid = {0, 1, 1}}; });
  EXPECT_EQ(first(y), 7.0F);  // no blocks, nothing done
}

TEST_F(GpuUserKernel, AWrongConfigurationNeverWinsAndOriginalsAreWrittenOnce) {
  UserKernel add(kAdd, "add", options({"0", "1"}));
  const Tensor x = full({64}, 2.0, DType::kFloat32, kGpu),
               y = full({64}, 9.0, DType::kFloat32, kGpu);
  EXPECT_EQ(add.choose(std::vector<KernelArgument>{x, y, 0.5, 64}, one_block), 0U);
  EXPECT_EQ(first(y), 9.0F);  // copies were written
  EXPECT_THAT(add.last_search(),
              HasSubstr("WRONG=1: another result: y: element 0 is 3.5, the default's is 2.5"));
  const Tensor counter = zeros({1}, DType::kInt32);
  const Tensor on_gpu = to_device(counter, kGpu);
  UserKernelOptions two{.configs = {{{{"A", "1"}}}, {{{"A", "2"}}}}};
  UserKernel increment(kIncrement, "increment", two);
  increment.launch({on_gpu}, [](size_t) { return KernelLaunch{.block = {1, 1, 1}}; });
  EXPECT_EQ(to_device(on_gpu, kCpu).data<int32_t>()[0], 1);
  EXPECT_THAT(increment.last_search(), testing::Not(HasSubstr("another result")));
}

TEST_F(GpuUserKernel, AConfigurationThatFailsIsOut) {
  UserKernel add(kAdd, "add", options({"0", "no_such_name"}));
  const Tensor x = full({64}, 2.0, DType::kFloat32, kGpu),
               y = full(x.shape(), 0.0, DType::kFloat32, kGpu);
  add.launch({x, y, 0.5, 64}, one_block);
  EXPECT_EQ(first(y), 2.5F);
  EXPECT_THAT(add.last_search(), HasSubstr("WRONG=no_such_name: failed: jit: add"));
}

TEST_F(GpuUserKernel, ChoicesAreStoredForEachKeyAndCheckedWhenTheyAreRead) {
  const Tensor x = full({64}, 2.0, DType::kFloat32, kGpu),
               y = full(x.shape(), 0.0, DType::kFloat32, kGpu);
  const auto choose = [&](int64_t n) {
    UserKernel add(kAdd, "add", options({"0", "0.0f"}));
    add.choose(std::vector<KernelArgument>{x, y, 0.5, n}, one_block);
    return add.last_search().empty();
  };
  EXPECT_FALSE(choose(64));
  EXPECT_TRUE(choose(64));   // another object, as another process: from disk
  EXPECT_FALSE(choose(32));  // another key
  const auto store = tune::database();
  ASSERT_EQ(store->entries().size(), 2U);
  for (const auto& entry : store->entries()) {
    EXPECT_THAT(entry.key, HasSubstr("kernel add "));
    tune::Choice gone = entry.choice;
    gone.value = "WRONG=gone";
    store->save(entry.key, gone);
  }
  const int64_t refused = tune::database_statistics().refused;
  EXPECT_FALSE(choose(64));
  EXPECT_EQ(tune::database_statistics().refused, refused + 1);
}

TEST_F(GpuUserKernel, FrozenOrCapturingNothingIsMeasured) {
  UserKernel add(kAdd, "add", options({"0", "0.0f"}));
  const Tensor x = full({64}, 2.0, DType::kFloat32, kGpu),
               y = full(x.shape(), 0.0, DType::kFloat32, kGpu);
  tune::set_frozen(true);
  add.launch({x, y, 0.5, 64}, one_block);
  EXPECT_EQ(add.last_search(), "");
  EXPECT_EQ(first(y), 2.5F);
  tune::set_frozen(false);
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  add.launch({x, y, 1.5, 64}, one_block);
  graph->end();
  EXPECT_EQ(add.last_search(), "");
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(first(y), 3.5F);
  add.launch({x, y, 0.5, 64}, one_block);
  EXPECT_NE(add.last_search(), "");
}

TEST_F(GpuUserKernel, LaunchesThatTheDeviceCannotDoAreRefused) {
  UserKernel add(kAdd, "add", options({"0"}));
  const Tensor x = full({64}, 2.0, DType::kFloat32, kGpu),
               y = full(x.shape(), 0.0, DType::kFloat32, kGpu);
  const auto expect = [&](KernelLaunch launch, const char* message) {
    EXPECT_THAT(
        [&] {
          add.launch({x, y, 0.5, 64}, [&](size_t) { return launch; });
        },
        ThrowsMessage<ExecutionError>(HasSubstr(message)));
  };
  expect({.grid = {1, 65536, 1}}, "the grid has 65536 blocks along axis 1");
  expect({.grid = {-1, 1, 1}}, "the grid has -1 blocks");
  expect({.block = {1024, 2, 1}}, "a block of 1024 x 2 x 1 threads");
  expect({.block = {0, 1, 1}}, "a block of 0 x 1 x 1 threads");
  expect({.shared_bytes = int64_t{1} << 30}, "1073741824 bytes of shared memory");
  EXPECT_THAT(
      [&] {
        add.launch({x, full({64}, 1.0), 0.5, 64}, one_block);
      },
      ThrowsMessage<DeviceError>(HasSubstr("y is on cpu")));
  const Tensor strided = x.with_layout({Shape({32}), Strides({2}), 0});
  EXPECT_THAT(
      [&] {
        add.launch({strided, y, 0.5, 32}, one_block);
      },
      ThrowsMessage<ExecutionError>(HasSubstr("row-major without gaps")));
}

}  // namespace
}  // namespace cuop
