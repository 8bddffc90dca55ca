// The text of the GPU's sorting, run on host threads beside the CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/sort/search_kernels.h"
#include "cuop/ops/sort/sort.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "cuop/ops/sort/sort_keys_internal.h"
#include "tests/jit/host_device.h"
#include "tests/values.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/sort/digits.cuh"
#include "cuop/ops/sort/search.cuh"
#include "cuop/ops/sort/sort.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

using test::same_bits;

/// Fewer than there is work for: blocks go round again.
unsigned few(int64_t wanted) { return static_cast<unsigned>(std::min<int64_t>(wanted, 2)); }

template <class T, class Position>
void merge_by_text(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                   const SortForm& form) {
  using Key = KeyOf<T>;
  constexpr jit::NumberKind kKind = kKindOf<T>;
  SortPlan plan = plan_sort(x, axis, is_descending, out, form);
  jit::SortLines& a = plan.arguments;
  std::vector<uint64_t> memory[2];
  for (auto& each : memory) each.resize(static_cast<size_t>(plan.run_bytes / 8 + 1));
  a.to = runs_in(form, x.size(), memory[0].data());
  a.from = runs_in(form, x.size(), memory[1].data());
  test::run_together(few(plan.blocks), jit::kSortThreads,
                     [&] { jit::sort_tiles<Key, kKind, Position>(a); });
  for (a.run = jit::kSortTile; a.run < a.order.lines.length; a.run *= 2) {
    std::swap(a.from, a.to);
    test::run_together(few(plan.merge_blocks), jit::kSortThreads,
                       [&] { jit::merge_runs<Key, kKind, Position>(a); });
  }
}

template <class T, class Position>
void digits_by_text(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                    const SortForm& form) {
  using Key = KeyOf<T>;
  constexpr jit::NumberKind kKind = kKindOf<T>;
  DigitSortPlan plan = plan_digit_sort(x, axis, is_descending, out, form);
  EXPECT_EQ(plan.blocks % plan.arguments.order.lines.count, 0);
  std::vector<uint64_t> zeros(static_cast<size_t>(plan.zero_bytes / 8 + 1)), memory[2];
  for (auto& each : memory) each.resize(static_cast<size_t>(plan.run_bytes / 8 + 1));
  plan.set_scratch(zeros.data(), memory[0].data(), memory[1].data());
  jit::DigitSort& a = plan.arguments;
  test::run_together(few(plan.count_blocks), jit::kSortThreads,
                     [&] { jit::count_digits<Key, kKind, Position>(a); });
  for (a.digit = 0; a.digit < plan.digits; ++a.digit) {
    test::run_together(few(plan.blocks), jit::kSortThreads,
                       [&] { jit::sort_by_digit<Key, kKind, Position>(a); });
  }
}

enum class Way { kMerging, kDigits };

void sort_by_text(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                  bool gives_positions, bool is_wide, Way way = Way::kMerging) {
  const SortForm form{x.dtype(), gives_positions, is_wide};
  visit_dtype(RealTypes{}, x.dtype(), "test", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&]<class Position>(TypeTag<Position>) {
      (way == Way::kMerging ? merge_by_text<T, Position>
                            : digits_by_text<T, Position>)(x, axis, is_descending, out, form);
    };
    if (!gives_positions) return run(TypeTag<jit::NoPosition>{});
    is_wide ? run(TypeTag<uint64_t>{}) : run(TypeTag<uint32_t>{});
  });
}

/// Few different sortable_values, so that many are equal; for floats both zeros, infinities and NaN
/// too.
Tensor sortable_values(const Shape& shape, DType dtype, int seed, int different = 40) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const Tensor x = empty(shape, is_floating(dtype) ? DType::kFloat64 : DType::kInt64);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int drawn = static_cast<int>(random() % static_cast<unsigned>(different)) - different / 2;
    if (!is_floating(dtype)) {
      x.data<int64_t>()[i] = drawn;
    } else {
      const double special[] = {HUGE_VAL, -HUGE_VAL, NAN, -0.0, 0.0};
      const bool is_special = random() % 10 == 0;
      x.data<double>()[i] = is_special ? special[random() % 5] : drawn * 0.5;
    }
  }
  return cast(x, dtype);
}

void expect_sorted_as_cpu(const Tensor& x, int axis, const std::string& what,
                          bool is_wide = false) {
  for (const bool is_descending : {false, true}) {
    const std::string all = cat(x.dtype(), ' ', x.shape(), " along ", axis,
                                is_descending ? " falling " : " rising ", what);
    const Tensor sorted = full(x.shape(), 1, x.dtype());
    sort_by_text(x, axis, is_descending, sorted, false, false);
    EXPECT_TRUE(same_bits(sorted, sort(x, axis, is_descending))) << "sort " << all;
    const Tensor order = full(x.shape(), -7, DType::kInt64);
    sort_by_text(x, axis, is_descending, order, true, is_wide);
    EXPECT_TRUE(same_bits(order, argsort(x, axis, is_descending))) << "argsort " << all;
  }
}

constexpr DType kSortDTypes[] = {DType::kBool,   DType::kInt8,    DType::kInt16,    DType::kInt32,
                                 DType::kInt64,  DType::kUInt8,   DType::kUInt16,   DType::kUInt32,
                                 DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                 DType::kFloat64};

TEST(SortText, EveryDtype) {
  for (const DType dtype : kSortDTypes)
    expect_sorted_as_cpu(sortable_values({3, 77}, dtype, 1), 1, "few sortable_values");
  expect_sorted_as_cpu(sortable_values({4099}, DType::kFloat64, 2), 0, "two tiles", true);
  expect_sorted_as_cpu(sortable_values({4099}, DType::kUInt8, 2), 0, "two tiles");
}

