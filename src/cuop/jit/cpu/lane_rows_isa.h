// Rows of tables, two numbers each, for all lanes of a vector.
#pragma once

#include "cuop/jit/cpu/lanes_isa.h"

namespace cuop::jit {
namespace {

struct LoadedRows;

}  // namespace
}  // namespace cuop::jit

#ifdef CUOP_HAS_LANE_FORMS
namespace cuop::jit {
namespace {

/// A row's two numbers for each lane.
template <class T>
struct Row {
  LanesOf<T> value, slope;
};

/// Of a table whose length is a power of 2 the rows that the last bits of `shifted` name: where
/// that is NaN, any row. They are loaded one by one, which takes half the time of gathers where
/// isa::has_quick_gathers() does not hold (backend/cpu/gathers.h).
struct LoadedRows {
  template <int Count>
  [[gnu::always_inline]] static Row<float> at(const float (*rows)[2], Lanes shifted) {
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
  [[gnu::always_inline]] static Row<double> at(const double (*rows)[2], DoubleLanes shifted) {
    const auto index = (LaneBitsOf<double>)shifted & (Count - 1u);
    const auto row = [&](int k) { return _mm_loadu_pd(rows[index[k]]); };
    const DoubleLanes a = joined<0>(row), b = joined<1>(row);
    return {evens(a, b), odds(a, b)};
  }
};

#ifdef __AVX512F__
#define CUOP_HAS_GATHERED_ROWS
/// The same by gathers, of floats one of the even and one of the odd lanes' rows.
struct GatheredRows {
  template <int Count>
  [[gnu::always_inline]] static Row<float> at(const float (*rows)[2], Lanes shifted) {
    const auto pairs = (LaneBitsOf<double>)shifted;
    const Lanes a = (Lanes)gathered(rows, pairs & (Count - 1u));
    const Lanes b = (Lanes)gathered(rows, pairs >> 32 & (Count - 1u));
    return {_mm512_mask_moveldup_ps(a, 0xaaaa, b), _mm512_mask_movehdup_ps(b, 0x5555, a)};
  }
  template <int Count>
  [[gnu::always_inline]] static Row<double> at(const double (*rows)[2], DoubleLanes shifted) {
    const LaneBitsOf<double> first = ((LaneBitsOf<double>)shifted & (Count - 1u)) * 2;
    return {gathered(rows[0], first), gathered(rows[0] + 1, first)};
  }

 private:
  /// Those of 8 bytes at these places. A gather that compilers know to be one of all lanes goes
  /// into a register as it is, for whose last use it then has to wait.
  [[gnu::always_inline]] static DoubleLanes gathered(const void* from, LaneBitsOf<double> places) {
    __mmask8 all = 0xff;
    asm("" : "+Yk"(all));
    return _mm512_mask_i64gather_pd(DoubleLanes{}, all, (__m512i)places, from, sizeof(double));
  }
};
#endif

}  // namespace
}  // namespace cuop::jit
#endif
