#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/stencil/stencil.h"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop::kernels {

namespace {

/// Several sweeps in one pass over memory. Rows flow through the sweeps like through a pipeline:
/// when row v has been read, sweep 1 can do row v - r, sweep 2 row v - 2r, and so on, so each sweep
/// keeps only its last 2r + 1 rows, in cache. Bands of rows run in parallel and each computes the
/// rows of its halos itself; the results are those of one sweep after the other.
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
    backend::parallel_for_each(
        bands, 1, [&](int64_t i) { run_band(i * band, std::min(height, (i + 1) * band)); });
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

template <class T>
const JacobiLoops<T>& loops() {
  static const JacobiLoops<T>& chosen = isa::choose(
      []<class Level>(Level) -> const JacobiLoops<T>& { return jacobi_loops<Level, T>(); });
  return chosen;
}

/// The element at any column: wrapped around, or 0 outside.
template <class T>
T at_column(const T* row, int64_t column, int64_t width, Boundary boundary) {
  if (column >= 0 && column < width) return row[column];
  if (boundary == Boundary::kZero) return T{0};
  return row[((column % width) + width) % width];
}

/// One row of a stencil from the 2r+1 rows around it.
template <class T>
class TapRow {
 public:
  TapRow(const TapList& list, int64_t width, Boundary boundary)
      : list_(list), width_(width), boundary_(boundary) {
    for (const Tap& tap : list.taps) weights_.push_back(convert<T>(tap.weight));
  }

  void operator()(const T* const* rows, T* out) const {
    // Columns whose neighbours are all inside go through the vector loop.
    const int64_t begin = std::min(list_.column_radius, width_);
    const int64_t end = std::max(begin, width_ - list_.column_radius);
    for (int64_t j = 0; j < begin; ++j) out[j] = edge(rows, j);
    for (int64_t j = end; j < width_; ++j) out[j] = edge(rows, j);
    if (begin == end) return;
    std::vector<const T*> inputs;
    inputs.reserve(list_.taps.size());
    for (const Tap& tap : list_.taps) inputs.push_back(row_of(rows, tap) + begin + tap.column);
    static const WeightedSum<T> add =
        isa::choose([]<class Level>(Level) { return weighted_sum<Level, T>(); });
    add(inputs.data(), weights_.data(), static_cast<int64_t>(inputs.size()), end - begin,
        out + begin);
  }

 private:
  const T* row_of(const T* const* rows, const Tap& tap) const {
    return rows[tap.row + list_.row_radius];
  }
  T edge(const T* const* rows, int64_t j) const {
    T sum{0};
    for (size_t n = 0; n < list_.taps.size(); ++n) {
      const Tap& tap = list_.taps[n];
      const T term =
          times(weights_[n], at_column(row_of(rows, tap), j + tap.column, width_, boundary_));
      sum = n == 0 ? term : sum + term;
    }
    return sum;
  }

  const TapList& list_;
  int64_t width_;
  Boundary boundary_;
  std::vector<T> weights_;
};

/// One row of a Jacobi sweep; returns the sum of squares of the update of columns [first, last).
template <class T>
class JacobiRow {
 public:
  JacobiRow(double dx, int64_t width, Boundary boundary, int64_t first = 0,
            int64_t last = INT64_MAX)
      : dx2_(static_cast<T>(dx * dx)),
        width_(width),
        boundary_(boundary),
        first_(first),
        last_(last) {}

  double operator()(const T* const* rows, const T* rhs, T* out) const {
    const int64_t end = std::max<int64_t>(1, width_ - 1);
    const int64_t from = std::clamp<int64_t>(first_, 1, end);
    const int64_t to = std::clamp<int64_t>(last_, from, end);
    inner(rows, rhs, out, 1, from);
    double norm = inner(rows, rhs, out, from, to);
    inner(rows, rhs, out, to, end);
    for (int64_t j = 0; j < width_; j += std::max<int64_t>(1, width_ - 1)) {
      const T west = at_column(rows[1], j - 1, width_, boundary_);
      const T east = at_column(rows[1], j + 1, width_, boundary_);
      out[j] = (((rows[0][j] + rows[2][j]) + (west + east)) - dx2_ * rhs[j]) * T(0.25);
      const double update = static_cast<double>(out[j] - rows[1][j]);
      if (j >= first_ && j < last_) norm += update * update;
    }
    return norm;
  }

 private:
  /// Columns that have neighbours on both sides; the sum of squares of their update.
  double inner(const T* const* rows, const T* rhs, T* out, int64_t begin, int64_t end) const {
    if (begin >= end) return 0.0;
    return loops<T>().jacobi(rows[0] + begin, rows[2] + begin, rows[1] + begin, rhs + begin, dx2_,
                             end - begin, out + begin);
  }

  T dx2_;
  int64_t width_;
  Boundary boundary_;
  int64_t first_, last_;
};

template <class T>
double residual_row(const T* const* rows, const T* rhs, double scale, int64_t width,
                    Boundary boundary) {
  const int64_t inner = std::max<int64_t>(0, width - 2);
  double norm = 0.0;
  if (inner > 0) {
    norm = loops<T>().residual(rows[0] + 1, rows[2] + 1, rows[1] + 1, rhs + 1, scale, inner);
  }
  for (int64_t j = 0; j < width; j += std::max<int64_t>(1, width - 1)) {
    const double west = static_cast<double>(at_column(rows[1], j - 1, width, boundary));
    const double east = static_cast<double>(at_column(rows[1], j + 1, width, boundary));
    const double sum =
        (static_cast<double>(rows[0][j]) + static_cast<double>(rows[2][j])) + (west + east);
    const double laplacian = (sum - 4.0 * static_cast<double>(rows[1][j])) * scale;
    const double rest = static_cast<double>(rhs[j]) - laplacian;
    norm += rest * rest;
  }
  return norm;
}

/// Calls step(rows, i) for every row i of a grid whose halo rows lie in `padded`, in parallel.
template <class T, class Step>
void for_padded_rows(const T* padded, int64_t height, int64_t width, int64_t radius, Step&& step) {
  constexpr int64_t kGrain = 1 << 15;
  backend::parallel_for(height, kGrain / std::max<int64_t>(1, width),
                        [&](int64_t begin, int64_t end) {
                          std::vector<const T*> rows(static_cast<size_t>(2 * radius + 1));
                          for (int64_t i = begin; i < end; ++i) {
                            for (size_t k = 0; k < rows.size(); ++k) {
                              rows[k] = padded + (i + static_cast<int64_t>(k)) * width;
                            }
                            step(rows.data(), i);
                          }
                        });
}

}  // namespace

