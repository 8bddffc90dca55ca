// Elements named by indices and masks on a GPU beside the CPU's answers.
#include <random>

#include "cuop/core/error.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using test::error_of;
using test::expect_same;
using test::random_tensor;

class GpuIndex : public GpuTest {};

/// One of each element size, and bool.
constexpr DType kIndexDTypes[] = {DType::kBool,    DType::kInt8,    DType::kFloat16,
                                  DType::kFloat32, DType::kFloat64, DType::kComplex128};

/// Indices of both signs into an axis, repeated ones among them.
Tensor indices_into(int64_t size, const Shape& shape, int seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const Tensor result = empty(shape, DType::kInt64);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data<int64_t>()[i] =
        static_cast<int64_t>(random() % static_cast<uint64_t>(2 * size)) - size;
  }
  return result;
}

Tensor mask_of(const Shape& shape, int percent, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const Tensor result = empty(shape, DType::kBool);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data<bool>()[i] = static_cast<int>(random() % 100) < percent;
  }
  return result;
}

Tensor there(const Tensor& host) { return to_device(host, kGpu); }

/// Views of one tensor: as it is, transposed, with steps, backwards, from an odd start, broadcast.
std::vector<std::pair<std::string, Tensor>> views_of(const Tensor& x) {
  return {{"plain", x},
          {"transposed", transpose(x)},
          {"every third row", slice(x, 0, 1, {}, 3)},
          {"from column 1", slice(x, 1, 1, {})},
          {"every second column", slice(x, 1, {}, {}, 2)},
          {"backwards", flip(x)},
          {"broadcast", broadcast_to(slice(x, 0, 0, 1), x.shape())}};
}

TEST_F(GpuIndex, TakesAlongEveryAxis) {
  for (const DType dtype : kIndexDTypes) {
    const Tensor host = random_tensor({37, 64, 5}, dtype, 1), device = there(host);
    for (const int64_t axis : {0, 1, 2}) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{1021}, Shape{3, 7}}) {
        const Tensor list = indices_into(host.shape(static_cast<int>(axis)), shape, 2);
        expect_same(take(device, there(list), axis), take(host, list, axis), 0.0,
                    cat("take ", dtype, " axis ", axis, ' ', shape));
      }
    }
    const Tensor list = cast(indices_into(100, {50}, 3), DType::kInt16);
    expect_same(take(device, there(list)), take(host, list), 0.0, "take of the flattened");
  }
}

TEST_F(GpuIndex, RowsOfEveryWidthAndAlignment) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32}) {
    for (const int64_t width : {1, 2, 3, 16, 31, 32, 63, 64, 256}) {
      const Tensor whole = random_tensor({101, 300}, dtype, 1), whole_there = there(whole);
      const Tensor list = indices_into(101, {97}, 4), list_there = there(list);
      for (const int64_t start : {0, 1, 8, 16}) {
        const std::string what = cat(dtype, " width ", width, " from ", start);
        const Tensor host = slice(whole, 1, start, start + width);
        const Tensor device = slice(whole_there, 1, start, start + width);
        expect_same(take(device, list_there, 0), take(host, list, 0), 0.0, "take " + what);
        const Tensor values = random_tensor({97, width}, dtype, 5);
        const Tensor target = clone(whole), target_there = there(target);
        const Index index[] = {list}, index_there[] = {list_there};
        set_item(slice(target, 1, start, start + width), index, values);
        set_item(slice(target_there, 1, start, start + width), index_there, there(values));
        expect_same(target_there, target, 0.0, "assignment " + what);
      }
    }
  }
}

