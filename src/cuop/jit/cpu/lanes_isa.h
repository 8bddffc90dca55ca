// The widest vectors of a processor with fused operations, and what the forms of functions for
// whole vectors are made of. Everything has internal linkage: each *_isa.cpp gets its own.
#pragma once

#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {
namespace {

/// The form of F for a whole vector; most functions have none.
template <class F, class T>
struct LaneForm;

}  // namespace
}  // namespace cuop::jit

#if defined(__AVX512F__) && defined(__AVX512DQ__) || defined(__AVX2__) && defined(__FMA__)
#define CUOP_HAS_LANE_FORMS
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace cuop::jit {
namespace {

#ifdef __AVX512F__
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif
template <class T>
using LanesOf [[gnu::vector_size(kVectorBytes)]] = T;
template <class T>
using LaneBitsOf [[gnu::vector_size(kVectorBytes)]] = typename accurate::Format<T>::Bits;
using Lanes = LanesOf<float>;
using DoubleLanes = LanesOf<double>;
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

[[gnu::always_inline]] inline Lanes lanes(float x) { return x - Lanes{}; }
[[gnu::always_inline]] inline DoubleLanes lanes(double x) { return x - DoubleLanes{}; }
template <class T>
[[gnu::always_inline]] inline LanesOf<T> load(const T* x) {
  LanesOf<T> y;
  __builtin_memcpy(&y, x, sizeof(y));
  return y;
}
template <class T>
[[gnu::always_inline]] inline void store(T* to, LanesOf<T> x) {
  __builtin_memcpy(to, &x, sizeof(x));
}
template <class V>
using NumberOf = std::remove_cvref_t<decltype(V()[0])>;
template <class V>
using BitsOfLanes = LaneBitsOf<NumberOf<V>>;
template <class V>
constexpr auto kSignBit =
    std::bit_cast<typename accurate::Format<NumberOf<V>>::Bits>(-NumberOf<V>(0));

// What has another name for each width.
#ifdef __AVX512F__
/// A mask of all lanes, which costs nothing: without one g++ 12 warns of its own header.
constexpr auto kAll = static_cast<__mmask16>(-1);
[[gnu::always_inline]] inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes fma(DoubleLanes a, DoubleLanes b, DoubleLanes c) {
  return _mm512_fmadd_pd(a, b, c);
}
/// The smaller one; NaN of a NaN.
[[gnu::always_inline]] inline Lanes at_most(Lanes size, float most) {
  return _mm512_maskz_min_ps(kAll, lanes(most), size);
}
[[gnu::always_inline]] inline DoubleLanes at_most(DoubleLanes size, double most) {
  return _mm512_maskz_min_pd(static_cast<__mmask8>(kAll), lanes(most), size);
}
/// A bit of each lane where x > most.
[[gnu::always_inline]] inline int beyond(Lanes x, float most) {
  return _mm512_cmp_ps_mask(x, lanes(most), _CMP_GT_OQ);
}
[[gnu::always_inline]] inline int beyond(DoubleLanes x, double most) {
  return _mm512_cmp_pd_mask(x, lanes(most), _CMP_GT_OQ);
}
/// The even ones of a, b in each 16 bytes, and the odd ones.
[[gnu::always_inline]] inline Lanes evens(Lanes a, Lanes b) {
  return _mm512_shuffle_ps(a, b, 0b10001000);
}
[[gnu::always_inline]] inline Lanes odds(Lanes a, Lanes b) {
  return _mm512_shuffle_ps(a, b, 0b11011101);
}
[[gnu::always_inline]] inline DoubleLanes evens(DoubleLanes a, DoubleLanes b) {
  return _mm512_maskz_unpacklo_pd(static_cast<__mmask8>(kAll), a, b);
}
[[gnu::always_inline]] inline DoubleLanes odds(DoubleLanes a, DoubleLanes b) {
  return _mm512_maskz_unpackhi_pd(static_cast<__mmask8>(kAll), a, b);
}
/// Every second piece of 16 bytes, from the first on.
template <int First, class Piece>
[[gnu::always_inline]] inline DoubleLanes joined(Piece piece) {
  DoubleLanes y = _mm512_castpd128_pd512(piece(First));
  y = _mm512_insertf64x2(y, piece(First + 2), 1);
  y = _mm512_insertf64x2(y, piece(First + 4), 2);
  return _mm512_insertf64x2(y, piece(First + 6), 3);
}
#else
[[gnu::always_inline]] inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes fma(DoubleLanes a, DoubleLanes b, DoubleLanes c) {
  return _mm256_fmadd_pd(a, b, c);
}
[[gnu::always_inline]] inline Lanes at_most(Lanes size, float most) {
  return _mm256_min_ps(lanes(most), size);
}
[[gnu::always_inline]] inline DoubleLanes at_most(DoubleLanes size, double most) {
  return _mm256_min_pd(lanes(most), size);
}
[[gnu::always_inline]] inline int beyond(Lanes x, float most) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, lanes(most), _CMP_GT_OQ));
}
[[gnu::always_inline]] inline int beyond(DoubleLanes x, double most) {
  return _mm256_movemask_pd(_mm256_cmp_pd(x, lanes(most), _CMP_GT_OQ));
}
[[gnu::always_inline]] inline Lanes evens(Lanes a, Lanes b) {
  return _mm256_shuffle_ps(a, b, 0b10001000);
}
[[gnu::always_inline]] inline Lanes odds(Lanes a, Lanes b) {
  return _mm256_shuffle_ps(a, b, 0b11011101);
}
[[gnu::always_inline]] inline DoubleLanes evens(DoubleLanes a, DoubleLanes b) {
  return _mm256_unpacklo_pd(a, b);
}
[[gnu::always_inline]] inline DoubleLanes odds(DoubleLanes a, DoubleLanes b) {
  return _mm256_unpackhi_pd(a, b);
}
template <int First, class Piece>
[[gnu::always_inline]] inline DoubleLanes joined(Piece piece) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(piece(First)), piece(First + 2), 1);
}
#endif