int64_t sweeps_per_pass(int64_t width, int64_t row_radius, int64_t itemsize) {
  constexpr int64_t kCacheBytes = 512 << 10;  // half of a second-level cache
  constexpr int64_t kMost = 16;
  const int64_t kept = (2 * row_radius + 1) * std::max<int64_t>(1, width) * itemsize;
  return std::clamp<int64_t>(kCacheBytes / kept, 1, kMost);
}

void stencil_cpu(const Tensor& grid, const TapList& taps, Boundary boundary, int64_t sweeps,
                 const Tensor& out) {
  if (is_by_parts(grid, taps)) {
    return stencil_cpu(by_parts(grid), by_parts(taps), boundary, sweeps, by_parts(out));
  }
  visit_dtype(FloatComplexTypes{}, grid.dtype(), "stencil", [&]<class T>(TypeTag<T>) {
    const TapRow<T> row(taps, grid.shape(1), boundary);
    RowPipeline<T> pipeline{grid.data<T>(),  out.data<T>(), grid.shape(0), grid.shape(1),
                            taps.row_radius, sweeps,        boundary,      {},
                            nullptr};
    pipeline.step = [&](const T* const* rows, int64_t, T* to) {
      row(rows, to);
      return 0.0;
    };
    pipeline.run();
  });
}

void stencil_rows_cpu(const Tensor& padded, const TapList& taps, Boundary boundary,
                      const RowSweeps& sweeps, const Tensor& out) {
  if (is_by_parts(padded, taps)) {
    return stencil_rows_cpu(by_parts(padded), by_parts(taps), boundary, sweeps, by_parts(out));
  }
  visit_dtype(FloatComplexTypes{}, padded.dtype(), "stencil", [&]<class T>(TypeTag<T>) {
    const int64_t width = out.shape(1);
    const TapRow<T> row(taps, width, boundary);
    T* to = out.data<T>();
    for_padded_rows(padded.data<T>(), out.shape(0), width, taps.row_radius,
                    [&](const T* const* rows, int64_t i) { row(rows, to + i * width); });
  });
}

void jacobi_cpu(const Tensor& u, const Tensor& rhs, double dx, Boundary boundary, int64_t sweeps,
                const Tensor& out, double* row_norms, int64_t) {
  visit_dtype(FloatTypes{}, u.dtype(), "stencil", [&]<class T>(TypeTag<T>) {
    const JacobiRow<T> row(dx, u.shape(1), boundary);
    const T* f = rhs.data<T>();
    RowPipeline<T> pipeline{u.data<T>(), out.data<T>(), u.shape(0), u.shape(1), 1,
                            sweeps,      boundary,      {},         row_norms};
    pipeline.step = [&](const T* const* rows, int64_t i, T* to) {
      return row(rows, f + i * u.shape(1), to);
    };
    pipeline.run();
  });
}

void jacobi_rows_cpu(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                     const RowSweeps& sweeps, const Tensor& out, const Tensor& row_norms) {
  auto* const norms = row_norms.size() > 0 ? row_norms.data<double>() : nullptr;
  visit_dtype(FloatTypes{}, padded.dtype(), "stencil", [&]<class T>(TypeTag<T>) {
    const int64_t width = out.shape(1);
    const JacobiRow<T> row(dx, width, boundary, sweeps.first_column, sweeps.last_column);
    const T* f = rhs.data<T>();
    T* to = out.data<T>();
    for_padded_rows(padded.data<T>(), out.shape(0), width, 1, [&](const T* const* rows, int64_t i) {
      const double norm = row(rows, f + i * width, to + i * width);
      if (norms != nullptr) norms[i] = norm;
    });
  });
}

void residual_rows_cpu(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                       const Tensor& row_norms) {
  auto* const norms = row_norms.data<double>();
  visit_dtype(FloatTypes{}, padded.dtype(), "stencil", [&]<class T>(TypeTag<T>) {
    const int64_t width = rhs.shape(1);
    const T* f = rhs.data<T>();
    for_padded_rows(padded.data<T>(), rhs.shape(0), width, 1, [&](const T* const* rows, int64_t i) {
      norms[i] = residual_row(rows, f + i * width, 1.0 / (dx * dx), width, boundary);
    });
  });
}

bool is_by_parts(const Tensor& grid, const TapList& list) {
  return is_complex(grid.dtype()) &&
         std::all_of(list.taps.begin(), list.taps.end(),
                     [](const Tap& tap) { return tap.weight.imag() == 0.0; });
}

Tensor by_parts(const Tensor& grid) {
  return reshape(as_real(grid), {grid.shape(0), 2 * grid.shape(1)});
}

TapList by_parts(TapList list) {
  list.column_radius *= 2;
  for (Tap& tap : list.taps) tap.column *= 2;
  return list;
}

}  // namespace cuop::kernels
