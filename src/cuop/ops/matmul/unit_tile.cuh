// The sums of a tile on matrix units: each warp has a part of the tile, in the small products that
// the units compute. float32 is split into two numbers of 11 significant bits, of whose products
// the three larger ones are added up in float32 (3xTF32): what is left out is below 2^-22 of each.
#pragma once

#include "cuop/jit/kernels/matrix_units.cuh"
#include "cuop/ops/matmul/tile_product.cuh"

namespace cuop::jit {

/// An operand's elements in the parts that matrix units multiply.
template <class Fragment, int Parts>
struct SplitFragment {
  Fragment parts[Parts];
};

template <class T, class PanelA, class PanelB, int Tile, int Threads, bool IsConjugate>
class UnitTile {
  static_assert(!IsConjugate, "matrix units multiply real numbers");
  using Unit = MatrixUnit<T>;
  using Sum = typename Unit::Sum;
  static constexpr int kWarps = Threads / 32;
  static constexpr int kRowWarps = kWarps < 4 ? 1 : kWarps < 16 ? 2 : 4;
  static constexpr int kColumnWarps = kWarps / kRowWarps;
  static constexpr int kRows = Tile / kRowWarps / Unit::kRows, kColumns = Tile / kColumnWarps / 8;
  static_assert(kRows > 0 && kColumns > 0);
  static constexpr int kParts = is_float_type<T> && sizeof(T) == 4 ? 2 : 1;
  using A = SplitFragment<typename Unit::A, kParts>;
  using B = SplitFragment<typename Unit::B, kParts>;

 public:
  static constexpr bool kIsSplit = kParts == 2;

  CUOP_FN void take(unsigned char* room_a, unsigned char* room_b) {
#pragma unroll
    for (int k = 0; k < PanelA::kDepth; k += Unit::kDepth) {
      A a[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        load<PanelA, Unit::kRows>(a[i], room_a, first_row() + i * Unit::kRows, k);
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        B b;
        load<PanelB, 8>(b, room_b, first_column() + j * 8, k);
        if constexpr (kParts == 2) {
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            add_unit_product<T>(sums_[i][j], a[i].parts[1], b.parts[0]);
          }
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            add_unit_product<T>(sums_[i][j], a[i].parts[0], b.parts[1]);
          }
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          add_unit_product<T>(sums_[i][j], a[i].parts[0], b.parts[0]);
        }
      }
    }
  }

  /// Of this thread: its elements, their places, and whether all are finite.
  static constexpr int kOfUnit = 4, kCount = kRows * kColumns * kOfUnit;
  CUOP_FN TilePlace place(int n) const {
    const int unit = n / kOfUnit, in_unit = n % kOfUnit;
    return {first_row() + unit / kColumns * Unit::kRows + in_unit / 2 * 8 + quad_,
            first_column() + unit % kColumns * 8 + 2 * in_quad_ + in_unit % 2};
  }
  CUOP_FN bool are_finite() const {
    bool result = true;
    each([&](int, Sum sum) {
      result = result && math::abs(sum) < static_cast<Sum>(math::infinity);
    });
    return result;
  }
  template <class Store>
  CUOP_FN void finish(Store&& store) const {
    each([&](int n, Sum sum) { store(place(n), sum); });
  }

 private:
  template <class Use>
  CUOP_FN void each(Use&& use) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int n = 0; n < kOfUnit; ++n) {
          use((i * kColumns + j) * kOfUnit + n, sums_[i][j].values[n]);
        }
      }
    }
  }

  CUOP_FN int first_row() const { return warp_ / kColumnWarps * (Tile / kRowWarps); }
  CUOP_FN int first_column() const { return warp_ % kColumnWarps * (Tile / kColumnWarps); }

  /// `Lines` lines of a panel from the line `first`, and the unit's depth from k.
  template <class Panel, int Lines, class Fragment>
  CUOP_FN void load(Fragment& to, unsigned char* room, int first, int k) const {
    const int line = first + quad_;
#pragma unroll
    for (int n = 0; n < Lines / 4; ++n) {
      const int below = Lines == 16 ? n % 2 * 8 : 0, deeper = Lines == 16 ? n / 2 : n;
      if constexpr (sizeof(T) == 2) {
        to.parts[0].words[n] = pair<Panel>(room, line + below, k + deeper * 8 + 2 * in_quad_);
      } else {
        const T value = *Panel::element(room, line + below, k + deeper * 4 + in_quad_);
        if constexpr (kParts == 1) {
          to.parts[0].words[n] = value;
        } else {
          const uint32_t large = tf32(value);
          to.parts[0].words[n] = large;
          to.parts[1].words[n] = tf32(value - __builtin_bit_cast(float, large));
        }
      }
    }
  }
  /// Two neighbours along the depth.
  template <class Panel>
  CUOP_FN static uint32_t pair(unsigned char* room, int line, int k) {
    if constexpr (Panel::kIsAlongDepth) {
      return *reinterpret_cast<const uint32_t*>(Panel::element(room, line, k));
    } else {
      const auto first = __builtin_bit_cast(uint16_t, *Panel::element(room, line, k));
      const auto second = __builtin_bit_cast(uint16_t, *Panel::element(room, line, k + 1));
      return first | static_cast<uint32_t>(second) << 16;
    }
  }

  const int warp_ = static_cast<int>(threadIdx.x) / 32;
  const int quad_ = static_cast<int>(threadIdx.x) % 32 / 4;
  const int in_quad_ = static_cast<int>(threadIdx.x) % 4;
  UnitSums<T> sums_[kRows][kColumns] = {};
};

}  // namespace cuop::jit
