// cuop-bench-conv: conv2d of cuOP beside oneDNN called directly, interleaved in one process. NCHW
// in, NCHW out, weights as the user has them. oneDNN is called in both ways a user would try: with
// the formats it prefers and reorders on each call, and with plain formats; the faster one is the
// peer. Prints JSON for `cuop bench`.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <dnnl.hpp>
#include <functional>
#include <iostream>
#include <random>
#include <unordered_map>
#include <vector>

#include "cuop/ops/conv/conv.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace {

using dnnl::memory;
using Dims = memory::dims;

struct Problem {
  const char* name;
  int64_t batch, in_channels, out_channels, size, kernel, padding;
};

constexpr Problem kProblems[] = {
    {"conv2d 8x64x56x56 3x3 to 64", 8, 64, 64, 56, 3, 1},
    {"conv2d 4x128x28x28 3x3 to 128", 4, 128, 128, 28, 3, 1},
    {"conv2d 8x256x28x28 1x1 to 64", 8, 256, 64, 28, 1, 0},
    {"conv2d 4x3x112x112 7x7 to 64", 4, 3, 64, 112, 7, 3},
};
/// Of the median of many short calls less is left to chance than of few.
constexpr double kSecondsEach = 2.0;
constexpr int kWarmUps = 3, kMinRounds = 45;
/// Untimed calls before each timed one: the threads of the contender before spin on for a while,
/// and those of this one must wake up, as in cuop.bench.measure.
constexpr double kSettleSeconds = 0.02;

/// oneDNN's convolution with or without freedom to choose formats.
class Direct {
 public:
  Direct(const Problem& p, float* src, float* weight, float* dst, bool is_free)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const Dims src_dims{p.batch, p.in_channels, p.size, p.size};
    const Dims weight_dims{p.out_channels, p.in_channels, p.kernel, p.kernel};
    const Dims dst_dims{p.batch, p.out_channels, p.size, p.size};
    const auto plain = [](const Dims& dims, memory::format_tag tag) {
      return memory::desc(dims, memory::data_type::f32, tag);
    };
    using Tag = memory::format_tag;
    const auto choose = [&](const Dims& dims, Tag tag) {
      return plain(dims, is_free ? Tag::any : tag);
    };
    const Dims strides{1, 1}, dilation{0, 0}, padding{p.padding, p.padding};
    using Convolution = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const Convolution::primitive_desc chosen(
        engine_, kind, algorithm, choose(src_dims, Tag::nchw), choose(weight_dims, Tag::oihw),
        choose(dst_dims, Tag::nchw), strides, dilation, padding, padding);
#else
    const Convolution::primitive_desc chosen(
        Convolution::desc(kind, algorithm, choose(src_dims, Tag::nchw),
                          choose(weight_dims, Tag::oihw), choose(dst_dims, Tag::nchw), strides,
                          dilation, padding, padding),
        engine_);
#endif
    convolution_ = Convolution(chosen);
    user_src_ = memory(plain(src_dims, Tag::nchw), engine_, src);
    user_weight_ = memory(plain(weight_dims, Tag::oihw), engine_, weight);
    user_dst_ = memory(plain(dst_dims, Tag::nchw), engine_, dst);
    src_ = memory_like(user_src_, chosen.src_desc());
    weight_ = memory_like(user_weight_, chosen.weights_desc());
    dst_ = memory_like(user_dst_, chosen.dst_desc());
  }

  void operator()() {
    move(user_src_, src_);
    move(user_weight_, weight_);
    convolution_.execute(stream_,
                         {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, weight_}, {DNNL_ARG_DST, dst_}});
    move(dst_, user_dst_);
    stream_.wait();
  }

 private:
  memory memory_like(const memory& user, const memory::desc& wanted) {
    return user.get_desc() == wanted ? user : memory(wanted, engine_);
  }
  void move(memory& from, memory& to) {
    if (from.get_desc() != to.get_desc()) dnnl::reorder(from, to).execute(stream_, from, to);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::convolution_forward convolution_;
  memory user_src_, user_weight_, user_dst_, src_, weight_, dst_;
};

template <class Call>
double seconds(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void print(const char* name, const std::vector<double>& values) {
  std::cout << ",\"" << name << "\":[";
  for (size_t i = 0; i < values.size(); ++i) std::cout << (i > 0 ? "," : "") << values[i];
  std::cout << "]";
}

void run(const Problem& p) {
  using cuop::Tensor;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto randomised = [&](const cuop::Shape& shape) {
    Tensor tensor = cuop::empty(shape);
    std::generate_n(tensor.data<float>(), tensor.size(), [&] { return normal(random); });
    return tensor;
  };
  const Tensor src = randomised({p.batch, p.in_channels, p.size, p.size});
  const Tensor weight = randomised({p.out_channels, p.in_channels, p.kernel, p.kernel});
  const Tensor dst = cuop::empty({p.batch, p.out_channels, p.size, p.size});
  cuop::ConvOptions options;
  options.padding = {p.padding, p.padding};
  Direct free(p, src.data<float>(), weight.data<float>(), dst.data<float>(), true);
  Direct plain(p, src.data<float>(), weight.data<float>(), dst.data<float>(), false);
  const auto own = [&] { cuop::conv2d(src, weight, nullptr, options, &dst); };
  // All read and write the same memory, so that none finds better pages.
  const std::array<std::function<void()>, 3> calls{own, free, plain};
  std::array<std::vector<double>, 3> times;
  std::array<size_t, 3> order{0, 1, 2};
  double spent = 0;
  for (int i = -kWarmUps; i < kMinRounds || spent < kSecondsEach; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t turn = 0; turn < calls.size(); ++turn) {
      const size_t which = order[turn];
      for (double settled = 0; settled < kSettleSeconds;) settled += seconds(calls[which]);
      const double time = seconds(calls[which]);
      spent += time;
      if (i >= 0) times[which].push_back(time);
    }
  }
  own();
  const Tensor wide = cuop::conv2d(cuop::cast(src, cuop::DType::kFloat64),
                                   cuop::cast(weight, cuop::DType::kFloat64), nullptr, options);
  double error = 0, scale = 0;
  for (int64_t i = 0; i < dst.size(); ++i) {
    error = std::max(error,
                     std::abs(wide.data<double>()[i] - static_cast<double>(dst.data<float>()[i])));
    scale = std::max(scale, std::abs(wide.data<double>()[i]));
  }
  const auto& own_times = times[0];
  const auto& direct = median(times[1]) < median(times[2]) ? times[1] : times[2];
  const double flops = 2.0 * static_cast<double>(dst.size() * p.in_channels * p.kernel * p.kernel);
  std::cout << "{\"name\":\"" << p.name << "\",\"cuop\":" << median(own_times)
            << ",\"onednn\":" << median(direct) << ",\"flops\":" << flops
            << ",\"error\":" << error / scale;
  print("cuop_samples", own_times);
  print("onednn_samples", direct);
  std::cout << "}";
}

}  // namespace

int main() {
  std::cout << "[";
  const char* between = "";
  for (const Problem& problem : kProblems) {
    std::cout << between;
    run(problem);
    between = ",\n";
  }
  std::cout << "]\n";
}
