// The text of the GPU's index and random kernels, run on the host beside the CPU's kernels.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/random/random.h"
#include "cuop/ops/random/random_kernels.h"
#include "tests/jit/host_text.h"
#include "tests/values.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/index/index.cuh"
#include "cuop/ops/random/random.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

using test::run_threads;
using test::run_together;
using test::same_bits;

// --- copies by offsets ---------------------------------------------------------------------------

template <class Word, int Width, int Axes>
void run_form(const ListedCopyPlan& plan) {
  run_threads(2, 32, [&] {
    const jit::ListedCopy& a = plan.arguments;
    if (plan.form.is_gather) {
      jit::listed_copy<Word, Width, Axes, true, uint32_t>(a);
    } else {
      jit::listed_copy<Word, Width, Axes, false, uint64_t>(a);
    }
  });
}

template <class Word, int Width>
void run_width(const ListedCopyPlan& plan) {
  switch (plan.form.axes) {
    case 0:
      return run_form<Word, Width, 0>(plan);
    case 1:
      return run_form<Word, Width, 1>(plan);
    case 2:
      return run_form<Word, Width, 2>(plan);
    case 3:
      return run_form<Word, Width, 3>(plan);
    default:
      return run_form<Word, Width, 4>(plan);
  }
}

void run_copy(const OffsetCopy& copy, bool is_gather) {
  const ListedCopyPlan plan = plan_listed_copy(copy, is_gather);
  ASSERT_EQ(plan.form.itemsize, 4);
  switch (plan.form.width) {
    case 1:
      return run_width<uint32_t, 1>(plan);
    case 2:
      return run_width<uint32_t, 2>(plan);
    default:
      return run_width<uint32_t, 4>(plan);
  }
}

/// A table of `count` rows of the last axes of x, taken along its first axis.
OffsetCopy rows_of(const Tensor& x, const Tensor& table, const Tensor& dense) {
  OffsetCopy copy;
  copy.dense = dense.data();
  copy.sparse = x.data();
  copy.itemsize = 4;
  copy.offsets = table.data<int64_t>();
  copy.count = table.size();
  copy.dense_stride = dense.strides()[0];
  for (int i = 1; i < x.ndim(); ++i) {
    copy.rest.push_back(x.shape(i));
    copy.sparse_rest.push_back(x.strides()[i]);
    copy.dense_rest.push_back(dense.strides()[i]);
  }
  return copy;
}

/// Views whose first axis has 7 places, in buffers of 4000 numbers.
std::vector<Tensor> views() {
  const Tensor x = arange(0, 4000, 1, DType::kFloat32);
  const auto part = [&](Shape shape, Strides strides, int64_t offset) {
    return x.with_layout({std::move(shape), std::move(strides), offset});
  };
  return {part({7}, {3}, 5),
          part({7, 16}, {16, 1}, 0),
          part({7, 16}, {17, 1}, 0),
          part({7, 6}, {8, 1}, 2),
          part({7, 5}, {-16, 2}, 600),
          part({7, 1, 12}, {24, 5, 1}, 4),
          part({7, 3, 5, 4}, {100, 4, 20, 1}, 0),
          part({7, 2, 3, 2, 3}, {400, 1, 100, 50, 7}, 0),
          part({7, 2, 3, 2, 3, 2}, {400, 1, 100, 50, 7, 3}, 0)};
}

TEST(KernelText, CopiesByOffsetsAsTheCpu) {
  std::mt19937 random(1);
  for (const Tensor& x : views()) {
    for (const int64_t count : {1, 2, 13}) {
      const Tensor table = empty({count}, DType::kInt64);
      for (int64_t i = 0; i < count; ++i) {
        table.data<int64_t>()[i] = static_cast<int64_t>(random() % 7) * x.strides()[0];
      }
      Shape shape = x.shape();
      shape[0] = count;
      const std::string what = cat(x.shape(), " strides ", x.strides(), ", ", count, " rows");
      for (const int64_t start : {0, 1, 2}) {  // the dense side aligned or not
        const Tensor given = full({4000}, -1), wanted = full({4000}, -1);
        Layout inside = contiguous_layout(shape);
        inside.offset = start;
        run_copy(rows_of(x, table, given.with_layout(inside)), true);
        gather_offsets_cpu(rows_of(x, table, wanted.with_layout(inside)));
        EXPECT_TRUE(same_bits(given, wanted)) << "gather " << what << " from " << start;
      }
    }
  }
}

