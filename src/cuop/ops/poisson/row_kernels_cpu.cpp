#include <algorithm>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/poisson/five_point_arguments.cuh"
#include "cuop/ops/poisson/row_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15;  ///< cells

template <class T>
const FivePointLoops<T>& loops() {
  static const FivePointLoops<T>& chosen = isa::choose(
      []<class Level>(Level) -> const FivePointLoops<T>& { return five_point_loops<Level, T>(); });
  return chosen;
}

/// The first column that is neither an edge nor of another kind.
int64_t first_inner(int64_t kind) { return kind == 1 ? 1 : 2; }

/// Successive passes over rows, one behind the other: row i of a pass follows row i + 1 of the pass
/// before it, so that all passes find their rows in the cache. Bands of rows run in parallel: each
/// does what needs no other band's rows, a row less at either side with each pass; what is missing
/// around an edge between two bands follows when both are done. In place, as a pass changes
/// nothing that another cell of its colour reads.
template <class T>
class Relaxation {
 public:
  Relaxation(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
             const std::vector<int>& colours, double omega)
      : grid_(grid_rows(op, first)),
        u_(u.data<T>()),
        b_(b.data<T>()),
        rows_(u.shape(0)),
        colours_(colours),
        omega_(static_cast<T>(omega)) {}

  void run() const {
    const auto passes = static_cast<int64_t>(colours_.size());
    const int64_t shares = 3 * backend::thread_count();
    const int64_t least = std::max(4 * passes, kGrain / grid_.width);
    const int64_t bands = std::max<int64_t>(1, std::min(shares, rows_ / least));
    const auto edge = [&](int64_t band) { return rows_ * band / bands; };
    backend::parallel_for_each(bands, 1, [&](int64_t band) { inside(edge(band), edge(band + 1)); });
    backend::parallel_for_each(bands - 1, 1, [&](int64_t band) { around(edge(band + 1)); });
  }

 private:
  void inside(int64_t low, int64_t high) const {
    const auto passes = static_cast<int64_t>(colours_.size());
    for (int64_t newest = low + 1; newest < high + passes; ++newest) {
      for (int64_t pass = 0; pass < passes; ++pass) {
        const int64_t row = newest - pass;
        if (row > low + pass && row < high - 1 - pass) relax(row, pass);
      }
    }
  }

  void around(int64_t edge) const {
    for (int64_t pass = 0; pass < static_cast<int64_t>(colours_.size()); ++pass) {
      for (int64_t row = edge - 1 - pass; row < edge + 1 + pass; ++row) relax(row, pass);
    }
  }

  void relax(int64_t index, int64_t pass) const {
    if (!grid_.has_row(index)) return;
    const int64_t at_row = grid_.row(index), width = grid_.width;
    const int64_t kind = grid_.kind_of_columns(at_row, colours_[static_cast<size_t>(pass)]);
    T* const row = u_ + index * width;
    const T* const b = b_ + (index - 1) * width;
    const auto edge = [&](int64_t column) {
      if (grid_.kind(column, width) != kind) return;
      row[column] = jit::relaxed(grid_, row, b[column], omega_, at_row, column);
    };
    edge(0);
    const int64_t begin = first_inner(kind);
    if (kind < 2 && begin < width - 1) {
      const RowCells<T> cells{row - width + begin,        row + width + begin,          b + begin,
                              static_cast<T>(grid_.down), static_cast<T>(grid_.across), T{0}};
      loops<T>().relax(cells, grid_.inverse<T>(at_row, 1), omega_, width - 1 - begin, row + begin);
    }
    if (width > 1) edge(width - 1);
  }

  jit::GridRows grid_;
  T* u_;
  const T* b_;
  int64_t rows_;
  const std::vector<int>& colours_;
  T omega_;
};

template <class T>
double residual_row(const jit::GridRows& grid, int64_t index, const T* row, const T* b, T* out) {
  const int64_t at_row = grid.row(index), width = grid.width;
  double sum = 0.0;
  if (width > 2) {
    const RowCells<T> cells{row - width + 1,
                            row + width + 1,
                            b == nullptr ? nullptr : b + 1,
                            static_cast<T>(grid.down),
                            static_cast<T>(grid.across),
                            grid.diagonal<T>(at_row, 1)};
    sum = loops<T>().residual(cells, row + 1, width - 2, out == nullptr ? nullptr : out + 1);
  }
  for (int64_t j = 0; j < width; j += std::max<int64_t>(1, width - 1)) {
    const T rest = jit::residual_at(grid, row, b, at_row, j);
    if (out != nullptr) out[j] = rest;
    sum += static_cast<double>(rest) * static_cast<double>(rest);
  }
  return sum;
}

