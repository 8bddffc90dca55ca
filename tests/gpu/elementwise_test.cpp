// Every elementwise operation in every dtype on a GPU beside the CPU, whose answers are the oracle.
#include "cuop/ops/elementwise/elementwise.h"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/jit/fusion.h"
#include "cuop/jit/op_table.h"
#include "cuop/jit/run.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using test::expect_same;
using test::random_tensor;

class GpuElementwise : public GpuTest {};

/// How far the last bits may be apart: not at all for what IEEE or integers define.
double allowed_ulps(const jit::OpInfo& op, DType dtype) {
  const bool is_defined = op.cost <= 1 || (op.rule != jit::Rule::kInexact && is_integer(dtype));
  if (op.rule == jit::Rule::kBool || (is_defined && !is_complex(dtype))) return 0.0;
  // Powers of complex numbers multiply the error of the logarithm; logaddexp may be a small
  // difference of large terms.
  const std::string_view name = op.name;
  return name == "logaddexp" || (name == "pow" && is_complex(dtype)) ? 1024.0 : 16.0;
}

TEST_F(GpuElementwise, EveryOperationInEveryDtype) {
  for (const jit::OpInfo& op : jit::op_table()) {
    for (const DType dtype : jit::argument_dtypes(op)) {
      std::vector<Tensor> host, device;
      std::vector<Operand> on_host, on_device;
      for (int i = 0; i < op.arity; ++i) {
        const bool is_condition = op.rule == jit::Rule::kSelect && i == 0;
        host.push_back(random_tensor({3, 331}, is_condition ? DType::kBool : dtype, 10 * i + 1));
        device.push_back(to_device(host.back(), kGpu));
      }
      for (int i = 0; i < op.arity; ++i) {
        on_host.emplace_back(host[static_cast<size_t>(i)]);
        on_device.emplace_back(device[static_cast<size_t>(i)]);
      }
      std::vector<const Operand*> hosts, devices;
      for (int i = 0; i < op.arity; ++i) {
        hosts.push_back(&on_host[static_cast<size_t>(i)]);
        devices.push_back(&on_device[static_cast<size_t>(i)]);
      }
      const Tensor wanted = elementwise(op.name, hosts), given = elementwise(op.name, devices);
      expect_same(given, wanted, allowed_ulps(op, dtype), cat(op.name, " of ", dtype));
    }
  }
}

TEST_F(GpuElementwise, EveryWayThroughMemory) {
  const Tensor a = random_tensor({5, 24, 32}, DType::kFloat32, 1);
  const Tensor b = random_tensor({24, 32}, DType::kFloat32, 2);
  const Tensor row = random_tensor({32}, DType::kFloat32, 3);
  const Tensor column = random_tensor({24, 1}, DType::kFloat32, 4);
  const Tensor one = random_tensor({}, DType::kFloat32, 5);
  const Tensor wide = random_tensor({32, 24, 5}, DType::kFloat32, 6);
  const auto on_gpu = [](const Tensor& t) { return to_device(t, kGpu); };
  const auto check = [&](const char* what, auto&& compute) {
    expect_same(compute(on_gpu), compute([](const Tensor& t) { return t; }), 0.0, what);
  };
  check("contiguous", [&](auto to) { return add(to(a), to(a)); });
  check("broadcast matrix", [&](auto to) { return multiply(to(a), to(b)); });
  check("broadcast row", [&](auto to) { return multiply(to(a), to(row)); });
  check("broadcast column", [&](auto to) { return multiply(to(a), to(column)); });
  check("broadcast scalar", [&](auto to) { return multiply(to(a), to(one)); });
  check("outer", [&](auto to) { return add(to(column), to(row)); });
  check("number", [&](auto to) { return multiply(to(a), 2.5); });
  const int64_t reversed[] = {2, 1, 0};
  check("transposed", [&](auto to) { return add(to(a), permute(to(wide), reversed)); });
  check("both transposed", [&](auto to) {
    const Tensor w = permute(to(wide), reversed);
    return add(w, w);
  });
  for (const int64_t start : {0, 1, 2, 3}) {
    check("misaligned", [&](auto to) {
      const Tensor flat = reshape(to(a), {5 * 24 * 32});
      return add(slice(flat, 0, start, 1001 + start), slice(flat, 0, 0, 1001));
    });
  }
  check("steps", [&](auto to) {
    const Tensor flat = reshape(to(a), {5 * 24 * 32});
    return add(slice(flat, 0, 0, 3000, 3), slice(flat, 0, 999, std::nullopt, -1));
  });
  for (const int64_t n : {1, 2, 3, 5, 17, 255, 257, 1031, 65537}) {
    check("lengths", [&](auto to) {
      const Tensor x = to(random_tensor({n}, DType::kFloat16, 7));
      return add(x, x);
    });
  }
  EXPECT_EQ(add(on_gpu(zeros({0, 3})), 1).size(), 0);
}

