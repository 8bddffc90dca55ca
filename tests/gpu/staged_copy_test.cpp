// Large copies between the host's memory, in any layout, and a GPU's.
#include "cuop/ops/copy/staged_copy.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <random>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/memory/current.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/copy/row_copies_cuda.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_test.h"
#include "tests/ordered_faults.h"

namespace cuop {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

class GpuStagedCopy : public GpuTest {};

/// Numbers of which none is like its neighbours.
Tensor numbers(const Shape& shape, DType dtype = DType::kInt32) {
  const Tensor all = arange(0, element_count(shape), 1, DType::kInt64);
  return cast(reshape(all, shape), dtype);
}

bool are_equal(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(a), y = contiguous(b);
  return x.nbytes() == y.nbytes() &&
         std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0;
}

TEST_F(GpuStagedCopy, BytesOfAnyNumber) {
  for (const int64_t bytes : {4 * kMebibyte - 1, 4 * kMebibyte, 4 * kMebibyte + 1,
                              5 * kMebibyte + 3, 37 * kMebibyte + 7}) {
    const Tensor host = numbers({bytes}, DType::kUInt8);
    EXPECT_EQ(is_staged(host, kGpu), bytes >= 4 * kMebibyte);
    const Tensor gpu = to_device(host, kGpu);
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host)) << bytes;
  }
}

TEST_F(GpuStagedCopy, ViewsOfAnyLayout) {
  const Tensor cube = numbers({3, 1100, 1300});
  const Tensor flat = numbers({2, 5, 700'001});
  const Tensor views[] = {swap_axes(cube, 0, 2),
                          swap_axes(cube, 1, 2),
                          slice(cube, 2, 100, 1203),
                          slice(cube, 1, 3, 1100, 2),
                          slice(flat, 2, -1, std::nullopt, -1),
                          slice(flat, 1, 1, 4),
                          broadcast_to(slice(flat, 0, 0, 1), {4, 5, 700'001}),
                          numbers({1'500'000, 1}),
                          numbers({1, 1, 2'000'003})};
  for (const Tensor& view : views) {
    ASSERT_TRUE(is_staged(view, kGpu)) << view.shape();
    const Tensor gpu = to_device(view, kGpu);
    EXPECT_TRUE(gpu.is_contiguous());
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), view)) << view.shape();
    const Tensor target = zeros(view.shape(), view.dtype(), kGpu);
    copy_across(target, view);
    EXPECT_TRUE(are_equal(to_device(target, kCpu), view)) << view.shape();
  }
}

TEST_F(GpuStagedCopy, IntoPartsOfTensorsOfTheHost) {
  const Tensor gpu = to_device(numbers({1100, 1300}), kGpu);
  const Tensor frame = full({1102, 1400}, -1, DType::kInt32);
  const Tensor inner = slice(slice(frame, 0, 1, 1101), 1, 50, 1350);
  copy_across(inner, gpu);
  EXPECT_TRUE(are_equal(inner, numbers({1100, 1300})));
  // What lies around it is as it was.
  for (const Tensor& edge : {slice(frame, 0, 0, 1), slice(frame, 0, 1101, 1102),
                             slice(frame, 1, 0, 50), slice(frame, 1, 1350, 1400)}) {
    EXPECT_TRUE(are_equal(edge, full(edge.shape(), -1, DType::kInt32)));
  }
  // A view of the GPU is packed there first.
  const Tensor turned = empty({1300, 1100}, DType::kInt32);
  copy_across(turned, transpose(gpu));
  EXPECT_TRUE(are_equal(turned, transpose(numbers({1100, 1300}))));
}

// What a GPU gives back in such lengths goes past the host's caches, by rows where rows are long.
TEST_F(GpuStagedCopy, LongResultsOfEveryRowLength) {
  const struct {
    int64_t row, gap, first;
  } rows[] = {{1 << 20, 0, 0}, {1025, 3, 1}, {1023, 1, 3}, {2048, 16, 5}, {100, 7, 2}};
  for (const auto& [row, gap, first] : rows) {
    const int64_t count = 33 * kMebibyte / 4 / row;
    const Tensor gpu = to_device(numbers({count, row}), kGpu);
    const Tensor frame = full({count + 2, row + gap + first}, -1, DType::kInt32);
    const Tensor place = slice(slice(frame, 0, 1, count + 1), 1, first, first + row);
    copy_across(place, gpu);
    EXPECT_TRUE(are_equal(place, numbers({count, row}))) << row;
    fill(place, -1);
    EXPECT_TRUE(are_equal(frame, full(frame.shape(), -1, DType::kInt32))) << row;
  }
  const Tensor turned = empty({3000, 3000}, DType::kInt32);
  copy_across(transpose(turned), to_device(numbers({3000, 3000}), kGpu));
  EXPECT_TRUE(are_equal(transpose(turned), numbers({3000, 3000})));
}

// Slots begin where elements of any dtype may, whatever number of threads shares their memory.
TEST_F(GpuStagedCopy, OfAnyNumberOfThreads) {
  const Tensor host = numbers({1500, 1001}, DType::kFloat64), gpu = to_device(host, kGpu);
  const int before = backend::thread_count();
  for (const int threads : {1, 3, 5, 7}) {
    backend::set_thread_count(threads);
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host)) << threads;
    EXPECT_TRUE(are_equal(to_device(to_device(transpose(host), kGpu), kCpu), transpose(host)));
  }
  backend::set_thread_count(before);
}