/// The same offsets with all but the last of equal ones dropped, by the kernels' hash table.
Tensor kept_offsets(const Tensor& table, int bits) {
  const auto places = int64_t{1} << bits;
  std::vector<int64_t> keys(static_cast<size_t>(places)), last(static_cast<size_t>(places));
  for (auto* each : {&keys, &last}) {
    std::memset(each->data(), jit::kNoOffsetByte, static_cast<size_t>(8 * places));
  }
  const Tensor kept = empty(table.shape(), DType::kInt64);
  const jit::RepeatedOffsets a{table.data<int64_t>(), kept.data<int64_t>(), table.size(), bits,
                               keys.data(),           last.data()};
  run_threads(3, 32, [&] { jit::enter_offsets(a); });
  run_threads(3, 32, [&] { jit::keep_last_offsets(a); });
  return kept;
}

TEST(KernelText, OnlyTheLastOfEqualOffsetsIsWritten) {
  std::mt19937 random(2);
  for (const Tensor& x : views()) {
    const Tensor table = empty({29}, DType::kInt64);
    for (int64_t i = 0; i < 29; ++i) {
      table.data<int64_t>()[i] = static_cast<int64_t>(random() % 7) * x.strides()[0];
    }
    Shape shape = x.shape();
    shape[0] = 29;
    const int64_t size = element_count(shape);
    const Tensor values = reshape(arange(10000, 10000 + size, 1, DType::kFloat32), shape);
    const Tensor row = broadcast_to(slice(values, 0, 3, 4), shape);
    const Tensor one = broadcast_to(full({}, 5), shape);
    for (const Tensor& dense : {values, row, one}) {
      const Tensor given = arange(0, 4000, 1, DType::kFloat32), wanted = clone(given);
      OffsetCopy copy = rows_of(given.with_layout(x.layout()), table, dense);
      const Tensor kept = kept_offsets(table, 6);
      copy.offsets = kept.data<int64_t>();
      run_copy(copy, false);
      scatter_offsets_cpu(rows_of(wanted.with_layout(x.layout()), table, dense), false);
      EXPECT_TRUE(same_bits(given, wanted)) << "scatter " << x.shape() << " of " << dense.strides();
    }
  }
}

TEST(KernelText, KeepsTheLastOfEqualOffsets) {
  std::mt19937_64 random(3);
  for (const int64_t spread : {1, 10, 1000, 1000000}) {
    const Tensor table = empty({500}, DType::kInt64);
    std::map<int64_t, int64_t> last;
    for (int64_t i = 0; i < 500; ++i) {
      const auto offset =
          static_cast<int64_t>(random() % static_cast<uint64_t>(2 * spread)) - spread;
      table.data<int64_t>()[i] = offset;
      last[offset] = i;
    }
    const Tensor kept = kept_offsets(table, 10);
    for (int64_t i = 0; i < 500; ++i) {
      const int64_t offset = table.data<int64_t>()[i];
      EXPECT_EQ(kept.data<int64_t>()[i], last[offset] == i ? offset : jit::kNoOffset) << i;
    }
  }
}

// --- tables of offsets ---------------------------------------------------------------------------

TEST(KernelText, IndicesBecomeOffsetsAndTheFirstWrongOneIsFound) {
  const Tensor indices = from_values<int64_t>({6}, {0, -1, 9, -10, 3, 5});
  const auto run = [&](int64_t* offsets) {
    uint64_t bad = ~uint64_t{0};
    const jit::IndexList a{indices.data<int64_t>(), offsets, &bad, 6, 10, -3};
    run_threads(2, 2, [&] { jit::list_indices(a); });
    return static_cast<int64_t>(bad);
  };
  std::vector<int64_t> given(6), wanted(6);
  EXPECT_EQ(run(given.data()), index_offsets_cpu(indices, 10, -3, wanted.data()));
  EXPECT_EQ(given, wanted);
  indices.data<int64_t>()[4] = 10;
  indices.data<int64_t>()[3] = -11;
  EXPECT_EQ(run(given.data()), 3);
}