TEST_F(GpuElementwise, WritesNothingAroundAnOutput) {
  const Tensor whole = full({64, 96}, 7, DType::kFloat32, kGpu);
  const Tensor middle = slice(slice(whole, 0, 3, 60), 1, 5, 90);
  const Tensor x = to_device(random_tensor({57, 85}, DType::kFloat32, 1), kGpu);
  add(x, 1, &middle);
  const Tensor expected = full({64, 96}, 7);
  const Tensor expected_middle = slice(slice(expected, 0, 3, 60), 1, 5, 90);
  add(to_device(x, kCpu), 1, &expected_middle);
  expect_same(whole, expected, 0.0, "guard zone");
  // Every second element, of numbers of elements that no width divides.
  for (const int64_t count : {85, 1031}) {
    const Tensor line = full({2 * count + 8}, 7, DType::kFloat32, kGpu);
    const Tensor line_expected = full({2 * count + 8}, 7);
    const Tensor odd = slice(line, 0, 1, 2 * count, 2);
    const Tensor odd_expected = slice(line_expected, 0, 1, 2 * count, 2);
    const Tensor values = random_tensor({count}, DType::kFloat32, 3);
    add(to_device(values, kGpu), 1, &odd);
    add(values, 1, &odd_expected);
    expect_same(line, line_expected, 0.0, "every second element");
  }
  const Tensor y = to_device(random_tensor({1031}, DType::kFloat32, 2), kGpu);
  const Tensor before = to_device(y, kCpu);
  multiply(y, 3, &y);
  expect_same(y, multiply(before, 3), 0.0, "in place");
}

TEST_F(GpuElementwise, Conversions) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto source = static_cast<DType>(from), target = static_cast<DType>(to);
      if (is_complex(source) && !is_complex(target) && !is_bool(target)) continue;  // refused
      const Tensor host = random_tensor({7, 143}, source, 9);
      expect_same(cast(to_device(host, kGpu), target), cast(host, target), 0.0,
                  cat(source, " to ", target));
    }
  }
  // Beside the middle between neighbours, where one rounding more would show.
  const Tensor near = add(full({64}, 1.0 + 0x1p-11 + 0x1p-8, DType::kFloat64),
                          multiply(arange(-32, 32, 1, DType::kFloat64), 0x1p-45));
  for (const DType narrow : {DType::kFloat16, DType::kBFloat16}) {
    expect_same(cast(to_device(near, kGpu), narrow), cast(near, narrow), 0.0, cat("to ", narrow));
  }
  const Tensor host = random_tensor({33, 65, 3}, DType::kInt16, 3);
  const int64_t order[] = {1, 2, 0};
  expect_same(clone(permute(to_device(host, kGpu), order)), clone(permute(host, order)), 0.0,
              "transposed copy");
}

TEST_F(GpuElementwise, FusedIsWhatTheStepsAre) {
  const Tensor x = random_tensor({61, 128}, DType::kFloat32, 1);
  const Tensor y = random_tensor({128}, DType::kFloat32, 2);
  const auto chain = [](const Tensor& a, const Tensor& b) {
    const Tensor t = multiply(add(a, b), 0.5);
    return std::vector<Tensor>{t, exp(t), sum(square(t), {1}), max(t, {1}),
                               cast(t, DType::kFloat16)};
  };
  const Tensor gx = to_device(x, kGpu), gy = to_device(y, kGpu);
  const std::vector<Tensor> steps = chain(gx, gy);
  std::vector<Tensor> fused;
  {
    Fused scope;
    fused = chain(gx, gy);
    scope.close();
  }
  const std::vector<Tensor> oracle = chain(x, y);
  for (size_t i = 0; i < fused.size(); ++i) {
    expect_same(fused[i], to_device(steps[i], kCpu), 0.0, cat("step ", i));
    expect_same(fused[i], oracle[i], 8.0, cat("oracle ", i));
  }
}