TEST_F(GpuIndex, ViewsIndexedAndAssigned) {
  const Tensor whole = random_tensor({41, 53}, DType::kFloat32, 1), whole_there = there(whole);
  const auto hosts = views_of(whole), devices = views_of(whole_there);
  for (size_t k = 0; k < hosts.size(); ++k) {
    const auto& [what, host] = hosts[k];
    const Tensor& device = devices[k].second;
    const Tensor rows = indices_into(host.shape(0), {29, 1}, 2);
    const Tensor columns = indices_into(host.shape(1), {17}, 3);
    const Tensor mask = mask_of(host.shape(), 30, 4);
    const std::vector<std::vector<Index>> lists = {
        {rows},
        {rows, columns},
        {EllipsisIndex{}, columns},
        {mask},
        {columns, NewAxisIndex{}, SliceIndex{1, {}, 2}},  // rows named by a list for columns
        {SliceIndex{}, mask_of({host.shape(1)}, 50, 5)}};
    for (size_t i = 0; i < lists.size(); ++i) {
      std::vector<Index> mine = lists[i];
      // Only rows that are there.
      if (i == 4) mine[0] = indices_into(host.shape(0), {17}, 6);
      std::vector<Index> theirs = mine;
      for (Index& entry : theirs) {
        if (auto* tensor = std::get_if<Tensor>(&entry)) *tensor = there(*tensor);
      }
      const Tensor wanted = get_item(host, mine);
      expect_same(get_item(device, theirs), wanted, 0.0, cat(what, ", index ", i));
      if (what == "broadcast") continue;
      const Tensor target = clone(whole), target_there = there(target);
      const Tensor values = random_tensor(wanted.shape(), DType::kFloat64, 7);
      set_item(views_of(target)[k].second, mine, values);
      set_item(views_of(target_there)[k].second, theirs, there(values));
      expect_same(target_there, target, 0.0, cat(what, ", assignment ", i));
      set_item(views_of(target)[k].second, mine, full({}, 3));
      set_item(views_of(target_there)[k].second, theirs, full({}, 3, DType::kFloat32, kGpu));
      expect_same(target_there, target, 0.0, cat(what, ", one value ", i));
    }
  }
}

TEST_F(GpuIndex, TheLastOfRepeatedIndicesStays) {
  for (const int64_t size : {1, 7, 1000, 100000}) {
    const Tensor list = indices_into(size, {50021}, 1);
    const Tensor values = reshape(arange(0, 50021, 1, DType::kInt64), {50021});
    const Tensor host = zeros({size}, DType::kInt64), device = there(host);
    const Index index[] = {list}, index_there[] = {there(list)};
    set_item(host, index, values);
    set_item(device, index_there, there(values));
    expect_same(device, host, 0.0, cat("one of ", size));
    put_along_axis(host, list, full({}, 5, DType::kInt64), 0);
    put_along_axis(device, there(list), full({}, 5, DType::kInt64, kGpu), 0);
    expect_same(device, host, 0.0, "put_along_axis");
  }
}

TEST_F(GpuIndex, AlongAnAxis) {
  for (const int64_t axis : {0, 1, 2}) {
    const Tensor host = random_tensor({13, 17, 19}, DType::kFloat32, 1), device = there(host);
    Shape shape = host.shape();
    shape[static_cast<int>(axis)] = 23;
    const Tensor list = indices_into(host.shape(static_cast<int>(axis)), shape, 2);
    expect_same(take_along_axis(device, there(list), axis), take_along_axis(host, list, axis), 0.0,
                cat("take_along_axis ", axis));
    const Tensor values = random_tensor(shape, DType::kFloat32, 3);
    put_along_axis(host, list, values, axis);
    put_along_axis(device, there(list), there(values), axis);
    expect_same(device, host, 0.0, cat("put_along_axis ", axis));
  }
}

TEST_F(GpuIndex, MasksOfEverySize) {
  for (const int64_t size : {0, 1, 15, 16, 17, 255, 4095, 4096, 4097, 100003, 1000003}) {
    for (const int percent : {0, 3, 50, 100}) {
      const Tensor host = arange(0, size, 1, DType::kInt32), device = there(host);
      const Tensor mask = mask_of({size}, percent, 1), mask_there = there(mask);
      const std::string what = cat(size, " with ", percent, " of 100 true");
      expect_same(masked_select(device, mask_there), masked_select(host, mask), 0.0, what);
      EXPECT_EQ(count_nonzero(mask_there), count_nonzero(mask)) << what;
      if (size < 2) continue;
      const Tensor odd = slice(mask, 0, 1, {}), odd_there = slice(mask_there, 0, 1, {});
      expect_same(masked_select(slice(device, 0, 1, {}), odd_there),
                  masked_select(slice(host, 0, 1, {}), odd), 0.0, "unaligned " + what);
    }
  }
}

