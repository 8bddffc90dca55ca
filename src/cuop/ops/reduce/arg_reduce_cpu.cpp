// Positions of extremes. Along memory: each lane of vectors remembers its best. Across memory: best
// and position of a tile of columns, row by row.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/reduce/fold.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

/// Elements that are loaded, or searched, in one go.
template <class T>
constexpr int64_t kBlock = 4096 / static_cast<int64_t>(sizeof(T));
constexpr int64_t kPart = 1 << 16;
constexpr int64_t kArgColumns = 1024;
constexpr int64_t kGrain = 1 << 15;

template <class T>
bool is_nan(T x) {
  return x != x;
}

/// How x is read, and the kernels for its elements.
struct Source {
  const std::byte* data;
  int64_t itemsize;
  int64_t stride;  ///< along the axis
  bool is_direct;  ///< the element type is the dtype
  LoadFunction load;
  ArgUpdate update;
  ArgRow row;
  bool is_max;
  bool is_bool;

  const std::byte* at(int64_t offset) const { return data + offset * itemsize; }
};

/// n elements from `offset`, `step` apart, as T.
template <class T>
const T* elements(const Source& source, int64_t offset, int64_t step, int64_t n, T* scratch) {
  if (source.is_direct && step == 1) return reinterpret_cast<const T*>(source.at(offset));
  source.load(source.at(offset), step, scratch, n);
  return scratch;
}

template <class T>
struct Best {
  T value;
  int64_t position;
};

template <class T>
bool is_better(bool is_max, T x, T best) {
  if (is_nan(best)) return false;
  return is_nan(x) || (is_max ? x > best : x < best);
}

/// Among elements [begin, end) of the line that starts at `offset`: the first that cannot be
/// bettered, else all are alike.
Best<uint8_t> best_of_bools(const Source& source, int64_t offset, int64_t begin, int64_t end) {
  constexpr int64_t kStep = kBlock<uint8_t>;
  uint8_t scratch[kStep];
  const uint8_t wanted = source.is_max ? 1 : 0;
  for (int64_t first = begin; first < end; first += kStep) {
    const int64_t count = std::min(kStep, end - first);
    const uint8_t* const data =
        elements(source, offset + first * source.stride, source.stride, count, scratch);
    const void* const place = std::memchr(data, wanted, static_cast<size_t>(count));
    if (place != nullptr) return {wanted, first + (static_cast<const uint8_t*>(place) - data)};
  }
  return {static_cast<uint8_t>(1 - wanted), begin};
}

/// The same of other elements.
template <class T>
Best<T> best_of_run(const Source& source, int64_t offset, int64_t begin, int64_t end) {
  T scratch[kBlock<T>];
  Best<T> best{};
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (source.is_bool) return best_of_bools(source, offset, begin, end);
  }
  const bool is_dense = source.is_direct && source.stride == 1;
  const int64_t step = is_dense ? end - begin : kBlock<T>;
  for (int64_t first = begin; first < end; first += step) {
    T value;
    const int64_t count = std::min(step, end - first);
    const T* const data =
        elements<T>(source, offset + first * source.stride, source.stride, count, scratch);
    const int64_t place = source.row(data, count, &value);
    if (first != begin && !is_better(source.is_max, value, best.value)) continue;
    best = {value, first + place};
  }
  return best;
}

template <class T>
int64_t best_of_line(const Source& source, int64_t offset, int64_t length) {
  if (length <= kPart) return best_of_run<T>(source, offset, 0, length).position;
  std::vector<Best<T>> parts(static_cast<size_t>(divide_up(length, kPart)));
  backend::parallel_for_each(static_cast<int64_t>(parts.size()), 1, [&](int64_t i) {
    parts[static_cast<size_t>(i)] =
        best_of_run<T>(source, offset, i * kPart, std::min((i + 1) * kPart, length));
  });
  Best<T> best = parts[0];
  for (const Best<T>& part : parts) {
    if (is_better(source.is_max, part.value, best.value)) best = part;
  }
  return best.position;
}

/// `width` neighbouring lines, `step` apart.
template <class T>
void best_of_lines(const Source& source, int64_t offset, int64_t step, int64_t width,
                   int64_t length, int64_t* result, int64_t result_step) {
  T best[kArgColumns], scratch[kArgColumns];
  int64_t position[kArgColumns] = {};
  std::copy_n(elements<T>(source, offset, step, width, scratch), width, best);
  for (int64_t i = 1; i < length; ++i) {
    const T* row = elements<T>(source, offset + i * source.stride, step, width, scratch);
    source.update(best, position, row, i, width);
  }
  for (int64_t j = 0; j < width; ++j) result[j * result_step] = position[j];
}

template <class T>
void run(const Source& source, const LoopNest<2>& kept, int64_t length, int64_t* result) {
  const auto& inner = kept.inner();
  const auto magnitude = [](int64_t stride) { return stride < 0 ? -stride : stride; };
  const bool by_columns = inner.size >= 4 && magnitude(inner.strides[0]) < magnitude(source.stride);
  const int64_t tile = by_columns ? std::min(inner.size, kArgColumns) : 1;
  const int64_t tiles = divide_up(inner.size, tile);
  const int64_t tasks = kept.outer_size() * tiles;
  const auto work = [&](int64_t task) {
    const auto [row, tile_of_row] = divided(task, tiles);
    const auto offsets = kept.row_offsets(row);
    const int64_t first = tile_of_row * tile;
    const int64_t from = offsets[0] + first * inner.strides[0];
    int64_t* to = result + offsets[1] + first * inner.strides[1];
    if (by_columns) {
      best_of_lines<T>(source, from, inner.strides[0], std::min(tile, inner.size - first), length,
                       to, inner.strides[1]);
    } else {
      *to = best_of_line<T>(source, from, length);
    }
  };
  if (tasks == 1) return work(0);  // so that a single line can be divided
  backend::parallel_for_each(tasks, kGrain / (length * tile), work);
}

}  // namespace

void arg_reduce_cpu(const Tensor& x, int axis, bool is_max, const Tensor& result) {
  const FoldInput input = fold_input({is_max ? ReduceKind::kMax : ReduceKind::kMin}, x.dtype());
  const DType element = input.element;
  const Source source{
      .data = static_cast<const std::byte*>(x.data()),
      .itemsize = itemsize(x.dtype()),
      .stride = x.strides()[axis],
      .is_direct = x.dtype() == element || x.dtype() == DType::kBool,
      .load = load_cpu(LoadMap::kValue, x.dtype(), element),
      .update = isa::choose([&]<class Level>(Level) { return arg_update<Level>(is_max, element); }),
      .row = isa::choose([&]<class Level>(Level) { return arg_row<Level>(is_max, element); }),
      .is_max = is_max,
      .is_bool = is_bool(x.dtype()),
  };
  const LoopNest<2> kept = make_loop_nest<2>(result.shape(), {&x.strides(), &result.strides()});
  visit_dtype(OrderedTypes{}, element, is_max ? "argmax" : "argmin", [&]<class T>(TypeTag<T>) {
    run<T>(source, kept, x.shape(axis), result.data<int64_t>());
  });
}

}  // namespace cuop::kernels