int64_t row_grain(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

}  // namespace

void relax_cpu(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
               const std::vector<int>& colours, double omega) {
  visit_dtype(FloatTypes{}, u.dtype(), "relax_rows",
              [&]<class T>(TypeTag<T>) { Relaxation<T>(op, u, b, first, colours, omega).run(); });
}

void five_point_residual_cpu(const FivePoint& op, const Tensor& padded, const Tensor& b,
                             int64_t first, const Tensor& out, const Tensor& squares) {
  const jit::GridRows grid = grid_rows(op, first);
  double* const sums = squares.data<double>();
  visit_dtype(FloatTypes{}, padded.dtype(), "residual_rows", [&]<class T>(TypeTag<T>) {
    const T* const u = padded.data<T>() + op.width;
    const T* const f = b.is_defined() ? b.data<T>() : nullptr;
    T* const to = out.is_defined() ? out.data<T>() : nullptr;
    backend::parallel_for_each(squares.size(), row_grain(op.width), [&](int64_t i) {
      const int64_t at = i * op.width;
      sums[i] = residual_row(grid, i, u + at, f == nullptr ? nullptr : f + at,
                             to == nullptr ? nullptr : to + at);
    });
  });
}

void row_dots_cpu(const Tensor& x, const Tensor& y, const Tensor& dots) {
  double* const sums = dots.data<double>();
  const int64_t width = x.shape(1);
  visit_dtype(FloatTypes{}, x.dtype(), "dots_of_rows", [&]<class T>(TypeTag<T>) {
    const T* const a = x.data<T>();
    const T* const b = y.data<T>();
    backend::parallel_for_each(dots.size(), row_grain(width), [&](int64_t i) {
      sums[i] = loops<T>().dot(a + i * width, b + i * width, width);
    });
  });
}

void resample_cpu(const Tensor& in, const BandTable& down, const BandTable& across,
                  const Tensor& out, bool is_added) {
  const int64_t in_width = in.shape(1), width = out.shape(1), taps = across.taps;
  const int64_t* const first_row = down.first.data<int64_t>();
  const int64_t* const first_column = across.first.data<int64_t>();
  // Columns that read nothing beyond the sides, on which the others go around.
  const auto is_inner = [&](int64_t j) {
    return first_column[j] >= 0 && first_column[j] + taps <= in_width;
  };
  int64_t begin = 0, end = width;
  while (begin < end && !is_inner(begin)) ++begin;
  while (begin < end && !is_inner(end - 1)) --end;
  visit_dtype(FloatTypes{}, in.dtype(), "resample_rows", [&]<class T>(TypeTag<T>) {
    const T* const by_row = down.weights.data<T>();
    const T* const by_column = across.weights.data<T>();
    const auto make_row = [&](int64_t row, std::vector<T>& made) {
      // Rows are put together first, then columns.
      std::vector<const T*> rows;
      for (int64_t n = 0; n < down.taps; ++n) {
        rows.push_back(in.data<T>() + (first_row[row] + n) * in_width);
      }
      loops<T>().combine(rows.data(), by_row + row * down.taps, down.taps, in_width, made.data());
      T* const to = out.data<T>() + row * width;
      const auto edge = [&](int64_t j) {
        T sum{0};
        for (int64_t k = 0; k < taps; ++k) {
          int64_t from = first_column[j] + k;
          if (from < 0) from += in_width;
          if (from >= in_width) from -= in_width;
          const T term = by_column[j * taps + k] * made[static_cast<size_t>(from)];
          sum = k == 0 ? term : sum + term;
        }
        to[j] = is_added ? to[j] + sum : sum;
      };
      for (int64_t j = 0; j < begin; ++j) edge(j);
      loops<T>().gather(made.data(), first_column + begin, by_column + begin * taps, taps,
                        end - begin, is_added, to + begin);
      for (int64_t j = end; j < width; ++j) edge(j);
    };
    backend::parallel_for(out.shape(0), row_grain(width), [&](int64_t low, int64_t high) {
      std::vector<T> made(static_cast<size_t>(in_width));
      for (int64_t row = low; row < high; ++row) make_row(row, made);
    });
  });
}

}  // namespace cuop::kernels
