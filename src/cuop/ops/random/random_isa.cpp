#include <algorithm>

#include "cuop/backend/cpu/isa.h"
#include "cuop/jit/kernels/random_numbers.h"
#include "cuop/ops/random/random_kernels.h"

namespace cuop::kernels {

namespace {

using jit::WideWord;
using jit::Word;
using jit::Words;

// Counters are worked on side by side: each step below is one loop over lanes that vectorises.
constexpr int kLanes = 64;

struct LaneWords {
  alignas(64) Word a[kLanes], b[kLanes], c[kLanes], d[kLanes];
};

template <class Real>
struct Lanes {
  alignas(64) Real value[kLanes];
};

void generate(Generator::Ticket ticket, int64_t first, LaneWords& words) {
  const WideWord start = ticket.counter + static_cast<uint64_t>(first);
  for (int i = 0; i < kLanes; ++i) {
    const Words block = jit::philox(start + static_cast<WideWord>(i), ticket.seed);
    words.a[i] = block.a;
    words.b[i] = block.b;
    words.c[i] = block.c;
    words.d[i] = block.d;
  }
}

/// Calls make(words, number of a block, lanes) for all blocks and writes the numbers block by
/// block.
template <int Each, class Number, class Make>
void for_blocks(Generator::Ticket ticket, int64_t blocks, Number* out, Make&& make) {
  LaneWords words;
  Lanes<Number> numbers[Each];
  for (int64_t first = 0; first < blocks; first += kLanes) {
    generate(ticket, first, words);
    make(words, numbers);
    const auto count = static_cast<int>(std::min<int64_t>(kLanes, blocks - first));
    Number* to = out + first * Each;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < Each; ++k) to[i * Each + k] = numbers[k].value[i];
    }
  }
}

void normal_lanes(const Word* radius, const Word* turn, float mean, float std, float* first,
                  float* second) {
  for (int i = 0; i < kLanes; ++i) {
    const auto pair = jit::box_muller<float>(radius[i], turn[i]);
    first[i] = jit::exact::multiply_add(std, pair.first, mean);
    second[i] = jit::exact::multiply_add(std, pair.second, mean);
  }
}

void normal_float(Generator::Ticket ticket, int64_t blocks, float mean, float std, float* out) {
  for_blocks<4>(ticket, blocks, out, [&](const LaneWords& words, Lanes<float>* numbers) {
    normal_lanes(words.a, words.b, mean, std, numbers[0].value, numbers[1].value);
    normal_lanes(words.c, words.d, mean, std, numbers[2].value, numbers[3].value);
  });
}

void normal_double(Generator::Ticket ticket, int64_t blocks, double mean, double std, double* out) {
  for_blocks<2>(ticket, blocks, out, [&](const LaneWords& words, Lanes<double>* numbers) {
    for (int i = 0; i < kLanes; ++i) {
      const auto pair = jit::box_muller<double>(jit::wide(words.a[i], words.b[i]),
                                                jit::wide(words.c[i], words.d[i]));
      numbers[0].value[i] = jit::exact::multiply_add(std, pair.first, mean);
      numbers[1].value[i] = jit::exact::multiply_add(std, pair.second, mean);
    }
  });
}

template <int Digits>
void uniform_digits(Generator::Ticket ticket, int64_t blocks, float* out) {
  for_blocks<4>(ticket, blocks, out, [](const LaneWords& words, Lanes<float>* numbers) {
    for (int i = 0; i < kLanes; ++i) {
      numbers[0].value[i] = jit::unit_float<Digits>(words.a[i]);
      numbers[1].value[i] = jit::unit_float<Digits>(words.b[i]);
      numbers[2].value[i] = jit::unit_float<Digits>(words.c[i]);
      numbers[3].value[i] = jit::unit_float<Digits>(words.d[i]);
    }
  });
}

void uniform_float(Generator::Ticket ticket, int64_t blocks, int digits, float* out) {
  if (digits == 24) {
    uniform_digits<24>(ticket, blocks, out);
  } else if (digits == 11) {
    uniform_digits<11>(ticket, blocks, out);
  } else {
    uniform_digits<8>(ticket, blocks, out);
  }
}

void uniform_double(Generator::Ticket ticket, int64_t blocks, double* out) {
  for_blocks<2>(ticket, blocks, out, [](const LaneWords& words, Lanes<double>* numbers) {
    for (int i = 0; i < kLanes; ++i) {
      numbers[0].value[i] = jit::unit_double(jit::wide(words.a[i], words.b[i]));
      numbers[1].value[i] = jit::unit_double(jit::wide(words.c[i], words.d[i]));
    }
  });
}

void integers(Generator::Ticket ticket, int64_t blocks, int64_t low, uint64_t range, int64_t* out) {
  const auto start = static_cast<uint64_t>(low);
  for_blocks<2>(ticket, blocks, out, [&](const LaneWords& words, Lanes<int64_t>* numbers) {
    for (int i = 0; i < kLanes; ++i) {
      const WideWord first = jit::below(jit::wide(words.a[i], words.b[i]), range);
      const WideWord second = jit::below(jit::wide(words.c[i], words.d[i]), range);
      numbers[0].value[i] = static_cast<int64_t>(start + first);
      numbers[1].value[i] = static_cast<int64_t>(start + second);
    }
  });
}

constexpr RandomLoops kLoops{&normal_float, &normal_double, &uniform_float, &uniform_double,
                             &integers};

}  // namespace

template <>
const RandomLoops& random_loops<isa::CUOP_ISA>() {
  return kLoops;
}

}  // namespace cuop::kernels