TEST_F(GpuStagedCopy, IsFilledByThreadsBoxByBox) {
  const Tensor host = numbers({3, 700, 1100});
  const Tensor gpu = zeros(host.shape(), host.dtype(), kGpu);
  std::atomic<int64_t> elements = 0;
  const auto fill_from_host = [&](const Box& box, const Tensor& to) {
    EXPECT_TRUE(to.is_contiguous());
    EXPECT_EQ(to.shape(), box.shape());
    elements += box.size();
    copy_into(to, host.with_layout(slice(host.layout(), box)));
  };
  ASSERT_TRUE(staged_fill(gpu, fill_from_host));
  EXPECT_EQ(elements, host.size());
  EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host));
  EXPECT_FALSE(staged_fill(zeros({100}, DType::kInt32, kGpu), fill_from_host));  // too short
  EXPECT_EQ(elements, host.size());
}

TEST_F(GpuStagedCopy, AnErrorOfWhoFillsEndsTheCopy) {
  const Tensor gpu = zeros({64 * kMebibyte}, DType::kUInt8, kGpu);
  std::atomic<int> calls = 0;
  const auto fail = [&](const Box&, const Tensor&) {
    if (++calls == 3) throw CommunicationError("the array's owner is gone");
  };
  EXPECT_THROW(staged_fill(gpu, fail), CommunicationError);
  EXPECT_TRUE(are_equal(to_device(to_device(numbers({2000, 3000}), kGpu), kCpu),
                        numbers({2000, 3000})));  // the stream and the slots serve on
}

TEST_F(GpuStagedCopy, RandomViews) {
  std::mt19937 random(7);
  const auto below = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most - 1)(random);
  };
  for (int round = 0; round < 6; ++round) {
    const Shape shape{2 + below(2), 400 + below(200), 1 + below(2), 1500 + below(100)};
    Tensor view = numbers(shape, below(2) == 0 ? DType::kInt64 : DType::kInt32);
    view = swap_axes(view, below(4), below(4));
    const int axis = static_cast<int>(below(4));
    if (view.shape(axis) > 2) view = slice(view, axis, 1, view.shape(axis) - 1);
    const Tensor gpu = to_device(view, kGpu);
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), view)) << view.shape();
  }
}

TEST_F(GpuStagedCopy, LockedMemoryGoesDirectly) {
  const Tensor locked = pin_memory(numbers({3 * kMebibyte}), kGpu);
  EXPECT_FALSE(is_staged(locked, kGpu));
  EXPECT_TRUE(are_equal(to_device(to_device(locked, kGpu), kCpu), locked));
}

