#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cuop/backend/cpu/long_line.h"
#include "cuop/core/copy_bytes.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/word.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15;    // elements a thread should have at least
constexpr int64_t kRepeatStrip = 512;  // source elements that one task repeats
constexpr int64_t kStrip = 64;         // rows of a transposing copy whose pages stay known

using Nest = LoopNest<2>;  // operand 0 is the destination

/// One element after the other; strides in elements.
template <class To, class From>
void convert_each(void* dst, int64_t dst_stride, const void* src, int64_t src_stride,
                  int64_t count) {
  auto* to = static_cast<To*>(dst);
  const auto* from = static_cast<const From*>(src);
  if (src_stride == 0) {
    const To value = convert<To>(*from);
    if (dst_stride == 1) {
      std::fill_n(to, count, value);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i * dst_stride] = value;
    }
    return;
  }
  const auto run = [&](auto dst_step, auto src_step) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; ++i) to[i * dst_step] = convert<To>(from[i * src_step]);
  };
  if constexpr (std::is_same_v<To, From>) {
    // Compilers make most of steps that they know: plain copies alone are worth a loop for each.
    constexpr std::integral_constant<int64_t, 1> kNext;
    constexpr std::integral_constant<int64_t, -1> kBefore;
    if (dst_stride == 1 && src_stride == -1) return run(kNext, kBefore);
    if (dst_stride == 1) return run(kNext, src_stride);
    if (src_stride == 1) return run(dst_stride, kNext);
  }
  run(dst_stride, src_stride);
}

/// How a row is copied.
struct RowCopier {
  void (*each)(void*, int64_t, const void*, int64_t, int64_t);
  size_t to_size, from_size;  ///< bytes of an element
  bool is_conversion;
  /// Converts rows of neighbours: a loop of fused programs, compiled for this processor's vectors.
  jit::BlockKernel cast = nullptr;

  void operator()(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                  int64_t count) const {
    if (dst_stride != 1 || src_stride != 1) return each(dst, dst_stride, src, src_stride, count);
    if (!is_conversion) {
      copy_bytes(dst, src, count * static_cast<int64_t>(to_size));
      return;
    }
    const int64_t whole = cast == nullptr ? 0 : count - count % jit::kBlockMultiple;
    if (whole > 0) cast(dst, src, nullptr, nullptr, whole);
    const auto done = static_cast<size_t>(whole);
    each(dst + done * to_size, 1, src + done * from_size, 1, count - whole);
  }
};

/// work(offsets, rows) for strips of at most `most` rows along the second innermost axis, at each
/// place of the axes around it.
template <class Work>
void for_each_strip(const Nest& nest, int64_t most, int64_t grain, const Work& work) {
  const int64_t rows = nest.axes[static_cast<size_t>(nest.count - 2)].size;
  const int64_t strips = divide_up(rows, most), blocks = nest.outer_size() / rows;
  backend::parallel_for_each(blocks * strips, grain, [&](int64_t i) {
    const auto [block, strip] = divided(i, strips);
    const int64_t first = strip * most;
    work(nest.row_offsets(block * rows + first), std::min(most, rows - first));
  });
}

/// The two inner axes, when the source is contiguous along the outer of them: in squares of a cache
/// line on either side, each of which is read and written once and whole. Rows that lie a power of
/// two apart fall onto the same few places of a cache, so that no line may be needed again later.
/// `dst_step` is the destination's stride along the columns, a constant where it is 1.
template <class T, class DstStep>
void copy_transposed(T* dst, const T* src, const Nest::Axis& rows, const Nest::Axis& columns,
                     DstStep dst_step) {
  constexpr int64_t kLine = std::min<int64_t>(64 / sizeof(T), 32);
  const int64_t dst_row = rows.strides[0], src_column = columns.strides[1];
  const auto copy_square = [&](int64_t row, auto row_count, int64_t column, auto column_count) {
    T* const to = dst + row * dst_row + column * dst_step;
    const T* const from = src + row + column * src_column;
    for (int64_t i = 0; i < row_count; ++i) {
      for (int64_t j = 0; j < column_count; ++j) {
        to[i * dst_row + j * dst_step] = from[i + j * src_column];
      }
    }
  };
  constexpr std::integral_constant<int64_t, kLine> kWhole;
  const auto copy_at = [&](int64_t i, int64_t j) {
    const int64_t height = std::min(kLine, rows.size - i),
                  width = std::min(kLine, columns.size - j);
    if (height == kLine && width == kLine) {
      copy_square(i, kWhole, j, kWhole);
    } else {
      copy_square(i, height, j, width);
    }
  };
  // Which way is faster was measured: of the widest elements a square has few rows, so that the
  // destination is written nearly in order along them.
  constexpr int64_t kAlong = sizeof(T) == 16 ? 128 : kLine;
  for (int64_t first = 0; first < columns.size; first += kAlong) {
    const int64_t end = std::min(first + kAlong, columns.size);
    for (int64_t i = 0; i < rows.size; i += kLine) {
      for (int64_t j = first; j < end; j += kLine) copy_at(i, j);
    }
  }
}

