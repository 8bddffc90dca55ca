#include "cuop/ops/fft/chirp.h"

#include <algorithm>
#include <complex>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/slot.h"
#include "cuop/core/box.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/fft/chirp_arguments.cuh"
#include "cuop/ops/fft/root_table.h"
#include "cuop/ops/places.h"

namespace cuop::spectral {
namespace {

constexpr int64_t kChirpsPerTask = 4 << 10;
constexpr int kChirpThreads = 256;

jit::ChirpLaw law_of(const Chirp& chirp) {
  return {chirp.n,         chirp.turn,          chirp.length,          chirp.scale,
          chirp.end_scale, chirp.ends_are_real, chirp.ends_become_real};
}

/// Over elements and their indices.
LoopNest<2> nest_of(const Tensor& block, const Chirp& chirp) {
  const Strides indices{chirp.row_step, 1};
  return make_loop_nest<2>(block.shape(), {&block.strides(), &indices});
}

template <class Real>
void multiply_line(std::complex<Real>* line, int64_t stride, int64_t first, int64_t step,
                   Interval run, const jit::ChirpLaw& law, const RootTable::Places& roots) {
  for (int64_t i = run.low; i < run.high; ++i) {
    const int64_t index = law.unfolded(first + i * step);
    const bool is_end = law.is_end(index);
    const double scale = is_end ? law.end_scale : law.scale;
    const RootTable::Root root = roots.at(law.exponent(index));
    const bool is_real = is_end && law.ends_are_real;
    const double x = line[i * stride].real(), y = is_real ? 0.0 : line[i * stride].imag();
    const double re = x * root.real() - y * root.imag(), im = x * root.imag() + y * root.real();
    const bool becomes_real = is_end && law.ends_become_real;
    line[i * stride] = {static_cast<Real>(re * scale),
                        becomes_real ? Real{0} : static_cast<Real>(im * scale)};
  }
}

void multiply_cpu(const Tensor& block, const Chirp& chirp) {
  const RootTable table(2 * chirp.n, chirp.is_conjugate, kCpu);
  const RootTable::Places roots = table.places();
  const auto nest = nest_of(block, chirp);
  const auto [size, strides] = nest.inner();
  const int64_t runs = divide_up(size, kChirpsPerTask);
  const int64_t grain = std::max<int64_t>(1, kChirpsPerTask / size);
  const jit::ChirpLaw law = law_of(chirp);
  const auto multiply = [&]<class Real>(std::complex<Real>* data) {
    backend::parallel_for_each(nest.outer_size() * runs, grain, [&](int64_t task) {
      const auto [element, index] = nest.row_offsets(task / runs);
      multiply_line(data + element, strides[0], chirp.first + index, strides[1],
                    split_evenly({0, size}, runs, task % runs), law, roots);
    });
  };
  if (block.dtype() == DType::kComplex64) {
    multiply(block.data<std::complex<float>>());
  } else {
    multiply(block.data<std::complex<double>>());
  }
}

void multiply_cuda(const Tensor& block, const Chirp& chirp) {
  const RootTable table(2 * chirp.n, chirp.is_conjugate, block.device());
  const RootTable::Places roots = table.places();
  const jit::ChirpBlock arguments{
      block.data(), roots.coarse, roots.fine,    kernels::places_of(nest_of(block, chirp)),
      block.size(), chirp.first,  law_of(chirp), roots.shift};
  jit::launch_text(chirp_kernel(block.dtype()), block.device(),
                   divide_up(block.size(), int64_t{kChirpThreads}), &arguments);
}

constexpr backend::Slot<void(const Tensor&, const Chirp&)> kMultiplyChirp("fft", multiply_cpu,
                                                                          multiply_cuda);

}  // namespace

int64_t chirp_bytes(int64_t n) { return RootTable::bytes(2 * n); }

void multiply_by_chirp(const Tensor& block, const Chirp& chirp) {
  if (block.size() > 0) kMultiplyChirp(block.device(), block, chirp);
}

jit::TextKernel chirp_kernel(DType dtype) {
  return {"fft chirp", "cuop/ops/fft/chirp.cuh", "ChirpBlock",
          cat("multiply_by_chirp<", dtype == DType::kComplex64 ? "float" : "double", ">"),
          kChirpThreads};
}

}  // namespace cuop::spectral