TEST_F(GpuStagedCopy, RowsOfLockedMemoryGoByTheCopyEngine) {
  const Tensor locked = pin_memory(numbers({6, 700, 2500}), kGpu);
  const Tensor pitched = slice(locked, 2, 130, 2377);                   // rows of all planes
  const Tensor planes = slice(slice(locked, 1, 5, 690), 2, 300, 2500);  // some rows of each
  const Tensor apart = slice(locked, 1, 0, 700, 3);                     // every third row
  const RowLimits any{1, 1, 100};
  const auto calls = [&](const Tensor& host) {
    const Tensor there = empty(host.shape(), host.dtype(), kGpu);
    return row_copies(there, host, any).size();
  };
  EXPECT_EQ(calls(pitched), 1);
  EXPECT_EQ(calls(planes), 6);
  EXPECT_EQ(calls(apart), 6);
  EXPECT_EQ(calls(slice(locked, 1, -1, std::nullopt, -1)), 0);  // backwards
  EXPECT_EQ(calls(swap_axes(locked, 1, 2)), 0);                 // no rows
  EXPECT_EQ(calls(locked), 0);                                  // one row
  for (const Tensor& view : {pitched, planes, apart}) {
    ASSERT_TRUE(is_staged(view, kGpu));
    const Tensor gpu = empty(view.shape(), view.dtype(), kGpu);
    ASSERT_TRUE(copy_locked_rows(gpu, view));
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), view)) << view.shape();
    EXPECT_TRUE(are_equal(to_device(to_device(view, kGpu), kCpu), view)) << view.shape();
  }
}

TEST_F(GpuStagedCopy, IntoPartsOfLockedTensors) {
  const Tensor gpu = to_device(numbers({1100, 1300}), kGpu);
  const Tensor frame = pin_memory(full({1102, 1400}, -1, DType::kInt32), kGpu);
  const Tensor inner = slice(slice(frame, 0, 1, 1101), 1, 50, 1350);
  ASSERT_TRUE(copy_locked_rows(inner, gpu));
  EXPECT_TRUE(are_equal(inner, numbers({1100, 1300})));
  for (const Tensor& edge : {slice(frame, 0, 0, 1), slice(frame, 0, 1101, 1102),
                             slice(frame, 1, 0, 50), slice(frame, 1, 1350, 1400)}) {
    EXPECT_TRUE(are_equal(edge, full(edge.shape(), -1, DType::kInt32)));
  }
}

TEST_F(GpuStagedCopy, ShortRowsOfLockedMemoryArePackedByThreads) {
  const Tensor locked = pin_memory(numbers({40'000, 130}), kGpu);
  const Tensor narrow = slice(locked, 1, 3, 50);  // 188 bytes
  const Tensor gpu = empty(narrow.shape(), narrow.dtype(), kGpu);
  ASSERT_TRUE(is_staged(narrow, kGpu));
  EXPECT_FALSE(copy_locked_rows(gpu, narrow));
  EXPECT_TRUE(are_equal(to_device(to_device(narrow, kGpu), kCpu), narrow));
}

TEST_F(GpuStagedCopy, MemoryIsLockedWhereAllOfItIs) {
  const Tensor locked = pin_memory(numbers({kMebibyte}), kGpu);
  backend::Runtime& runtime = backend::runtime(kGpu);
  EXPECT_TRUE(runtime.is_locked(locked.data(), locked.nbytes()));
  EXPECT_TRUE(runtime.is_locked(locked.data<int>() + 5, locked.nbytes() - 20));
  EXPECT_FALSE(runtime.is_locked(locked.data(), int64_t{1} << 40));
  const Tensor ordinary = numbers({kMebibyte});
  EXPECT_FALSE(runtime.is_locked(ordinary.data(), 1));
}

// The GPU has room for nothing more, not even for a copy of what it turns.
TEST_F(GpuStagedCopy, TurnsWhatLiesInAnotherOrderOnItsWay) {
  const Tensor cube = numbers({35, 1050, 33});
  const Tensor gpu = to_device(cube, kGpu);
  const auto none_left = memory::make_limited(kGpu, 1);
  const memory::ResourceScope scope(*none_left);
  const int64_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    const Tensor wanted = contiguous(permute(cube, order)), there = permute(gpu, order);
    const Tensor back = empty(wanted.shape(), wanted.dtype());
    copy_across(back, there);
    EXPECT_TRUE(are_equal(back, wanted)) << wanted.shape();
    EXPECT_TRUE(are_equal(to_device(there, kCpu), wanted)) << wanted.shape();
    copy_across(flip(there), flip(wanted));
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), cube)) << wanted.shape();
    // And into another order of the host.
    const Tensor turned = empty({wanted.shape(2), wanted.shape(0), wanted.shape(1)}, cube.dtype());
    const int64_t round[] = {1, 2, 0};
    copy_across(permute(turned, round), there);
    EXPECT_TRUE(are_equal(permute(turned, round), wanted)) << wanted.shape();
  }
}

