#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/long_loop.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/blas/matrix_operands_internal.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

using jit::Computed;
using jit::is_narrow_type;

/// Elements handled at a time: small enough for the first cache, with room for three vectors.
constexpr int64_t kBlock = 1024;
/// Elements below which another thread does not pay.
constexpr int64_t kGrain = 32768;

/// `count` elements as a contiguous vector: where they lie when they are one, else in `room`.
template <class T>
const Computed<T>* load(const T* from, int64_t step, int64_t count, Computed<T>* room) {
  if constexpr (is_narrow_type<T>) {
    if (step == 1) {
      backend::to_float(from, room, count);
      return room;
    }
  } else {
    if (step == 1) return from;
  }
  for (int64_t i = 0; i < count; ++i) room[i] = static_cast<Computed<T>>(from[i * step]);
  return room;
}

template <class T>
void store(const Computed<T>* from, int64_t count, T* to, int64_t step) {
  if constexpr (is_narrow_type<T>) {
    if (step == 1) {
      backend::from_float(from, to, count);
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) to[i * step] = static_cast<T>(from[i]);
}

template <class T>
const Level1<T>& level1() {
  return std::get<Level1<T>>(isa::choose(
      []<class Level>(Level) -> const Level1Kernels& { return level1_kernels<Level>(); }));
}

template <class T>
void axpy_typed(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  using C = Computed<T>;
  const Level1<C>& kernels = level1<C>();
  const C factor = convert_scalar<C>(alpha);
  const Tensor& addend = y != nullptr ? *y : x;
  const auto nest =
      make_loop_nest<3>(out.shape(), {&out.strides(), &x.strides(), &addend.strides()});
  T* const out_data = static_cast<T*>(out.data());
  const T* const x_data = static_cast<const T*>(x.data());
  const T* const y_data = static_cast<const T*>(addend.data());
  const auto [size, steps] = nest.inner();
  const int64_t blocks = divide_up(size, kBlock);
  const int64_t grain = kGrain / std::min(size, kBlock);
  backend::parallel_for(nest.outer_size() * blocks, grain, [&](int64_t begin, int64_t end) {
    C room_x[kBlock], room_y[kBlock], room_out[kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const auto [row, block_of_row] = divided(i, blocks);
      const auto offsets = nest.row_offsets(row);
      const int64_t first = block_of_row * kBlock, count = std::min(kBlock, size - first);
      T* const target = out_data + offsets[0] + first * steps[0];
      const C* const from = load(x_data + offsets[1] + first * steps[1], steps[1], count, room_x);
      C* result = room_out;
      if constexpr (!is_narrow_type<T>) {
        if (steps[0] == 1) result = target;
      }
      if (y == nullptr) {
        kernels.scal(count, factor, from, result);
      } else {
        const C* const added =
            load(y_data + offsets[2] + first * steps[2], steps[2], count, room_y);
        kernels.axpy(count, factor, from, added, result);
      }
      if (result == room_out) store(room_out, count, target, steps[0]);
    }
  });
}

template <class T>
typename Level1<Computed<T>>::Sum dot_typed(const Tensor& x, const Tensor& y, bool conjugate) {
  using C = Computed<T>;
  using Sum = typename Level1<C>::Sum;
  const Level1<C>& kernels = level1<C>();
  const int64_t size = x.size();
  const T* const x_data = static_cast<const T*>(x.data());
  const T* const y_data = static_cast<const T*>(y.data());
  const int64_t x_step = x.strides()[0], y_step = y.strides()[0];
  // One partial sum for each fixed piece, added in order: the same bits on any number of threads.
  std::vector<Sum> partial(static_cast<size_t>(divide_up(size, kGrain)));
  backend::parallel_for(static_cast<int64_t>(partial.size()), 1, [&](int64_t begin, int64_t end) {
    C room_x[kBlock], room_y[kBlock];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t last = std::min(size, (piece + 1) * kGrain);
      const bool is_dense = !is_narrow_type<T> && x_step == 1 && y_step == 1;
      const int64_t block = is_dense ? kGrain : kBlock;
      Sum sum = 0;
      for (int64_t i = piece * kGrain; i < last; i += block) {
        const int64_t count = std::min(block, last - i);
        sum += kernels.dot(count, load(x_data + i * x_step, x_step, count, room_x),
                           load(y_data + i * y_step, y_step, count, room_y), conjugate);
      }
      partial[static_cast<size_t>(piece)] = sum;
    }
  });
  Sum total = 0;
  for (const Sum& sum : partial) total += sum;
  return total;
}

namespace blas = backend::blas;

