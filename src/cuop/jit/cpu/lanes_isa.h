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
/// Fetches the cache line to which a result goes some vectors after this one. Stores wait for their
/// lines one after another, those of what stages keep on the stack too, until there is no room for
/// more of them: over arrays that no cache holds tan takes 0.8 of the time, in caches 1.00 to 1.02.
template <class T>
[[gnu::always_inline]] inline void fetch_ahead([[maybe_unused]] const T* result) {
#ifdef __AVX512F__  // a line each; not tried on processors without
  constexpr uintptr_t kAhead = 32 * kVectorBytes;
  // There may be no such result.
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(result) + kAhead),
                     1);
#endif
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
/// c - a b, and a b - c.
[[gnu::always_inline]] inline Lanes minus_product(Lanes a, Lanes b, Lanes c) {
  return _mm512_fnmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes minus_product(DoubleLanes a, DoubleLanes b,
                                                        DoubleLanes c) {
  return _mm512_fnmadd_pd(a, b, c);
}
[[gnu::always_inline]] inline Lanes product_minus(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmsub_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes product_minus(DoubleLanes a, DoubleLanes b,
                                                        DoubleLanes c) {
  return _mm512_fmsub_pd(a, b, c);
}
/// The smaller one; b if one is NaN.
[[gnu::always_inline]] inline Lanes smaller(Lanes a, Lanes b) {
  return _mm512_maskz_min_ps(kAll, a, b);
}
[[gnu::always_inline]] inline DoubleLanes smaller(DoubleLanes a, DoubleLanes b) {
  return _mm512_maskz_min_pd(static_cast<__mmask8>(kAll), a, b);
}
/// The larger one; b if one is NaN.
[[gnu::always_inline]] inline Lanes larger(Lanes a, Lanes b) {
  return _mm512_maskz_max_ps(kAll, a, b);
}
[[gnu::always_inline]] inline DoubleLanes larger(DoubleLanes a, DoubleLanes b) {
  return _mm512_maskz_max_pd(static_cast<__mmask8>(kAll), a, b);
}
[[gnu::always_inline]] inline Lanes root_of(Lanes x) { return _mm512_maskz_sqrt_ps(kAll, x); }
[[gnu::always_inline]] inline DoubleLanes root_of(DoubleLanes x) {
  return _mm512_maskz_sqrt_pd(static_cast<__mmask8>(kAll), x);
}
/// 1 / x within 2^-14 of itself, which takes a fifth of a quotient's time.
[[gnu::always_inline]] inline Lanes near_inverse(Lanes x) { return _mm512_maskz_rcp14_ps(kAll, x); }
/// A bit of each lane where x > most.
[[gnu::always_inline]] inline int beyond(Lanes x, float most) {
  return _mm512_cmp_ps_mask(x, lanes(most), _CMP_GT_OQ);
}
[[gnu::always_inline]] inline int beyond(DoubleLanes x, double most) {
  return _mm512_cmp_pd_mask(x, lanes(most), _CMP_GT_OQ);
}
/// A bit of each lane where |x| > most, and of NaN.
[[gnu::always_inline]] inline int not_within(Lanes x, float most) {
  return _mm512_cmp_ps_mask(_mm512_abs_ps(x), lanes(most), _CMP_NLE_UQ);
}
/// A bit of each lane whose sign is minus.
[[gnu::always_inline]] inline int signs_of(Lanes x) {
  return _mm512_movepi32_mask(_mm512_castps_si512(x));
}
[[gnu::always_inline]] inline int signs_of(DoubleLanes x) {
  return _mm512_movepi64_mask(_mm512_castpd_si512(x));
}
/// A bit of each lane: that behind its sign.
[[gnu::always_inline]] inline int bits_after_signs_of(Lanes x) {
  return _mm512_test_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(1 << 30));
}
[[gnu::always_inline]] inline int bits_after_signs_of(DoubleLanes x) {
  return _mm512_test_epi64_mask(_mm512_castpd_si512(x), _mm512_set1_epi64(1LL << 62));
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
/// b, which has none of the chosen bits, with those of a.
template <class Bits, class V>
[[gnu::always_inline]] inline V with_bits(V b, V a, Bits chosen) {
  return (V)_mm512_ternarylogic_epi64((__m512i)chosen, (__m512i)a, (__m512i)b, 0xca);
}
/// The size of y with the sign of x.
template <class V>
[[gnu::always_inline]] inline V with_sign(V y, V x) {
  return with_bits(y, x, BitsOfLanes<V>{} + kSignBit<V>);
}
/// x + y of those lanes, x of the others.
[[gnu::always_inline]] inline Lanes added(__mmask16 chosen, Lanes x, float y) {
  return _mm512_mask_add_ps(x, chosen, x, lanes(y));
}
[[gnu::always_inline]] inline DoubleLanes added(__mmask8 chosen, DoubleLanes x, double y) {
  return _mm512_mask_add_pd(x, chosen, x, lanes(y));
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
[[gnu::always_inline]] inline Lanes minus_product(Lanes a, Lanes b, Lanes c) {
  return _mm256_fnmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes minus_product(DoubleLanes a, DoubleLanes b,
                                                        DoubleLanes c) {
  return _mm256_fnmadd_pd(a, b, c);
}
[[gnu::always_inline]] inline Lanes product_minus(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmsub_ps(a, b, c);
}
[[gnu::always_inline]] inline DoubleLanes product_minus(DoubleLanes a, DoubleLanes b,
                                                        DoubleLanes c) {
  return _mm256_fmsub_pd(a, b, c);
}
[[gnu::always_inline]] inline Lanes smaller(Lanes a, Lanes b) { return _mm256_min_ps(a, b); }
[[gnu::always_inline]] inline DoubleLanes smaller(DoubleLanes a, DoubleLanes b) {
  return _mm256_min_pd(a, b);
}
[[gnu::always_inline]] inline Lanes larger(Lanes a, Lanes b) { return _mm256_max_ps(a, b); }
[[gnu::always_inline]] inline DoubleLanes larger(DoubleLanes a, DoubleLanes b) {
  return _mm256_max_pd(a, b);
}
[[gnu::always_inline]] inline Lanes root_of(Lanes x) { return _mm256_sqrt_ps(x); }
[[gnu::always_inline]] inline DoubleLanes root_of(DoubleLanes x) { return _mm256_sqrt_pd(x); }
/// 1 / x: what these vectors have of less digits has too few.
[[gnu::always_inline]] inline Lanes near_inverse(Lanes x) { return lanes(1.0f) / x; }
[[gnu::always_inline]] inline int beyond(Lanes x, float most) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, lanes(most), _CMP_GT_OQ));
}
[[gnu::always_inline]] inline int beyond(DoubleLanes x, double most) {
  return _mm256_movemask_pd(_mm256_cmp_pd(x, lanes(most), _CMP_GT_OQ));
}
[[gnu::always_inline]] inline int not_within(Lanes x, float most) {
  const __m256 size = _mm256_andnot_ps(lanes(-0.0f), x);
  return _mm256_movemask_ps(_mm256_cmp_ps(size, lanes(most), _CMP_NLE_UQ));
}
[[gnu::always_inline]] inline int signs_of(Lanes x) { return _mm256_movemask_ps(x); }
[[gnu::always_inline]] inline int signs_of(DoubleLanes x) { return _mm256_movemask_pd(x); }
template <class V>
[[gnu::always_inline]] inline int bits_after_signs_of(V x) {
  const auto bits = (BitsOfLanes<V>)x;
  return signs_of((V)(bits + bits));
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

/// The smaller one; NaN of a NaN.
template <class V>
[[gnu::always_inline]] inline V at_most(V size, NumberOf<V> most) {
  return smaller(lanes(most), size);
}
/// The larger one; NaN of a NaN.
template <class V>
[[gnu::always_inline]] inline V at_least(V size, NumberOf<V> least) {
  return larger(lanes(least), size);
}
template <class V>
[[gnu::always_inline]] inline V either(V a, V b) {
  return (V)((BitsOfLanes<V>)a | (BitsOfLanes<V>)b);
}
template <class V>
[[gnu::always_inline]] inline V both(V a, V b) {
  return (V)((BitsOfLanes<V>)a & (BitsOfLanes<V>)b);
}
template <class V>
[[gnu::always_inline]] inline V apart(V a, V b) {
  return (V)((BitsOfLanes<V>)a ^ (BitsOfLanes<V>)b);
}
template <class V>
[[gnu::always_inline]] inline V sign_of(V x) {
  return (V)((BitsOfLanes<V>)x & kSignBit<V>);
}
template <class V>
[[gnu::always_inline]] inline V size_of(V x) {
  return (V)((BitsOfLanes<V>)x & ~kSignBit<V>);
}
// Lanes that are chosen: a bit of each, or of floats all bits of a lane and of doubles its sign.
#ifdef __AVX512F__
using ChosenLanes = __mmask16;
/// Those of x > most.
[[gnu::always_inline]] inline ChosenLanes chosen_beyond(Lanes x, float most) {
  return _mm512_cmp_ps_mask(x, lanes(most), _CMP_GT_OQ);
}
[[gnu::always_inline]] inline __mmask8 chosen_beyond(DoubleLanes x, double most) {
  return _mm512_cmp_pd_mask(x, lanes(most), _CMP_GT_OQ);
}
/// Those whose last bit is 1.
[[gnu::always_inline]] inline ChosenLanes odd_lanes(Lanes x) {
  return _mm512_test_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(1));
}
[[gnu::always_inline]] inline __mmask8 odd_lanes(DoubleLanes x) {
  return _mm512_test_epi64_mask(_mm512_castpd_si512(x), _mm512_set1_epi64(1));
}
/// a of those, b of the others.
[[gnu::always_inline]] inline Lanes selected(ChosenLanes chosen, Lanes a, Lanes b) {
  return _mm512_mask_blend_ps(chosen, b, a);
}
[[gnu::always_inline]] inline DoubleLanes selected(__mmask8 chosen, DoubleLanes a, DoubleLanes b) {
  return _mm512_mask_blend_pd(chosen, b, a);
}
/// x of those, 0 of the others.
[[gnu::always_inline]] inline Lanes only(ChosenLanes chosen, Lanes x) {
  return _mm512_maskz_mov_ps(chosen, x);
}
[[gnu::always_inline]] inline DoubleLanes only(__mmask8 chosen, DoubleLanes x) {
  return _mm512_maskz_mov_pd(chosen, x);
}
/// -b / a of those, a / b of the others; b is not 0.
[[gnu::always_inline]] inline DoubleLanes turned_quotient(__mmask8 chosen, DoubleLanes a,
                                                          DoubleLanes b) {
  return _mm512_mask_sub_pd(a, chosen, DoubleLanes{}, b) / selected(chosen, a, b);
}
#else
using ChosenLanes = Lanes;
[[gnu::always_inline]] inline ChosenLanes chosen_beyond(Lanes x, float most) {
  return _mm256_cmp_ps(x, lanes(most), _CMP_GT_OQ);
}
[[gnu::always_inline]] inline DoubleLanes chosen_beyond(DoubleLanes x, double most) {
  return _mm256_cmp_pd(x, lanes(most), _CMP_GT_OQ);
}
[[gnu::always_inline]] inline ChosenLanes odd_lanes(Lanes x) {
  static constexpr int32_t kOdd[8] = {0, -1, 0, -1, 0, -1, 0, -1};
  const __m256i odd = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOdd));
  return (Lanes)_mm256_permutevar8x32_epi32(odd, _mm256_castps_si256(x));
}
[[gnu::always_inline]] inline DoubleLanes odd_lanes(DoubleLanes x) {
  return (DoubleLanes)((LaneBitsOf<double>)x << 63);
}
[[gnu::always_inline]] inline Lanes selected(ChosenLanes chosen, Lanes a, Lanes b) {
  return _mm256_blendv_ps(b, a, chosen);
}
[[gnu::always_inline]] inline DoubleLanes selected(DoubleLanes chosen, DoubleLanes a,
                                                   DoubleLanes b) {
  return _mm256_blendv_pd(b, a, chosen);
}
[[gnu::always_inline]] inline Lanes only(ChosenLanes chosen, Lanes x) { return both(chosen, x); }
[[gnu::always_inline]] inline DoubleLanes only(DoubleLanes chosen, DoubleLanes x) {
  return both(chosen, x);
}
[[gnu::always_inline]] inline DoubleLanes turned_quotient(DoubleLanes chosen, DoubleLanes a,
                                                          DoubleLanes b) {
  const DoubleLanes turned = apart(a, chosen), n = selected(chosen, b, turned);
  return n / apart(n, apart(turned, b));  // the other one, in less time than a selection
}
template <class Bits, class V>
[[gnu::always_inline]] inline V with_bits(V b, V a, Bits chosen) {
  return either((V)((Bits)a & chosen), b);
}
template <class V>
[[gnu::always_inline]] inline V with_sign(V y, V x) {
  return either(size_of(y), sign_of(x));
}
[[gnu::always_inline]] inline DoubleLanes added(DoubleLanes chosen, DoubleLanes x, double y) {
  return x + only(chosen, lanes(y));
}
#endif

