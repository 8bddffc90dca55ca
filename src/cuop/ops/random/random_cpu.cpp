#include <algorithm>
#include <array>

#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/jit/kernels/random_numbers.h"
#include "cuop/ops/random/random_arguments.cuh"
#include "cuop/ops/random/random_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kPieceBlocks = 512;  // counters done at a time; their numbers stay in cache

const RandomLoops& loops() {
  static const RandomLoops& chosen =
      isa::choose([]<class Level>(Level) -> const RandomLoops& { return random_loops<Level>(); });
  return chosen;
}

/// The type that numbers of T are drawn in: four or two of them a block.
template <class T>
struct DrawnAs {
  using type = std::conditional_t<std::is_integral_v<T>, int64_t,
                                  std::conditional_t<std::is_same_v<T, double>, double, float>>;
};

template <class Real>
void stretch(Real* values, int64_t count, const Draw& draw) {
  const auto low = static_cast<Real>(draw.first), high = static_cast<Real>(draw.second);
  const auto last = static_cast<Real>(draw.last);
  if (low == Real{0} && high == Real{1}) return;
  for (int64_t i = 0; i < count; ++i) values[i] = jit::stretched(values[i], low, high, last);
}

template <class T, class Drawn>
void draw_blocks(const Draw& draw, Generator::Ticket ticket, int64_t blocks, Drawn* out) {
  if constexpr (std::is_same_v<Drawn, int64_t>) {
    loops().integers(ticket, blocks, draw.low, draw.range, out);
  } else {
    const auto first = static_cast<Drawn>(draw.first), second = static_cast<Drawn>(draw.second);
    if constexpr (std::is_same_v<Drawn, double>) {
      if (draw.distribution == Distribution::kNormal) {
        loops().normal_double(ticket, blocks, first, second, out);
        return;
      }
      loops().uniform_double(ticket, blocks, out);
      stretch(out, 2 * blocks, draw);
    } else {
      if (draw.distribution == Distribution::kNormal) {
        loops().normal_float(ticket, blocks, first, second, out);
        return;
      }
      loops().uniform_float(ticket, blocks, jit::uniform_digits<T>, out);
      stretch(out, 4 * blocks, draw);
    }
  }
}

template <class T, class Drawn>
void store(const Drawn* numbers, int64_t count, T* out) {
  if constexpr (jit::is_narrow_type<T>) {
    backend::from_float(numbers, out, count);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(numbers[i]);
  }
}

template <class T>
void fill(T* out, int64_t count, const Draw& draw, Generator::Ticket ticket) {
  using Drawn = typename DrawnAs<T>::type;
  constexpr int64_t kEach = 16 / static_cast<int64_t>(sizeof(Drawn));  // numbers a block
  const int64_t pieces = divide_up(count, kEach * kPieceBlocks);
  backend::parallel_for(pieces, 8, [&](int64_t begin, int64_t end) {
    alignas(64) std::array<Drawn, static_cast<size_t>(kEach * kPieceBlocks)> numbers;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t start = piece * kPieceBlocks;
      const int64_t wanted = std::min(kEach * kPieceBlocks, count - start * kEach);
      const int64_t blocks = divide_up(wanted, kEach);
      const Generator::Ticket here{ticket.seed, ticket.counter + static_cast<uint64_t>(start)};
      if constexpr (std::is_same_v<T, Drawn>) {
        if (wanted == blocks * kEach) {
          draw_blocks<T>(draw, here, blocks, out + start * kEach);
          continue;
        }
      }
      draw_blocks<T>(draw, here, blocks, numbers.data());
      store(numbers.data(), wanted, out + start * kEach);
    }
  });
}

}  // namespace

void random_fill_cpu(const Tensor& out, const Draw& draw, Generator::Ticket ticket) {
  if (draw.distribution == Distribution::kInteger) {
    visit_dtype(IntegerTypes{}, out.dtype(), "randint",
                [&]<class T>(TypeTag<T>) { fill(out.data<T>(), out.size(), draw, ticket); });
  } else {
    visit_dtype(FloatingTypes{}, out.dtype(), "random",
                [&]<class T>(TypeTag<T>) { fill(out.data<T>(), out.size(), draw, ticket); });
  }
}

}  // namespace cuop::kernels