template <class T>
void gemv_typed(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  blas::GemvCall<T> call;
  call.trans = options.trans;
  const Operand matrix = with_operation(a, &call.trans);
  const bool is_flipped = matrix.reading.trans == Trans::kTrans;
  // A stride of 0 (a broadcast vector) has no meaning in BLAS.
  const Tensor vector = x.strides()[0] == 0 ? clone(x) : x;
  call.m = a.shape(is_flipped ? 1 : 0);
  call.n = a.shape(is_flipped ? 0 : 1);
  call.alpha = convert_scalar<T>(options.alpha);
  call.beta = convert_scalar<T>(options.beta);
  call.a = matrix.tensor.data<T>();
  call.lda = matrix.reading.ld;
  call.x = vector.data<T>();
  call.incx = vector.size() > 1 ? vector.strides()[0] : 1;
  call.y = y.data<T>();
  call.incy = y.size() > 1 ? y.strides()[0] : 1;
  blas::gemv(call);
}

bool is_of_blas(DType dtype) { return compute_dtype(dtype) == dtype && !is_integer(dtype); }

/// The whole of a symmetric matrix of which one triangle is read.
Tensor completed(const Tensor& a, Uplo uplo) {
  const Tensor whole = empty(a.shape(), a.dtype(), a.device());
  visit_dtype(NumericTypes{}, a.dtype(), "symm", [&]<class T>(TypeTag<T>) {
    const bool is_lower = uplo == Uplo::kLower;
    const int64_t order = a.shape(0);
    const int64_t row_step = a.strides()[is_lower ? 0 : 1];
    const int64_t column_step = a.strides()[is_lower ? 1 : 0];
    const T* const from = a.data<T>();
    T* const to = whole.data<T>();
    Lookout lookout;
    for (int64_t i = 0; i < order; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        to[i * order + j] = to[j * order + i] = from[i * row_step + j * column_step];
      }
      lookout.after(i);
    }
  });
  return whole;
}

}  // namespace

void axpy_cpu(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  visit_dtype(NumericTypes{}, out.dtype(), y != nullptr ? "axpy" : "scal",
              [&]<class T>(TypeTag<T>) { axpy_typed<Wrapping<T>>(alpha, x, y, out); });
}

DotValue dot_cpu(const Tensor& x, const Tensor& y, bool conjugate) {
  return visit_dtype(NumericTypes{}, x.dtype(), "dot", [&]<class T>(TypeTag<T>) {
    const auto sum = dot_typed<Wrapping<T>>(x, y, conjugate);
    if constexpr (std::is_integral_v<T>) {
      using Widest = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return DotValue(Widest{static_cast<T>(sum)});
    } else if constexpr (is_complex_type<T>) {
      return DotValue(sum);
    } else {
      return DotValue(sum.real());
    }
  });
}

void gemv_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  if (!is_of_blas(y.dtype())) return gemv_product_cpu(a, x, options, y);
  visit_dtype(FloatComplexTypes{}, y.dtype(), "gemv",
              [&]<class T>(TypeTag<T>) { gemv_typed<T>(a, x, options, y); });
}

void symm_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  if (!is_of_blas(c.dtype())) return symm_product_cpu(a, b, options, c);
  visit_dtype(FloatComplexTypes{}, c.dtype(), "symm", [&]<class T>(TypeTag<T>) {
    symm_by<T>(a, b, options, c, [](const blas::SymmCall<T>& call) { blas::symm(call); });
  });
}

void trsm_cpu(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  compute_wide(a, b, x, [&](const Tensor& wide_a, const Tensor& wide_b, const Tensor& wide_x) {
    visit_dtype(FloatComplexTypes{}, wide_x.dtype(), "trsm", [&]<class T>(TypeTag<T>) {
      trsm_by<T>(wide_a, wide_b, options, wide_x,
                 [](const blas::TrsmCall<T>& call) { blas::trsm(call); });
    });
  });
}

Product gemv_product(const Tensor& a, const Tensor& x, const GemvOptions& options,
                     const Tensor& y) {
  Product product;
  product.a = options.trans == Trans::kNone ? a : swap_axes(a, 0, 1);
  product.b = unsqueeze(x, 1);
  product.c = unsqueeze(y, 1);
  product.alpha = options.alpha;
  product.beta = options.beta;
  product.conjugate_a = options.trans == Trans::kConjTrans && is_complex(a.dtype());
  return product;
}

void gemv_product_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options,
                      const Tensor& y) {
  Product product = gemv_product(a, x, options, y);
  matmul_cpu(product);
}

void gemv_loops_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  Product product = gemv_product(a, x, options, y);
  matmul_loops_cpu(product);
}

void symm_product_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options,
                      const Tensor& c) {
  const bool is_left = options.side == Side::kLeft;
  const Tensor whole = completed(a, options.uplo);
  Product product{is_left ? whole : b, is_left ? b : whole, c, options.alpha, options.beta};
  matmul_cpu(product);
}

}  // namespace cuop::kernels