TEST(KernelText, MasksAreCountedAndListedAsOnTheCpu) {
  std::mt19937 random(4);
  struct Case {
    Shape shape;
    Strides strides;
    int64_t start, steps;  // of a tile
  };
  const Case cases[] = {{{1}, {5}, 0, 1},           {{17}, {2}, 0, 1},
                        {{4096}, {1}, 0, 1},        {{9001}, {-3}, 0, 1},
                        {{9001}, {1}, 3, 1},        {{20000}, {1}, 0, 2},
                        {{33, 129}, {1, 50}, 0, 1}, {{5, 7, 401}, {3, 9000, 20}, 1, 2}};
  for (const Case& c : cases) {
    const int64_t size = element_count(c.shape);
    const Tensor whole = empty({size + 16}, DType::kBool);
    for (int64_t i = 0; i < whole.size(); ++i) whole.data<bool>()[i] = random() % 3 == 0;
    Layout layout = contiguous_layout(c.shape);
    layout.offset = c.start;
    const Tensor mask = whole.with_layout(layout);
    jit::MaskTiles a{};
    a.mask = static_cast<const uint8_t*>(mask.data());
    a.count = size;
    a.tile = c.steps * jit::kMaskStep;
    a.tiles = (size + a.tile - 1) / a.tile;
    std::vector<uint64_t> in_tile(static_cast<size_t>(a.tiles));
    uint64_t total = 0;
    a.in_tile = in_tile.data();
    a.total = &total;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(a.tiles, 2));
    run_together(blocks, jit::kIndexThreads, [&] { jit::count_mask(a); });
    ASSERT_EQ(static_cast<int64_t>(total), count_true_cpu(mask)) << c.shape;
    EXPECT_EQ(std::accumulate(in_tile.begin(), in_tile.end(), uint64_t{0}), total);
    std::vector<int64_t> given(total + 1, -7), wanted(total + 1, -7);
    a.offsets = given.data();
    a.axes = c.shape.ndim();
    std::copy(c.shape.begin(), c.shape.end(), a.sizes);
    std::copy(c.strides.begin(), c.strides.end(), a.strides);
    run_together(blocks, jit::kIndexThreads, [&] { jit::list_mask<uint32_t>(a); });
    mask_offsets_cpu(mask, c.strides, wanted.data());
    EXPECT_EQ(given, wanted) << c.shape;
  }
}

// --- random numbers ------------------------------------------------------------------------------

template <class T, jit::DrawKind Kind>
void expect_cpu_draws(const Draw& draw, DType dtype) {
  for (const int64_t size : {1, 2, 3, 4, 5, 1021}) {
    for (const int64_t start : {0, 1}) {
      const Tensor given = zeros({size + 4}, dtype), wanted = zeros({size + 4}, dtype);
      const Generator::Ticket ticket{123456789012345u, (uint64_t{1} << 32) - 100};
      const Tensor inside = slice(wanted, 0, start, start + size);
      random_fill_cpu(inside, draw, ticket);
      const jit::RandomFill a{given.data<T>() + start,
                              size,
                              ticket.seed,
                              ticket.counter,
                              draw.first,
                              draw.second,
                              draw.last,
                              draw.low,
                              draw.range};
      run_threads(2, 32, [&] { jit::random_fill<T, Kind>(a); });
      EXPECT_TRUE(same_bits(given, wanted)) << dtype << ' ' << size << " from " << start;
    }
  }
}

template <class T>
void expect_float_bits(DType dtype, double last) {
  expect_cpu_draws<T, jit::DrawKind::kNormal>({Distribution::kNormal, -3.1, 0.7}, dtype);
  expect_cpu_draws<T, jit::DrawKind::kUniform>({Distribution::kUniform, -0.0, 3.0, last}, dtype);
}

TEST(KernelText, RandomNumbersAreTheCpusBits) {
  expect_float_bits<Half>(DType::kFloat16, 0x1.7fcp1);
  expect_float_bits<BFloat16>(DType::kBFloat16, 0x1.7ep1);
  expect_float_bits<float>(DType::kFloat32, std::nextafter(3.0f, 0.0f));
  expect_float_bits<double>(DType::kFloat64, std::nextafter(3.0, 0.0));
  const Draw small{Distribution::kInteger, 0, 1, 0, -100, 200}, all{Distribution::kInteger};
  expect_cpu_draws<int8_t, jit::DrawKind::kInteger>(small, DType::kInt8);
  expect_cpu_draws<int32_t, jit::DrawKind::kInteger>(small, DType::kInt32);
  expect_cpu_draws<int64_t, jit::DrawKind::kInteger>(all, DType::kInt64);
}

}  // namespace
}  // namespace cuop::kernels