TEST_F(GpuStagedCopy, RowsOfOrdinaryMemoryAreNotTheCopyEngines) {
  const Tensor ordinary = slice(numbers({1100, 1300}), 1, 0, 1200);
  const Tensor gpu = empty(ordinary.shape(), ordinary.dtype(), kGpu);
  EXPECT_FALSE(copy_locked_rows(gpu, ordinary));
}

/// Orders faults of the simulated GPU while it lives; other drivers take no orders.
class Faults {
 public:
  explicit Faults(const char* text) { EXPECT_TRUE(test::order_faults(text)); }
  ~Faults() { test::order_faults(""); }
};

TEST_F(GpuStagedCopy, WhereNoMemoryCanBeLockedTheDriverCopies) {
  if (test::find_fault_order() == nullptr) GTEST_SKIP() << "needs the simulated GPU";
  const Tensor host = swap_axes(numbers({1500, 3, 1024}), 0, 1);
  const Tensor gpu = to_device(host, kGpu);
  const Tensor back = empty({1024, 3, 1500}, DType::kInt32);
  release_pinned(kGpu);
  const Faults faults("pin:1+:2");
  const Tensor again = empty(host.shape(), DType::kInt32, kGpu);
  EXPECT_FALSE(staged_copy(again, host));
  EXPECT_TRUE(are_equal(to_device(to_device(host, kGpu), kCpu), host));
  copy_across(swap_axes(back, 0, 2), swap_axes(gpu, 0, 1));
  EXPECT_TRUE(are_equal(swap_axes(back, 0, 2), swap_axes(host, 0, 1)));
}

TEST_F(GpuStagedCopy, ErrorsOfTheDriverReachTheCaller) {
  if (test::find_fault_order() == nullptr) GTEST_SKIP() << "needs the simulated GPU";
  const Tensor host = numbers({9 * kMebibyte});
  const Tensor gpu = to_device(host, kGpu);
  for (const char* fault : {"copy:1:2", "copy:3:2", "copy:7:2"}) {
    const Faults faults(fault);
    EXPECT_THROW(to_device(host, kGpu), Error) << fault;
    EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host)) << fault;
    test::order_faults(fault);
    EXPECT_THROW(to_device(gpu, kCpu), Error) << fault;
  }
  EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host));
}

TEST_F(GpuStagedCopy, AnInterruptEndsItAndTheNextOneIsRight) {
  const Tensor host = numbers({9 * kMebibyte});
  const Tensor gpu = to_device(host, kGpu);
  std::atomic<bool> is_interrupted = true;
  {
    const CancelScope cancelled(is_interrupted);
    EXPECT_ANY_THROW(to_device(host, kGpu));
    EXPECT_ANY_THROW(to_device(gpu, kCpu));
  }
  EXPECT_TRUE(are_equal(to_device(gpu, kCpu), host));
}

}  // namespace
}  // namespace cuop