/// A nest with the axis along which the source is contiguous moved next to the innermost one; true
/// when copying its two inner axes by tiles pays.
bool arrange_for_tiles(Nest& nest) {
  if (nest.count < 2 || nest.inner().strides[1] == 1) return false;
  const auto begin = nest.axes.begin(), end = begin + nest.count - 1;
  const auto along_source =
      std::find_if(begin, end, [](const Nest::Axis& axis) { return axis.strides[1] == 1; });
  if (along_source == end || along_source->size < 8 || nest.inner().size < 8) return false;
  std::rotate(along_source, along_source + 1, end);
  return true;
}

template <class T>
void copy_tiled(T* dst, const T* src, const Nest& nest) {
  const Nest::Axis& rows = nest.axes[static_cast<size_t>(nest.count - 2)];
  const Nest::Axis& columns = nest.inner();
  // The loop for steps of 1 reads further ahead: of the widest elements in memory it drops lines of
  // rows that lie a power of two apart before they are used up.
  constexpr int64_t kCachedBytes = 4 << 20;
  const auto bytes = nest.size() * static_cast<int64_t>(sizeof(T));
  const bool is_in_order = columns.strides[0] == 1 && (sizeof(T) < 16 || bytes <= kCachedBytes);
  const int64_t grain = kGrain / (kStrip * columns.size);
  for_each_strip(nest, kStrip, grain, [&](const auto& offsets, int64_t height) {
    const Nest::Axis strip{height, rows.strides};
    in_pieces(
        columns.size,
        [&](int64_t begin, int64_t end) {
          const Nest::Axis piece{end - begin, columns.strides};
          T* const to = dst + offsets[0] + begin * columns.strides[0];
          const T* const from = src + offsets[1] + begin * columns.strides[1];
          if (is_in_order) {
            copy_transposed(to, from, strip, piece, std::integral_constant<int64_t, 1>());
          } else {
            copy_transposed(to, from, strip, piece, columns.strides[0]);
          }
        },
        kLoopPiece / kStrip);
  });
}

/// Many equal elements: the first ones are copied, twice as many each time.
template <class T>
void fill_run(T* to, T value, int64_t count) {
  int64_t done = std::min<int64_t>(count, 64 / sizeof(T));
  std::fill_n(to, done, value);
  while (done < count) {
    const int64_t more = std::min(done, count - done);
    std::memcpy(to + done, to, static_cast<size_t>(more) * sizeof(T));
    done += more;
  }
}

/// Each source element several times in a row.
template <class T>
void repeat_often(T* to, const T* from, int64_t step, int64_t count, int64_t times) {
  for (int64_t i = 0; i < count; ++i) fill_run(to + i * times, from[i * step], times);
}
template <class T, class Times>
void repeat_each(T* to, const T* from, int64_t step, int64_t count, Times times) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = from[i * step];
    for (int64_t k = 0; k < times; ++k) to[i * times + k] = value;
  }
}

/// Whether the two inner axes repeat elements, side by side and not so often that one of them is
/// worth several threads.
bool repeats_elements(const Nest& nest) {
  constexpr int64_t kMostTimes = 1024;
  if (nest.count < 2 || nest.inner().size > kMostTimes) return false;
  const Nest::Axis& inner = nest.inner();
  return inner.strides[0] == 1 && inner.strides[1] == 0 &&
         nest.axes[static_cast<size_t>(nest.count - 2)].strides[0] == inner.size;
}

template <class T>
void copy_repeated(T* dst, const T* src, const Nest& nest) {
  const Nest::Axis& rows = nest.axes[static_cast<size_t>(nest.count - 2)];
  const int64_t times = nest.inner().size, step = rows.strides[1];
  const int64_t grain = kGrain / (kRepeatStrip * times);
  for_each_strip(nest, kRepeatStrip, grain, [&](const auto& offsets, int64_t count) {
    T* const to = dst + offsets[0];
    const T* const from = src + offsets[1];
    switch (times) {
      case 2:
        return repeat_each(to, from, step, count, std::integral_constant<int64_t, 2>());
      case 3:
        return repeat_each(to, from, step, count, std::integral_constant<int64_t, 3>());
      case 4:
        return repeat_each(to, from, step, count, std::integral_constant<int64_t, 4>());
      default:
        return times < 32 ? repeat_each(to, from, step, count, times)
                          : repeat_often(to, from, step, count, times);
    }
  });
}

