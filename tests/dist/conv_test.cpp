#include "cuop/dist/algo/conv.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/overlap.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

struct ConvCase {
  Shape x, w;
  Dims stride, padding, dilation;
  int64_t groups = 1;
};

const ConvCase kConvCases[] = {
    {{3, 2, 9, 7}, {4, 2, 3, 3}, {}, {1}, {}},
    {{1, 1, 13, 5}, {2, 1, 5, 3}, {2, 1}, {2, 1}, {1, 2}},
    {{2, 4, 6, 6}, {6, 2, 1, 2}, {3}, {}, {}, 2},
    {{5, 3, 4, 4}, {3, 1, 3, 3}, {1}, {4, 0}, {1}, 3},  // whole rows of padding
    {{1, 4, 5, 5}, {10, 2, 2, 2}, {}, {}, {}, 2},       // ranks that hold parts of two groups
    {{2, 6, 3, 4}, {12, 1, 3, 3}, {}, {1}, {}, 6},
    {{1, 2, 11, 8}, {3, 2, 4, 4}, {2}, {3}, {2}},
    {{2, 1, 3, 3}, {1, 1, 3, 3}, {}, {}, {}},  // one output cell
};

TEST(DistConv2d, EqualsTheWholeConvolution) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      int tried = 0;
      for (const ConvCase& each : kConvCases) {
        const Tensor x = noise(each.x);
        const Tensor w = noise(each.w, DType::kFloat64, 2);
        const Tensor bias = noise({each.w[0]}, DType::kFloat64, 3);
        ConvOptions options;
        options.stride = each.stride;
        options.padding = each.padding;
        options.dilation = each.dilation;
        options.groups = each.groups;
        for (const Tensor& b : {Tensor(), bias}) {
          const Tensor expected = cuop::conv2d(x, w, b.is_defined() ? &b : nullptr, options);
          for (const char* strategy : {"", "root", "batch", "channel", "row", "column"}) {
            CallOptions call{.strategy = strategy};
            for (const bool hides : {false, true}) {
              if (tried++ % case_step() != 0) continue;
              if (hides) call.machine = hiding_moves();
              const Tensor y = conv_from_root(comm, on_root(comm, x), on_root(comm, w),
                                              on_root(comm, b), options, call);
              expect_rooted(comm, y, expected, 1e-12,
                            cat(each.x, " * ", each.w, ' ', strategy, hides ? " in chunks" : ""));
            }
          }
        }
      }
    });
  }
}

TEST(DistConv2d, IsMadeInChunksWhereMovesAreHidden) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor x = noise({13, 2, 6, 5}), w = noise({4, 2, 3, 3}, DType::kFloat64, 2);
    const Tensor y = conv_from_root(comm, on_root(comm, x), on_root(comm, w), {}, {},
                                    {.strategy = "batch", .machine = hiding_moves()});
    expect_rooted(comm, y, cuop::conv2d(x, w), 1e-12, "batch");
    EXPECT_GT(chunks_of(last_report().plan), 1);
    // Rows of the result share rows of the images: nothing is cut.
    conv_from_root(comm, on_root(comm, x), on_root(comm, w), {}, {},
                   {.strategy = "row", .machine = hiding_moves()});
    EXPECT_EQ(chunks_of(last_report().plan), 1);
  });
}

/// Chunks that cut a group would fetch its images again, over those which are being convolved.
TEST(DistConv2d, ChunksShareNoGroup) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    for (const auto& [outputs, chunks] : {std::pair{24, 2}, {6, 3}, {72, 4}}) {
      const int64_t groups = outputs == 72 ? 12 : 6;
      const Tensor x = noise({2, groups, 5, 4});
      const Tensor w = noise({outputs, 1, 3, 3}, DType::kFloat64, 2);
      const ConvOptions options{.groups = groups};
      for (const bool hides : {false, true}) {
        CallOptions call{.strategy = "channel"};
        if (hides) call.machine = hiding_moves();
        const int64_t before = comm->bytes_sent();
        const Tensor y =
            conv_from_root(comm, on_root(comm, x), on_root(comm, w), {}, options, call);
        int64_t sent = comm->bytes_sent() - before, all_sent = 0;
        comm->all_reduce(&sent, &all_sent, 1, DType::kInt64, ReduceKind::kSum);
        const Plan& plan = last_report().plan;
        expect_rooted(comm, y, cuop::conv2d(x, w, nullptr, options), 1e-12, cat(outputs));
        EXPECT_EQ(chunks_of(plan), hides ? chunks : 1) << outputs;
        // Chunks bring nothing twice; ranks agree by a few bytes.
        EXPECT_NEAR(static_cast<double>(all_sent), static_cast<double>(plan.bytes()), 1000)
            << plan.to_string();
      }
    }
  });
}

TEST(DistConv2d, SplitsOneDimensionalAndThreeDimensionalImages) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    for (const auto& [x_shape, w_shape] : {std::pair{Shape{2, 3, 11}, Shape{2, 3, 4}},
                                           {Shape{1, 2, 6, 5, 4}, Shape{2, 2, 3, 2, 3}}}) {
      const Tensor x = noise(x_shape);
      const Tensor w = noise(w_shape, DType::kFloat64, 2);
      ConvOptions options;
      options.padding = {1};
      const Tensor expected = x_shape.ndim() == 3 ? cuop::conv1d(x, w, nullptr, options)
                                                  : cuop::conv3d(x, w, nullptr, options);
      expect_rooted(comm,
                    conv_from_root(comm, on_root(comm, x), on_root(comm, w), {}, options,
                                   {.strategy = "row"}),
                    expected, 1e-12, cat(x_shape));
    }
  });
}

int pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// A convolution of `spatial` dimensions that is defined: sizes from 1 on, any stride, padding,
/// dilation and groups.
ConvCase random_case(std::mt19937& random, int spatial) {
  ConvCase result;
  result.groups = pick(random, 1, 3);
  const int64_t inputs = pick(random, 1, 3);
  result.x = {pick(random, 1, 5), inputs * result.groups};
  result.w = {result.groups * pick(random, 1, 4), inputs};
  for (int axis = 0; axis < spatial; ++axis) {
    const int64_t kernel = pick(random, 1, 4), dilation = pick(random, 1, 3);
    const int64_t padding = pick(random, 0, 3), reach = dilation * (kernel - 1) + 1;
    result.w.push_back(kernel);
    result.x.push_back(std::max<int64_t>(1, reach - 2 * padding) + pick(random, 0, 9));
    result.stride.push_back(pick(random, 1, 4));
    result.padding.push_back(padding);
    result.dilation.push_back(dilation);
  }
  return result;
}

TEST(DistConv, RandomConfigurationsEqualTheWholeConvolution) {
  using Function =
      Tensor (*)(const Tensor&, const Tensor&, const Tensor*, const ConvOptions&, const Tensor*);
  static constexpr Function kFunctions[] = {&cuop::conv1d, &cuop::conv2d, &cuop::conv3d};
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 random(static_cast<unsigned>(ranks));
      for (int i = 0; i < 75; i += case_step()) {
        const int spatial = 1 + i % 3;
        const ConvCase each = random_case(random, spatial);
        const DType dtype = i % 4 == 0 ? DType::kFloat32 : DType::kFloat64;
        const Tensor x = noise(each.x, dtype), w = noise(each.w, dtype, 2);
        const Tensor bias = noise({each.w[0]}, dtype, 3);
        ConvOptions options;
        options.stride = each.stride;
        options.padding = each.padding;
        options.dilation = each.dilation;
        options.groups = each.groups;
        options.activation = i % 5 == 0 ? ConvActivation::kRelu : ConvActivation::kNone;
        const Tensor expected = kFunctions[spatial - 1](x, w, &bias, options, nullptr);
        std::vector<std::string> strategies{"", "batch", "channel", "row"};
        if (spatial > 1) strategies.push_back("column");
        if (spatial > 2) strategies.push_back("plane");
        if (ranks == 4 || ranks == 6) strategies.push_back("grid");
        const auto chosen =
            static_cast<size_t>(pick(random, 0, static_cast<int>(strategies.size()) - 1));
        const std::string what = cat(ranks, " ranks ", strategies[chosen], ' ', each.x, " * ",
                                     each.w, " stride ", each.stride, " padding ", each.padding,
                                     " dilation ", each.dilation, " groups ", each.groups);
        const Tensor y =
            conv_from_root(comm, on_root(comm, x), on_root(comm, w), on_root(comm, bias), options,
                           {.strategy = strategies[chosen]});
        expect_rooted(comm, y, expected, dtype == DType::kFloat32 ? 2e-5 : 1e-12, what);
      }
    });
  }
}

TEST(DistConv2d, FetchesOnlyTheHaloOfShardedRows) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Tensor x = noise({1, 2, 16, 5});
    const Tensor w = noise({3, 2, 3, 3}, DType::kFloat64, 2);
    ConvOptions options;
    options.padding = {1};
    const Sharding rows(Mesh::line(4), split_dim(4, 2));
    const DistTensor y =
        conv(laid_out(comm, x, rows), laid_out(comm, w, Sharding::replicated(Mesh::line(4))),
             nullptr, options, {.strategy = "row"});
    EXPECT_EQ(last_report().plan.bytes(), 3 * 2 * (2 * 5) * 8);  // two rows across three borders
    expect_close(gather_all(y), cuop::conv2d(x, w, nullptr, options), 1e-12, "sharded rows");
  });
}

TEST(DistConv2d, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = on_root(comm, noise({1, 2, 4, 4}));
    const Tensor w = on_root(comm, noise({1, 2, 3, 3}));
    EXPECT_THAT(failure_of([&] { conv_from_root(comm, x, Tensor()); }),
                HasSubstr("weight was not given"));
    EXPECT_THAT(failure_of([&] { conv_from_root(comm, x, w, on_root(comm, noise({2}))); }),
                HasSubstr("bias has shape (2,)"));
    EXPECT_THAT(failure_of([&] {
                  conv_from_root(comm, x, on_root(comm, noise({1, 2, 3, 3}, DType::kFloat32)));
                }),
                HasSubstr("weight is float32"));
    EXPECT_THAT(failure_of([&] {
                  conv_from_root(comm, x, on_root(comm, noise({1, 3, 3, 3})));
                }),
                HasSubstr("conv2d"));
    EXPECT_FALSE(failure_of([&] { conv_from_root(comm, on_root(comm, noise({4})), w); }).empty());
    EXPECT_EQ(failure_of([&] { conv_from_root(comm, x, w); }), "");
  });
}

}  // namespace
}  // namespace cuop::dist
