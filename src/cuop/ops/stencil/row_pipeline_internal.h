// Several sweeps of a stencil in one pass over memory. Rows flow through the sweeps like through a
// pipeline: when row v has been read, sweep 1 can do row v - r, sweep 2 row v - 2r, and so on, so
// each sweep keeps only its last 2r + 1 rows, in cache. Bands of rows run in parallel and each
// computes the rows of its halos itself; the results are those of one sweep after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/stencil/stencil.h"

namespace cuop::kernels {

template <class T>
struct RowPipeline {
  const T* source = nullptr;  ///< [height, width], contiguous
  T* out = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t radius = 1;  ///< rows
  int64_t sweeps = 1;
  Boundary boundary = Boundary::kZero;
  /// Makes row `row` from the 2r+1 rows around it; its result goes to norms[sweep * height + row].
  std::function<double(const T* const* rows, int64_t row, T* out)> step;
  double* norms = nullptr;

  void run() const {
    const int64_t halo = sweeps * radius;
    // Bands that are long against their halos, yet enough of them for all threads.
    const int64_t shares = 3 * backend::thread_count();
    const int64_t band = std::max(divide_up(height, shares), std::max<int64_t>(8 * halo, 16));
    const int64_t bands = divide_up(height, band);
    backend::parallel_for(bands, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_band(i * band, std::min(height, (i + 1) * band));
    });
  }

 private:
  /// The rows that a band's sweeps keep: rows[sweep][row mod (2r+1)]; the last sweep has none.
  struct Kept {
    explicit Kept(const RowPipeline& p)
        : depth(2 * p.radius + 1),
          width(p.width),
          values(static_cast<size_t>((p.sweeps - 1) * depth * width)),
          zeros(static_cast<size_t>(width), T{0}) {}
    T* row(int64_t sweep, int64_t index) {
      const int64_t slot = ((index % depth) + depth) % depth;
      return values.data() + ((sweep - 1) * depth + slot) * width;
    }
    int64_t depth;
    int64_t width;
    std::vector<T> values;
    std::vector<T> zeros;
  };

  bool is_outside(int64_t row) const { return row < 0 || row >= height; }
  int64_t wrapped(int64_t row) const { return ((row % height) + height) % height; }

  const T* find_row(Kept& kept, int64_t sweep, int64_t row) const {
    if (boundary == Boundary::kZero && is_outside(row)) return kept.zeros.data();
    return sweep == 0 ? source + wrapped(row) * width : kept.row(sweep, row);
  }

  void run_band(int64_t first, int64_t last) const {
    Kept kept(*this);
    std::vector<const T*> rows(static_cast<size_t>(kept.depth));
    const int64_t halo = sweeps * radius;
    for (int64_t newest = first - halo; newest < last + halo; ++newest) {
      for (int64_t sweep = 1; sweep <= sweeps; ++sweep) {
        const int64_t row = newest - sweep * radius;
        const int64_t margin = (sweeps - sweep) * radius;
        if (row < first - margin || row >= last + margin) continue;
        if (boundary == Boundary::kZero && is_outside(row)) continue;
        for (int64_t k = 0; k < kept.depth; ++k) {
          rows[static_cast<size_t>(k)] = find_row(kept, sweep - 1, row - radius + k);
        }
        T* to = sweep == sweeps ? out + row * width : kept.row(sweep, row);
        const double norm = step(rows.data(), wrapped(row), to);
        if (norms != nullptr && row >= first && row < last) {
          norms[(sweep - 1) * height + row] = norm;
        }
      }
    }
  }
};

}  // namespace cuop::kernels
