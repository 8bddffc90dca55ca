#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/long_loop.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/norm/norm_kernels.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

using jit::Computed;

template <class T>
const NormLoops<T>& loops() {
  return isa::choose(
      []<class Level>(Level) -> const NormLoops<T>& { return norm_loops<Level, T>(); });
}

/// Runs body(x, y, n) on a row of the compute type, with 16-bit rows converted there and back.
template <class Stored, class Body>
void on_row(const Stored* x, Stored* y, int64_t n, Computed<Stored>* scratch, Body&& body) {
  if constexpr (std::is_same_v<Stored, Computed<Stored>>) {
    body(x, y);
  } else {
    in_pieces(n, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) scratch[i] = x[i];
    });
    body(scratch, scratch);
    in_pieces(n, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Stored(scratch[i]);
    });
  }
}

template <class Stored>
std::unique_ptr<Computed<Stored>[]> scratch_row(int64_t n) {
  if (std::is_same_v<Stored, Computed<Stored>>) return nullptr;
  return std::make_unique_for_overwrite<Computed<Stored>[]>(static_cast<size_t>(n));
}

/// y[i] = (x[i] - mean) * scale + shift, of a row that may be long.
template <class T>
void shift_row(const T* x, T* y, int64_t n, double mean, double scale, double shift) {
  in_pieces(n, [&](int64_t begin, int64_t end) {
    loops<T>().constant(x + begin, y + begin, end - begin, mean, scale, shift);
  });
}

template <class T>
void normalize_row(const Fold& moments_fold, const RowNorm& norm, const T* gamma, const T* beta,
                   const T* x, T* y) {
  const int64_t n = norm.channels * norm.inner;
  Moments moments{0.0, 0.0, 0.0, 0};
  in_pieces(n, [&](int64_t begin, int64_t end) {
    moments_fold.rows(&moments, x + begin, 1, 0, end - begin);
  });
  const double own_mean = moments.mean(), variance = moments.variance();
  const double mean = norm.is_centred ? own_mean : 0.0;
  const double power = norm.is_centred ? variance : variance + own_mean * own_mean;
  const double scale = 1.0 / std::sqrt(power + norm.eps);
  if (norm.inner == 1) {
    return in_pieces(n, [&](int64_t begin, int64_t end) {
      loops<T>().elements(x + begin, y + begin, end - begin, mean, scale, gamma + begin,
                          beta == nullptr ? nullptr : beta + begin);
    });
  }
  Lookout lookout;
  for (int64_t c = 0; c < norm.channels; ++c) {
    const int64_t at = c * norm.inner;
    shift_row(x + at, y + at, norm.inner, mean, scale * static_cast<double>(gamma[c]),
              beta == nullptr ? 0.0 : static_cast<double>(beta[c]));
    lookout.after(norm.inner);
  }
}

}  // namespace

void row_norm_cpu(const Tensor& x, const RowNorm& norm, const Tensor& gamma, const Tensor& beta,
                  const Tensor& out) {
  visit_dtype(FloatingTypes{}, x.dtype(), "layer_norm", [&]<class Stored>(TypeTag<Stored>) {
    using T = Computed<Stored>;
    const Fold& moments = fold_cpu(ReduceKind::kMoments, dtype_of<T>);
    const T* scale = gamma.data<T>();
    const T* shift = beta.is_defined() ? beta.data<T>() : nullptr;
    const Stored* from = x.data<Stored>();
    Stored* to = out.data<Stored>();
    const int64_t n = norm.channels * norm.inner;
    backend::parallel_for(norm.rows, kGrain / n, [&](int64_t begin, int64_t end) {
      const auto scratch = scratch_row<Stored>(n);
      for (int64_t row = begin; row < end; ++row) {
        on_row(from + row * n, to + row * n, n, scratch.get(), [&](const T* in, T* result) {
          normalize_row(moments, norm, scale, shift, in, result);
        });
      }
    });
  });
}

void channel_affine_cpu(const Tensor& x, int64_t inner, const Tensor& mean, const Tensor& scale,
                        const Tensor& shift, const Tensor& out) {
  const int64_t channels = mean.size();
  const double* center = mean.data<double>();
  const double* factor = scale.data<double>();
  const double* offset = shift.data<double>();
  visit_dtype(FloatingTypes{}, x.dtype(), "batch_norm", [&]<class Stored>(TypeTag<Stored>) {
    using T = Computed<Stored>;
    const Stored* from = x.data<Stored>();
    Stored* to = out.data<Stored>();
    // A row is one channel of one sample, or one sample where channels have single elements.
    const int64_t n = inner == 1 ? channels : inner;
    backend::parallel_for(x.size() / n, kGrain / n, [&](int64_t begin, int64_t end) {
      const auto scratch = scratch_row<Stored>(n);
      for (int64_t row = begin; row < end; ++row) {
        on_row(from + row * n, to + row * n, n, scratch.get(), [&](const T* in, T* result) {
          const int64_t c = row % channels;
          if (inner == 1) {
            in_pieces(n, [&](int64_t low, int64_t high) {
              loops<T>().columns(in + low, result + low, high - low, center + low, factor + low,
                                 offset + low);
            });
          } else {
            shift_row(in, result, n, center[c], factor[c], offset[c]);
          }
        });
      }
    });
  });
}

void channel_moments_cpu(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const Tensor states = empty({mean.size() * static_cast<int64_t>(sizeof(Moments))}, DType::kUInt8);
  std::vector<int> axes;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  const FoldInput input{ReduceKind::kMoments, x.dtype()};
  reduce_states_cpu("batch_norm", input, x, axes, states);
  const auto* const moments = static_cast<const Moments*>(states.data());
  for (int64_t c = 0; c < mean.size(); ++c) {
    mean.data<double>()[c] = moments[c].mean();
    variance.data<double>()[c] = moments[c].variance();
  }
}

}  // namespace cuop::kernels