void copy_rows(void* dst, const void* src, const Nest& nest, const RowCopier& copy) {
  const Nest::Axis inner = nest.inner();
  const int64_t rows = nest.outer_size();
  const auto to = [&](int64_t i) {
    return static_cast<char*>(dst) + i * static_cast<int64_t>(copy.to_size);
  };
  const auto from = [&](int64_t i) {
    return static_cast<const char*>(src) + i * static_cast<int64_t>(copy.from_size);
  };
  if (rows == 1) {
    backend::parallel_for(inner.size, kGrain, [&](int64_t begin, int64_t end) {
      copy(to(begin * inner.strides[0]), inner.strides[0], from(begin * inner.strides[1]),
           inner.strides[1], end - begin);
    });
    return;
  }
  if (inner.size <= kLoopPiece) {
    backend::parallel_for_each(rows, kGrain / inner.size, [&](int64_t row) {
      const auto offsets = nest.row_offsets(row);
      copy(to(offsets[0]), inner.strides[0], from(offsets[1]), inner.strides[1], inner.size);
    });
    return;
  }
  backend::parallel_for_each(rows, 1, [&](int64_t row) {
    const auto offsets = nest.row_offsets(row);
    backend::over_line(inner.size, [&](int64_t begin, int64_t end) {
      copy(to(offsets[0] + begin * inner.strides[0]), inner.strides[0],
           from(offsets[1] + begin * inner.strides[1]), inner.strides[1], end - begin);
    });
  });
}

template <class T>
void copy_bits(const Tensor& dst, const Tensor& src, Nest nest) {
  auto* const to = static_cast<T*>(dst.data());
  const auto* const from = static_cast<const T*>(src.data());
  if (repeats_elements(nest)) {
    copy_repeated(to, from, nest);
  } else if (arrange_for_tiles(nest)) {
    copy_tiled(to, from, nest);
  } else {
    copy_rows(dst.data(), src.data(), nest, {convert_each<T, T>, sizeof(T), sizeof(T), false});
  }
}

/// A conversion whose source is contiguous along the second innermost axis: tiles of it are turned
/// first, so that each of its cache lines is read once.
template <class T>
void convert_tiled(char* dst, const T* src, const Nest& nest, const RowCopier& copy) {
  constexpr int64_t kTileBytes = 32 << 10;  // a half of the first-level cache or more
  constexpr int64_t kWidth = kTileBytes / kStrip / static_cast<int64_t>(sizeof(T));
  const Nest::Axis& rows = nest.axes[static_cast<size_t>(nest.count - 2)];
  const Nest::Axis& columns = nest.inner();
  const auto to_bytes = static_cast<int64_t>(copy.to_size);
  const int64_t grain = kGrain / (kStrip * columns.size);
  for_each_strip(nest, kStrip, grain, [&](const auto& offsets, int64_t height) {
    alignas(64) T tile[kStrip * kWidth];
    for (int64_t begin = 0; begin < columns.size; begin += kWidth) {
      const int64_t width = std::min(kWidth, columns.size - begin);
      const Nest::Axis down{height, {kWidth, rows.strides[1]}},
          across{width, {1, columns.strides[1]}};
      copy_transposed(tile, src + offsets[1] + begin * columns.strides[1], down, across,
                      std::integral_constant<int64_t, 1>());
      for (int64_t row = 0; row < height; ++row) {
        const int64_t place = offsets[0] + row * rows.strides[0] + begin * columns.strides[0];
        copy(dst + place * to_bytes, columns.strides[0],
             reinterpret_cast<const char*>(tile + row * kWidth), 1, width);
      }
    }
  });
}

void convert_all(const Tensor& dst, const Tensor& src, Nest nest, const RowCopier& copy) {
  if (!arrange_for_tiles(nest)) return copy_rows(dst.data(), src.data(), nest, copy);
  with_word(itemsize(src.dtype()), [&](auto word) {
    convert_tiled(static_cast<char*>(dst.data()), static_cast<const decltype(word)*>(src.data()),
                  nest, copy);
  });
}

void copy_same_dtype(const Tensor& dst, const Tensor& src, const Nest& nest) {
  with_word(itemsize(dst.dtype()), [&](auto word) { copy_bits<decltype(word)>(dst, src, nest); });
}

}  // namespace

void strided_copy_cpu(const Tensor& dst, const Tensor& src) {
  const Nest nest = make_loop_nest<2>(dst.shape(), {&dst.strides(), &src.strides()});
  if (dst.dtype() == src.dtype()) return copy_same_dtype(dst, src, nest);
  visit_dtype(AllTypes{}, dst.dtype(), "copy", [&](auto to) {
    visit_dtype(AllTypes{}, src.dtype(), "copy", [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      if constexpr (!std::is_same_v<To, From> && is_convertible<To, From>) {
        convert_all(dst, src, nest,
                    {convert_each<To, From>, sizeof(To), sizeof(From), true,
                     jit::block_table().cast(src.dtype(), dst.dtype())});
      }
    });
  });
}

}  // namespace cuop::kernels
