// What this machine offers, how long a product takes on it, where the time goes, and memory given
// back afterwards.
#include <iostream>
#include <string>

#include "cuop/cuop.h"

int main() {
  cuop::print_system_info();

  // [benchmark]
  const cuop::Tensor a = cuop::random({128, 128}), b = cuop::random({128, 128});
  const cuop::Tensor c = cuop::empty({128, 128});
  cuop::Gemm<float> gemm;
  gemm.set_weight(b);
  const cuop::BenchmarkResult product = cuop::benchmark(gemm, {.num_runs = 20}, a, c);
  std::cout << "Gemm of 128 x 128\n" << cuop::to_text(product);

  const cuop::BenchmarkResult sum = cuop::benchmark([&] { cuop::add(a, b, &c); });
  std::cout << "sum of 128 x 128\n" << cuop::to_text(sum);
  // [benchmark]
  if (product.median_time_ms <= 0 || product.gflops <= 0 || sum.num_runs != 100) return 1;

  // [profiling]
  std::string lines;
  cuop::set_profiling_output([&](const std::string& text) { lines += text; });
  cuop::enable_profiling();
  cuop::matmul(a, b);
  cuop::enable_profiling(false);
  cuop::set_profiling_output({});
  std::cout << lines;  // matmul_kernel: 0.15ms, and the table
  // [profiling]
  if (lines.find("matmul_kernel: ") != 0 || cuop::profiling_rows().size() != 1) return 1;

  // [memory]
  {
    const cuop::MemoryContext context;
    cuop::matmul(a, cuop::random({128, 4096}));
  }  // what the product needed goes back to the system here
  std::cout << cuop::empty_cache() << " bytes were still idle\n";
  // [memory]
  return 0;
}
