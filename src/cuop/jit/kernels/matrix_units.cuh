// The small products that a GPU's matrix units compute for a warp, d += a @ b, with the elements of
// each matrix spread over the lanes as the instructions want them. Lane l is number l % 4 of its
// quad, and the quad number l / 4. On the host lanes ask each other for their elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// The shape [kRows, kDepth] @ [kDepth, 8] of a product, and its operands as one lane has them.
template <class T>
struct MatrixUnit;

/// Operands as words, which are added up in float32.
template <int Depth>
struct WordUnit {
  static constexpr int kRows = 16, kDepth = Depth;
  using Sum = float;
  struct alignas(16) A {
    uint32_t words[4];
  };
  struct B {
    uint32_t words[2];
  };
};

/// 16-bit floats. A lane has pairs of neighbours along the depth in one word, the first in the
/// lower half: of a at (quad, 2 l), (quad + 8, 2 l), and both 8 deeper; of b at (2 l, quad), and 8
/// deeper.
template <>
struct MatrixUnit<Half> : WordUnit<16> {};
template <>
struct MatrixUnit<BFloat16> : WordUnit<16> {};

/// float32 with a significand of 11 bits (tf32), and float64. A lane has of a the elements at
/// (quad, l), (quad + 8, l), and both 4 deeper; of b at (l, quad), and 4 deeper.
template <>
struct MatrixUnit<float> : WordUnit<8> {};
template <>
struct MatrixUnit<double> {
  static constexpr int kRows = 16, kDepth = 8;
  using Sum = double;
  struct A {
    double words[4];
  };
  struct B {
    double words[2];
  };
};

/// A lane's part of d: at (quad, 2 l) and its right neighbour, and the same 8 rows below where
/// there are so many.
template <class T>
struct UnitSums {
  typename MatrixUnit<T>::Sum values[MatrixUnit<T>::kRows / 4];
};

#ifndef CUOP_HOST_THREADS

#define CUOP_UNIT_PRODUCT(shape, type)                                                      \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type                      \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
               : "+f"(d.values[0]), "+f"(d.values[1]), "+f"(d.values[2]), "+f"(d.values[3]) \
               : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]),        \
                 "r"(b.words[0]), "r"(b.words[1]))

/// d += a @ b by all lanes of a warp together.
template <class T>
CUOP_FN void add_unit_product(UnitSums<T>& d, const typename MatrixUnit<T>::A& a,
                              const typename MatrixUnit<T>::B& b);
template <>
CUOP_FN void add_unit_product<Half>(UnitSums<Half>& d, const MatrixUnit<Half>::A& a,
                                    const MatrixUnit<Half>::B& b) {
  CUOP_UNIT_PRODUCT("m16n8k16", "f16");
}
template <>
CUOP_FN void add_unit_product<BFloat16>(UnitSums<BFloat16>& d, const MatrixUnit<BFloat16>::A& a,
                                        const MatrixUnit<BFloat16>::B& b) {
  CUOP_UNIT_PRODUCT("m16n8k16", "bf16");
}
template <>
CUOP_FN void add_unit_product<float>(UnitSums<float>& d, const MatrixUnit<float>::A& a,
                                     const MatrixUnit<float>::B& b) {
  CUOP_UNIT_PRODUCT("m16n8k8", "tf32");
}
#if __CUDA_ARCH__ >= 900
template <>
CUOP_FN void add_unit_product<double>(UnitSums<double>& d, const MatrixUnit<double>::A& a,
                                      const MatrixUnit<double>::B& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d.values[0]), "+d"(d.values[1]), "+d"(d.values[2]), "+d"(d.values[3])
      : "d"(a.words[0]), "d"(a.words[1]), "d"(a.words[2]), "d"(a.words[3]), "d"(b.words[0]),
        "d"(b.words[1]));
}
#else
/// Earlier units multiply [8, 4] @ [4, 8]: the upper and the lower half, in two steps.
template <>
CUOP_FN void add_unit_product<double>(UnitSums<double>& d, const MatrixUnit<double>::A& a,
                                      const MatrixUnit<double>::B& b) {
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int half = part % 2, deeper = part / 2;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d.values[2 * half]), "+d"(d.values[2 * half + 1])
                 : "d"(a.words[part]), "d"(b.words[deeper]));
  }
}
#endif
#undef CUOP_UNIT_PRODUCT

/// The nearest number of 11 significant bits, ties away from zero, as the matrix units take it.
CUOP_FN uint32_t tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

#else

CUOP_FN uint32_t tf32(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  return value - value != 0.0f ? bits : (bits + 0x1000u) & ~uint32_t{0x1fff};
}

namespace detail {
/// What another lane has, in pieces that an exchange takes.
template <class Fragment>
CUOP_FN Fragment fragment_of(int lane, const Fragment& own) {
  struct alignas(8) Piece {
    uint32_t words[sizeof(own.words) % 16 == 0 ? 4 : 2];
  };
  constexpr int kPieces = static_cast<int>(sizeof(own.words) / sizeof(Piece));
  Piece pieces[kPieces];
  __builtin_memcpy(pieces, own.words, sizeof pieces);
  for (Piece& piece : pieces) piece = __shfl_sync(0xffffffffu, piece, lane);
  Fragment result;
  __builtin_memcpy(result.words, pieces, sizeof pieces);
  return result;
}

/// Element k of a lane's word: of two neighbours, of a number that the units cut to tf32, or all.
template <class T, class Word>
CUOP_FN typename MatrixUnit<T>::Sum unit_element(Word word, int k) {
  if constexpr (sizeof(T) == 8) {
    return word;
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(float, word & ~uint32_t{0x1fff});
  } else {
    return static_cast<float>(__builtin_bit_cast(T, static_cast<uint16_t>(word >> (k % 2 * 16))));
  }
}
}  // namespace detail

template <class T>
CUOP_FN void add_unit_product(UnitSums<T>& d, const typename MatrixUnit<T>::A& a,
                              const typename MatrixUnit<T>::B& b) {
  using Unit = MatrixUnit<T>;
  constexpr int kNeighbours = sizeof(T) == 2 ? 2 : 1;  // of one word, along the depth
  const int lane = static_cast<int>(threadIdx.x) % 32, quad = lane / 4, in_quad = lane % 4;
  typename Unit::A row[4];
  typename Unit::B columns[2][4];
  for (int l = 0; l < 4; ++l) {
    row[l] = detail::fragment_of(quad * 4 + l, a);
    for (int j = 0; j < 2; ++j) {
      columns[j][l] = detail::fragment_of((2 * in_quad + j) * 4 + l, b);
    }
  }
  for (int half = 0; half < 2; ++half) {
    for (int j = 0; j < 2; ++j) {
      auto& sum = d.values[2 * half + j];
      for (int k = 0; k < Unit::kDepth; ++k) {
        const int deeper = k / (4 * kNeighbours), l = k / kNeighbours % 4;
        sum += detail::unit_element<T>(row[l].words[half + 2 * deeper], k) *
               detail::unit_element<T>(columns[j][l].words[deeper], k);
      }
    }
  }
}

#endif

}  // namespace cuop::jit