TEST_F(GpuIndex, NonzeroSelectAndFillOfEveryDtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor host = random_tensor({31, 1, 47}, dtype, i), device = there(host);
    const Tensor mask = mask_of({31, 5, 47}, 40, 2), row = mask_of({47}, 40, 3);
    const auto mine = nonzero(mask), theirs = nonzero(there(mask));
    ASSERT_EQ(mine.size(), theirs.size());
    for (size_t k = 0; k < mine.size(); ++k) expect_same(theirs[k], mine[k], 0.0, "nonzero");
    EXPECT_EQ(count_nonzero(device), count_nonzero(host)) << dtype;
    expect_same(masked_select(device, there(row)), masked_select(host, row), 0.0, "masked_select");
    const Tensor value = full({}, 1, dtype), value_there = there(value);
    expect_same(masked_fill(device, there(row), value_there), masked_fill(host, row, value), 0.0,
                cat("masked_fill ", dtype));
    masked_fill(device, there(row), value_there, &device);
    masked_fill(host, row, value, &host);
    expect_same(device, host, 0.0, cat("masked_fill in place ", dtype));
  }
}

TEST_F(GpuIndex, IndicesOutsideAreTheSameErrorAndNothingIsWritten) {
  const Tensor host = random_tensor({10, 4}, DType::kFloat32, 1), device = there(host);
  for (const int64_t wrong : {10, -11, 1000000}) {
    const Tensor list = indices_into(10, {5000}, 2);
    list.data<int64_t>()[4321] = wrong;
    list.data<int64_t>()[4999] = 77;  // not the first
    const std::string wanted = error_of<IndexError>([&] { take(host, list, 0); });
    EXPECT_NE(wanted.find(std::to_string(wrong)), std::string::npos) << wanted;
    const Tensor list_there = there(list);
    EXPECT_EQ(error_of<IndexError>([&] { take(device, list_there, 0); }), wanted);
    const Index index[] = {list}, index_there[] = {list_there};
    EXPECT_EQ(error_of<IndexError>(
                  [&] { set_item(device, index_there, full({}, 0, DType::kFloat32, kGpu)); }),
              error_of<IndexError>([&] { get_item(host, index); }));
    expect_same(device, host, 0.0, "after an error");
  }
  const Index from_cpu[] = {indices_into(10, {3}, 1)};
  EXPECT_THROW(get_item(device, from_cpu), DeviceError);
  const Index mask_from_cpu[] = {mask_of({10}, 50, 1)};
  EXPECT_THROW(get_item(device, mask_from_cpu), DeviceError);
}

TEST_F(GpuIndex, NothingAroundTheOutputIsWritten) {
  const Tensor host = random_tensor({50, 33}, DType::kFloat32, 1), device = there(host);
  const Tensor list = indices_into(50, {20}, 2);
  const Tensor whole = full({30, 50}, 7), whole_there = there(whole);
  const Tensor out = slice(slice(whole, 0, 5, 25), 1, 3, 36);
  const Tensor out_there = slice(slice(whole_there, 0, 5, 25), 1, 3, 36);
  take(host, list, 0, &out);
  take(device, there(list), 0, &out_there);
  expect_same(whole_there, whole, 0.0, "guard zone");
}

TEST_F(GpuIndex, ArrangementsAreCopies) {
  for (const DType dtype : kIndexDTypes) {
    const Tensor a = random_tensor({7, 11}, dtype, 1), b = random_tensor({7, 3}, dtype, 2);
    const Tensor x = there(a), y = there(b);
    const Tensor hosts[] = {a, b}, devices[] = {x, y};
    expect_same(concatenate(devices, 1), concatenate(hosts, 1), 0.0, "concatenate");
    const Tensor two[] = {a, flip(a)}, two_there[] = {x, flip(x)};
    expect_same(stack(two_there, 1), stack(two, 1), 0.0, "stack");
    const int64_t shifts[] = {3, -2}, axes[] = {0, 1}, repeats[] = {2, 1, 3};
    expect_same(roll(x, shifts, axes), roll(a, shifts, axes), 0.0, "roll");
    expect_same(tile(x, repeats), tile(a, repeats), 0.0, "tile");
    expect_same(repeat(transpose(x), 3, 1), repeat(transpose(a), 3, 1), 0.0, "repeat");
    const std::pair<int64_t, int64_t> widths[] = {{2, 3}, {1, 4}};
    for (const PadMode mode : {PadMode::kConstant, PadMode::kEdge, PadMode::kReflect,
                               PadMode::kSymmetric, PadMode::kWrap}) {
      expect_same(pad(x, widths, mode, 1), pad(a, widths, mode, 1), 0.0, "pad");
    }
    expect_same(eye(5, 7, 1, dtype, kGpu), eye(5, 7, 1, dtype), 0.0, "eye");
  }
}

}  // namespace
}  // namespace cuop