TEST_F(GpuElementwise, StepsAnswerWhileTheFusedKernelIsCompiled) {
  const auto before = jit::compile_settings();
  auto settings = before;
  settings.is_caching = false;  // so that the fused kernel is on no disk
  jit::set_compile_settings(settings);
  const Tensor x = random_tensor({37, 128}, DType::kFloat32, 1);
  const Tensor y = random_tensor({128}, DType::kFloat32, 2), gx = to_device(x, kGpu),
               gy = to_device(y, kGpu);
  const auto chain = [](const Tensor& a, const Tensor& b) {
    Fused scope;
    const Tensor t = maximum(multiply(add(a, b), 0.25), b);
    const Tensor result = subtract(square(t), b);
    scope.close();
    return result;
  };
  set_kernel_fusion(false);  // loads the kernels of the steps
  const Tensor steps = to_device(chain(gx, gy), kCpu);
  set_kernel_fusion(true);
  const int64_t loaded = jit::loaded_kernel_count();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    expect_same(chain(gx, gy), steps, 0.0, "while it is compiled, and then");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (jit::loaded_kernel_count() == loaded && std::chrono::steady_clock::now() < limit);
  EXPECT_EQ(jit::loaded_kernel_count(), loaded + 1) << "the fused kernel never took over";
  jit::set_compile_settings(before);
}

TEST_F(GpuElementwise, ManyOutputsAndInputs) {
  std::vector<Tensor> host, device;
  for (int i = 0; i < 14; ++i) {
    host.push_back(random_tensor({501}, DType::kFloat32, 100 + i));
    device.push_back(to_device(host.back(), kGpu));
  }
  const auto all = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    Fused scope;
    Tensor running = in[0];
    for (int round = 0; round < 3; ++round) {
      for (const Tensor& x : in) out.push_back(running = maximum(subtract(running, x), 0));
    }
    scope.close();
    return out;
  };
  const std::vector<Tensor> wanted = all(host), given = all(device);
  for (size_t i = 0; i < wanted.size(); ++i) expect_same(given[i], wanted[i], 0.0, cat(i));
}

TEST_F(GpuElementwise, WhatIsExplainedIsWhatIsLaunched) {
  const Tensor host = random_tensor({1000}, DType::kFloat32, 7), x = to_device(host, kGpu);
  std::vector<Tensor> held;
  const auto groups = explain([&] {
    for (int i = 0; i < 20; ++i) held.push_back(multiply(x, i));
  });
  ASSERT_EQ(groups.size(), 2U);  // as one launch writes 16
  EXPECT_EQ(groups[0].outputs, 16);
  EXPECT_EQ(groups[0].reason, "the limit of 16 values of a GPU's group that are held was reached");
  EXPECT_EQ(groups[1].outputs, 4);
  EXPECT_EQ(groups[0].fused_bytes + groups[1].fused_bytes, 22 * 4000);
  for (int i = 0; i < 20; ++i) {
    expect_same(held[static_cast<size_t>(i)], multiply(host, i), 0.0, cat(i));
  }
}

/// Without recording there is no such limit: the rest of the outputs is another launch.
TEST_F(GpuElementwise, AnExpressionMayHaveMoreOutputsThanALaunch) {
  const Tensor host = random_tensor({333}, DType::kFloat32, 9), x = to_device(host, kGpu);
  jit::Expr expr;
  const int leaf = expr.add_leaf(DType::kFloat32);
  std::vector<Tensor> outputs;
  std::vector<const Tensor*> written;
  for (int i = 0, value = leaf; i < jit::kMaxGpuOutputs + 3; ++i) {
    value = expr.add_op(jit::find_op("add"), {DType::kFloat32, DType::kFloat32},
                        std::array{value, leaf});
    expr.add_output(value);
    outputs.push_back(empty(x.shape(), x.dtype(), kGpu));
  }
  for (const Tensor& output : outputs) written.push_back(&output);
  const Tensor* const leaves[] = {&x};
  jit::run(expr, {x.shape(), 0, leaves, {}, written});
  Tensor expected = host;
  for (const Tensor& output : outputs) {
    expected = add(expected, host);
    expect_same(output, expected, 0.0, "sum");
  }
}

/// A conversion that does not fit any more ends the group as other operations do.
TEST_F(GpuElementwise, ConversionsAreCutAtTheSameLimit) {
  const Tensor host = random_tensor({100}, DType::kFloat32, 8), x = to_device(host, kGpu);
  std::vector<Tensor> held;
  Tensor converted;
  const auto groups = explain([&] {
    for (int i = 0; i < 16; ++i) held.push_back(multiply(x, i));
    converted = cast(held.back(), DType::kFloat64);
  });
  ASSERT_EQ(groups.size(), 2U);  // the conversion begins another
  EXPECT_EQ(groups[0].reason, "the limit of 16 values of a GPU's group that are held was reached");
  expect_same(converted, cast(multiply(host, 15), DType::kFloat64), 0.0, "cast");
}

}  // namespace
}  // namespace cuop