template <class V>
[[gnu::always_inline]] inline V either(V a, V b) {
  return (V)((BitsOfLanes<V>)a | (BitsOfLanes<V>)b);
}
template <class V>
[[gnu::always_inline]] inline V sign_of(V x) {
  return (V)((BitsOfLanes<V>)x & kSignBit<V>);
}
template <class V>
[[gnu::always_inline]] inline V size_of(V x) {
  return (V)((BitsOfLanes<V>)x & ~kSignBit<V>);
}
/// a where the sign of x is plus, else b.
template <class V>
[[gnu::always_inline]] inline V by_sign(V x, V a, V b) {
  return (BitsOfLanes<V>)x < kSignBit<V> ? a : b;
}
/// x where x > 0, else 0.
template <class V>
[[gnu::always_inline]] inline V rectified(V x) {
  return x > V{} ? x : V{};
}

/// Every Stride-th term, of that power of x.
template <int First, int Stride, int Count>
[[gnu::always_inline]] inline DoubleLanes horner(const double (&coefficients)[Count],
                                                 DoubleLanes power) {
  if constexpr (First + Stride >= Count) {
    return lanes(coefficients[First]);
  } else {
    return fma(horner<First + Stride, Stride>(coefficients, power), power,
               lanes(coefficients[First]));
  }
}

/// A row's two numbers for each lane.
template <class T>
struct Row {
  LanesOf<T> value, slope;
};
/// Of a table whose length is a power of 2 the rows that the last bits of `shifted` name: where
/// that is NaN, any row. They are loaded one by one, which takes half the time of a gather.
template <int Count>
[[gnu::always_inline]] inline Row<float> rows_at(const float (*rows)[2], Lanes shifted) {
  const auto pairs = (LaneBitsOf<double>)((LaneBitsOf<float>)shifted & (Count - 1u));
  const auto row = [&](uint64_t i) {
    return reinterpret_cast<const __m64*>(rows[static_cast<uint32_t>(i)]);
  };
  const auto two = [&](int k) {
    const __m128 first = _mm_loadl_pi(_mm_setzero_ps(), row(pairs[k]));
    return _mm_castps_pd(_mm_loadh_pi(first, row(pairs[k] >> 32)));
  };
  const Lanes a = (Lanes)joined<0>(two), b = (Lanes)joined<1>(two);
  return {evens(a, b), odds(a, b)};
}
template <int Count>
[[gnu::always_inline]] inline Row<double> rows_at(const double (*rows)[2], DoubleLanes shifted) {
  const auto index = (LaneBitsOf<double>)shifted & (Count - 1u);
  const auto row = [&](int k) { return _mm_loadu_pd(rows[index[k]]); };
  const DoubleLanes a = joined<0>(row), b = joined<1>(row);
  return {evens(a, b), odds(a, b)};
}

}  // namespace
}  // namespace cuop::jit
#endif
