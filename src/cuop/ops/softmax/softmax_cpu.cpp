#include <algorithm>
#include <memory>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/long_loop.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/softmax/softmax_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kBatch = 4096;     // elements of short rows treated together
constexpr int64_t kTile = 32768;     // elements of a tile of columns, at home in L2
constexpr int64_t kGrain = 1 << 14;  // exponentials that are worth a thread

using jit::Computed;

template <class T>
std::unique_ptr<T[]> allocate(int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
}

/// [outer, n] in memory.
template <class Stored>
void softmax_rows(const SoftmaxLoops<Computed<Stored>>& loops, const Stored* x, Stored* y,
                  int64_t outer, int64_t n, bool is_log) {
  using T = Computed<Stored>;
  const int64_t batch = std::max<int64_t>(1, kBatch / n);
  backend::parallel_for(outer, kGrain / n, [&](int64_t begin, int64_t end) {
    std::unique_ptr<T[]> scratch;
    if constexpr (!std::is_same_v<Stored, T>)
      scratch = allocate<T>(std::min(batch, end - begin) * n);
    for (; begin < end; begin += batch) {
      const int64_t count = std::min(batch, end - begin);
      if constexpr (std::is_same_v<Stored, T>) {
        loops.rows(x + begin * n, y + begin * n, count, n, is_log);
      } else {
        T* const room = scratch.get();
        const Stored* const given = x + begin * n;
        Stored* const result = y + begin * n;
        in_pieces(count * n, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) room[i] = given[i];
        });
        loops.rows(room, room, count, n, is_log);
        in_pieces(count * n, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) result[i] = Stored(room[i]);
        });
      }
    }
  });
}

/// [outer, n, inner] in memory, along n.
template <class Stored>
void softmax_columns(const SoftmaxLoops<Computed<Stored>>& loops, const Stored* x, Stored* y,
                     int64_t outer, int64_t n, int64_t inner, bool is_log) {
  using T = Computed<Stored>;
  constexpr int64_t kMaxWidth = SoftmaxLoops<T>::kMaxWidth;
  const int64_t width = std::min(inner, std::clamp<int64_t>(kTile / n / 16 * 16, 16, kMaxWidth));
  const int64_t tiles = divide_up(inner, width);
  const int64_t grain = kGrain / (n * width);
  backend::parallel_for(outer * tiles, grain, [&](int64_t begin, int64_t end) {
    std::unique_ptr<T[]> scratch;
    if constexpr (!std::is_same_v<Stored, T>) scratch = allocate<T>(n * width);
    for (; begin < end; ++begin) {
      const int64_t first = begin % tiles * width, columns = std::min(width, inner - first);
      const int64_t start = begin / tiles * n * inner + first;
      if constexpr (std::is_same_v<Stored, T>) {
        loops.columns(x + start, y + start, n, inner, columns, is_log);
      } else {
        Lookout lookout;
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t j = 0; j < columns; ++j) scratch[r * columns + j] = x[start + r * inner + j];
          lookout.after(columns);
        }
        loops.columns(scratch.get(), scratch.get(), n, columns, columns, is_log);
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t j = 0; j < columns; ++j) {
            y[start + r * inner + j] = Stored(scratch[r * columns + j]);
          }
          lookout.after(columns);
        }
      }
    }
  });
}

}  // namespace

void softmax_cpu(const Tensor& x, int axis, bool is_log, const Tensor& out) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape(i);
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape(i);
  const int64_t n = x.shape(axis);
  visit_dtype(FloatingTypes{}, x.dtype(), is_log ? "log_softmax" : "softmax",
              [&]<class Stored>(TypeTag<Stored>) {
                const auto& loops = isa::choose([]<class Level>(Level) -> const auto& {
                  return softmax_loops<Level, Computed<Stored>>();
                });
                const Stored* from = x.data<Stored>();
                if (inner == 1) {
                  softmax_rows(loops, from, out.data<Stored>(), outer, n, is_log);
                } else {
                  softmax_columns(loops, from, out.data<Stored>(), outer, n, inner, is_log);
                }
              });
}

}  // namespace cuop::kernels