TEST(SortText, LinesOfEveryLength) {
  for (const int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 6151}) {
    expect_sorted_as_cpu(sortable_values({3, n}, DType::kFloat32, 3, 1 << 20), 1, "rows");
  }
}

TEST(SortText, AlreadySortedAndAllEqual) {
  const Tensor rising = arange(0, 5000, 1, DType::kInt32);
  for (const Tensor& x : {rising, flip(rising), zeros({5000}, DType::kInt32)}) {
    expect_sorted_as_cpu(x, 0, "special order");
  }
}

TEST(SortText, ViewsAndOutputs) {
  const Tensor x = sortable_values({7, 20, 45}, DType::kFloat32, 4);
  const int64_t order[] = {2, 0, 1};
  for (const Tensor& view : {slice(x, 2, 0, 45, 2), flip(x), permute(x, order),
                             broadcast_to(slice(x, 1, 0, 1), x.shape())}) {
    for (const int axis : {0, 1, 2}) expect_sorted_as_cpu(view, axis, "of a view");
  }
  const Tensor whole = full({3, 45}, 9), wanted = clone(whole);
  const Tensor line = reshape(slice(slice(x, 0, 0, 1), 1, 2, 3), {45});
  const Tensor out = flip(reshape(slice(whole, 0, 1, 2), {45}));
  const Tensor there = flip(reshape(slice(wanted, 0, 1, 2), {45}));
  sort_by_text(line, 0, false, out, false, false);
  sort(line, 0, false, &there);
  EXPECT_TRUE(same_bits(whole, wanted));
}

TEST(SortText, LongLinesByDigits) {
  const auto check = [](const Tensor& x, int axis, const char* what, bool is_wide = false) {
    for (const bool is_descending : {false, true}) {
      const Tensor sorted = full(x.shape(), 1, x.dtype());
      const Tensor order = full(x.shape(), -7, DType::kInt64);
      if (is_descending) {
        sort_by_text(x, axis, true, sorted, false, false, Way::kDigits);
        EXPECT_TRUE(same_bits(sorted, sort(x, axis, true))) << "sort " << what;
      } else {
        sort_by_text(x, axis, false, order, true, is_wide, Way::kDigits);
        EXPECT_TRUE(same_bits(order, argsort(x, axis, false))) << "argsort " << what;
      }
    }
  };
  check(sortable_values({4099}, DType::kUInt8, 6), 0, "two tiles of bytes");
  check(sortable_values({2, 2050}, DType::kFloat16, 7), 1, "two lines with NaN and both zeros");
  check(flip(sortable_values({2100, 3}, DType::kInt32, 8, 2000)), 0, "columns backwards", true);
  check(full({4500}, 3, DType::kInt64), 0, "equal elements");
  for (const int64_t n : {1, 2047, 2048, 2049, 4096, 4097, 20000}) {
    check(sortable_values({n}, DType::kFloat32, 9, 1 << 20), 0, "of every length");
  }
}

TEST(SortText, TheWayWithFewerPassesIsTaken) {
  // A pass that counts and two accesses a digit, beside two for tiles and for each doubling.
  EXPECT_EQ(accesses_by_digits(DType::kInt8), 3);
  EXPECT_EQ(accesses_by_digits(DType::kFloat64), 17);
  EXPECT_EQ(accesses_by_merging(2048), 2);
  EXPECT_EQ(accesses_by_merging(2049), 4);
  EXPECT_EQ(accesses_by_merging(4096), 4);
  EXPECT_EQ(accesses_by_merging(4097), 6);
  EXPECT_EQ(accesses_by_merging(int64_t{1} << 30), 40);
}

TEST(SortText, RunsOfEqualElementsAreMarked) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat64}) {
    const Tensor x = sortable_values({3001}, dtype, 5), order = argsort(x);
    const Tensor given = empty({3001}, DType::kBool), wanted = empty({3001}, DType::kBool);
    mark_runs_cpu(x, order, wanted);
    const jit::RunStarts a{x.data(), order.data<int64_t>(), given.data<bool>(), x.size(),
                           infinity_of(dtype)};
    visit_dtype(RealTypes{}, dtype, "test", [&](auto tag) {
      using T = typename decltype(tag)::type;
      test::run_threads(3, jit::kSortThreads, [&] { jit::mark_runs<KeyOf<T>, kKindOf<T>>(a); });
    });
    EXPECT_TRUE(same_bits(given, wanted)) << dtype;
  }
}

TEST(SortText, PlacesAmongSortedElements) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUInt64, DType::kFloat16, DType::kFloat64}) {
    const Tensor sorted = sort(sortable_values({3001}, dtype, 5));
    const Tensor values = sortable_values({1001}, dtype, 6);
    for (const bool is_right : {false, true}) {
      const Tensor given = empty({1001}, DType::kInt64), wanted = empty({1001}, DType::kInt64);
      search_sorted_cpu(sorted, values, is_right, wanted);
      const jit::SortedSearch a = search_arguments(sorted, values, is_right, given);
      visit_dtype(RealTypes{}, dtype, "test", [&](auto tag) {
        using T = typename decltype(tag)::type;
        test::run_threads(3, jit::kSearchThreads,
                          [&] { jit::search_sorted<KeyOf<T>, kKindOf<T>>(a); });
      });
      EXPECT_TRUE(same_bits(given, wanted)) << dtype << is_right;
    }
  }
}

}  // namespace
}  // namespace cuop::kernels