/// a where the sign of x is plus, else b.
template <class V>
[[gnu::always_inline]] inline V by_sign(V x, V a, V b) {
  return (BitsOfLanes<V>)x < kSignBit<V> ? a : b;
}
/// x where x > 0, else a zero; NaN of NaN.
template <class V>
[[gnu::always_inline]] inline V rectified(V x) {
  return larger(V{}, x);
}

/// Every Stride-th term, of that power of x.
template <int First, int Stride, class T, int Count, class V>
[[gnu::always_inline]] inline V horner(const T (&coefficients)[Count], V power) {
  if constexpr (First + Stride >= Count) {
    return lanes(coefficients[First]);
  } else {
    return fma(horner<First + Stride, Stride>(coefficients, power), power,
               lanes(coefficients[First]));
  }
}

/// All terms. Shorter vectors take as long each, of which more have to be on their way at once:
/// there in two chains side by side.
template <class T, int Count, class V>
[[gnu::always_inline]] inline V polynomial(const T (&coefficients)[Count], V x) {
  if constexpr (kVectorBytes == 64) {
    return horner<0, 1>(coefficients, x);
  } else {
    const V square = x * x;
    return fma(horner<1, 2>(coefficients, square), x, horner<0, 2>(coefficients, square));
  }
}

}  // namespace
}  // namespace cuop::jit
#endif
