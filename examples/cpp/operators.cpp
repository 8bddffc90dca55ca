// A small network of operator objects and the profile of its matrix product. Prints one line a
// step.
#include <cmath>
#include <iostream>

#include "cuop/cuop.h"

int main() {
  // [network]
  cuop::manual_seed(0);
  const cuop::Tensor images = cuop::random({8, 3, 32, 32});

  cuop::Convolution2D<float> conv(
      {.in_channels = 3, .out_channels = 16, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  conv.set_weight(cuop::random({16, 3, 3, 3}));
  const cuop::Tensor features = conv.forward(images, cuop::empty({8, 16, 32, 32}));
  cuop::Relu<float>().forward(features, features);  // in place

  const cuop::Tensor pooled =
      cuop::GlobalAveragePool2D<float>().forward(features, cuop::empty({8, 16}));

  cuop::Jit<cuop::Gemm<float>> classify;  // chooses among its kernels on the first call
  classify.set_weight(cuop::random({16, 10}));
  const cuop::Tensor scores = classify.forward(pooled, cuop::empty({8, 10}));
  cuop::Softmax<float>().forward(scores, scores);
  // [network]

  const cuop::Tensor sums = cuop::sum(scores, {1});
  for (int64_t i = 0; i < sums.size(); ++i) {
    if (std::abs(sums.data<float>()[i] - 1.0F) > 1e-5F) return 1;
  }
  const cuop::PerformanceProfile profile = classify.profile();
  std::cout << "8 rows of 10 probabilities, each adding up to 1\n"
            << "product by the kernel '" << profile.kernel_type << "': " << profile.kernel_time_ms
            << " ms\n";

  // [error]
  try {
    cuop::Gemm<float>().forward(pooled, scores);
  } catch (const cuop::ExecutionError& error) {
    std::cout << error.what() << "\n";  // GemmFloat: the weight B is not set; call set_weight first
  }
  // [error]
  return profile.kernel_time_ms > 0.0 ? 0 : 1;
}
