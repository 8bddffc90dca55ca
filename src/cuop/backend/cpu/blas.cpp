#include "cuop/backend/cpu/blas.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/blas_room.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop::backend::blas {

namespace {

// The numbers of the CBLAS standard.
constexpr int kRowMajor = 101;
int code(Trans trans) { return 111 + static_cast<int>(trans); }
int code(Uplo uplo) { return uplo == Uplo::kUpper ? 121 : 122; }
int code(Diag diag) { return diag == Diag::kNonUnit ? 131 : 132; }
int code(Side side) { return side == Side::kLeft ? 141 : 142; }

/// Real coefficients are passed by value, complex ones by address.
template <class T>
using Coefficient = std::conditional_t<std::is_floating_point_v<T>, T, const void*>;
template <class T>
Coefficient<T> coefficient(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return &value;
  }
}

/// A size or stride among the arguments of a call.
struct Size {
  int64_t value;
};

/// An argument as the library takes it, whose integers are of type Int.
template <class Int, class T>
auto as_argument(const char* who, T argument) {
  if constexpr (!std::is_same_v<T, Size>) {
    return argument;
  } else {
    if (std::in_range<Int>(argument.value)) return static_cast<Int>(argument.value);
    throw ShapeError(cat("BLAS: ", who, ": a size or stride of ", argument.value, " is beyond the ",
                         "32-bit integers of ", library().info.path,
                         "; use a library with 64-bit ones"));
  }
}

/// Stands around each call of the library.
struct LibraryCall {
  GatedCall gate{};
  BufferRoom room{};
};

/// Calls one of the library's functions with row-major matrices and these arguments.
template <class... Arguments>
void call_function(void* function, const char* who, Arguments... arguments) {
  const Info& info = library().info;
  if (function == nullptr) throw NotImplementedError(cat("BLAS: ", info.path, " has no ", who));
  const LibraryCall inside;
  const auto call = [&]<class Int>(Int) {
    using Function = void(int, decltype(as_argument<Int>(who, arguments))...);
    reinterpret_cast<Function*>(function)(kRowMajor, as_argument<Int>(who, arguments)...);
  };
  info.integer_bits == 64 ? call(int64_t{}) : call(int32_t{});
}

template <class T>
void call_library(const GemmCall<T>& c) {
  call_function(library().of<T>().gemm, "gemm", code(c.trans_a), code(c.trans_b), Size{c.m},
                Size{c.n}, Size{c.k}, coefficient(c.alpha), c.a, Size{c.lda}, c.b, Size{c.ldb},
                coefficient(c.beta), c.c, Size{c.ldc});
}

template <class T>
void call_library(const GemvCall<T>& c) {
  const int64_t x_size = c.trans == Trans::kNone ? c.n : c.m;
  const int64_t y_size = c.trans == Trans::kNone ? c.m : c.n;
  // BLAS wants the lowest address of a vector that it walks backwards.
  const T* const x = c.incx < 0 ? c.x + (x_size - 1) * c.incx : c.x;
  T* const y = c.incy < 0 ? c.y + (y_size - 1) * c.incy : c.y;
  call_function(library().of<T>().gemv, "gemv", code(c.trans), Size{c.m}, Size{c.n},
                coefficient(c.alpha), c.a, Size{c.lda}, x, Size{c.incx}, coefficient(c.beta), y,
                Size{c.incy});
}

template <class T>
void call_library(const SymmCall<T>& c) {
  call_function(library().of<T>().symm, "symm", code(c.side), code(c.uplo), Size{c.m}, Size{c.n},
                coefficient(c.alpha), c.a, Size{c.lda}, c.b, Size{c.ldb}, coefficient(c.beta), c.c,
                Size{c.ldc});
}

template <class T>
void call_library(const TrsmCall<T>& c) {
  call_function(library().of<T>().trsm, "trsm", code(c.side), code(c.uplo), code(c.trans),
                code(c.diag), Size{c.m}, Size{c.n}, coefficient(c.alpha), c.a, Size{c.lda}, c.b,
                Size{c.ldb});
}

/// Multiplications below which waking another thread costs more than it saves.
constexpr int64_t kWorkPerThread = 1 << 19;

/// Multiplications of doubles that a thread may do in one call of a library, which hears no
/// interrupt: some 0.2 s. Fewer would cost speed: each call packs its operands anew.
constexpr double kMostWork = 4e9;
/// The same where each operand is used once, so that memory decides.
constexpr double kMostReads = 1e8;

/// How many times a multiplication of doubles one of T takes.
template <class T>
constexpr double weight() {
  constexpr double kReal = static_cast<double>(sizeof(T)) / sizeof(double);
  return std::is_floating_point_v<T> ? kReal : 2 * kReal;
}

/// How many calls of a library, of `most` doubles each, `work` multiplications are divided into.
template <class T>
int64_t interruptible_parts(double work, double most) {
  return static_cast<int64_t>(std::min(work * weight<T>() / most, 1e4)) + 1;
}

/// How many threads `work` multiplications deserve.
int64_t useful_threads(double work) {
  const auto share = static_cast<int64_t>(std::min(work / kWorkPerThread, 1e6));
  return std::clamp<int64_t>(share, 1, thread_count());
}

/// The i-th of `parts` nearly equal pieces of [0, count), at multiples of `step`.
struct Piece {
  int64_t begin;
  int64_t size;
};
Piece piece(int64_t count, int64_t parts, int64_t i, int64_t step) {
  const int64_t length = round_up(divide_up(count, parts), step);
  const int64_t begin = std::min(count, i * length);
  return {begin, std::min(length, count - begin)};
}

/// Calls body(begin, size) for `parts` pieces of [0, count) side by side.
template <class F>
void split(int64_t count, int64_t parts, int64_t step, F&& body) {
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = piece(count, parts, i, step);
      if (p.size > 0) body(p.begin, p.size);
    }
  });
}

// Pieces begin at multiples of a register block, so that only the last one has ragged edges.
constexpr int64_t kBlock = 16;

/// Rows and columns of the grid of tiles for `threads`, with the least panel traffic.
struct Grid {
  int64_t rows;
  int64_t columns;
};
Grid choose_grid(int64_t m, int64_t n, int64_t threads) {
  Grid best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= threads; ++rows) {
    const int64_t columns = threads / rows;
    const auto height = static_cast<double>(piece(m, rows, 0, kBlock).size);
    const auto width = static_cast<double>(piece(n, columns, 0, kBlock).size);
    // The largest tile decides the time; among equals the one that reads the least.
    const double cost = height * width * (1.0 + 8.0 / height + 8.0 / width);
    if (cost < least) {
      least = cost;
      best = {rows, columns};
    }
  }
  return best;
}

/// What a tile of the grid is of a product; it may be empty.
template <class T>
GemmCall<T> tile_of(const GemmCall<T>& call, const Grid& grid, int64_t tile) {
  const Piece rows = piece(call.m, grid.rows, tile / grid.columns, kBlock);
  const Piece columns = piece(call.n, grid.columns, tile % grid.columns, kBlock);
  return call.block(rows.begin, columns.begin, std::max<int64_t>(0, rows.size),
                    std::max<int64_t>(0, columns.size));
}

template <class T>
double work_of(const GemmCall<T>& call) {
  return static_cast<double>(call.m) * static_cast<double>(call.n) *
         static_cast<double>(std::max<int64_t>(call.k, 1));
}

/// On as many threads as are useful.
template <class T>
void gemm_at_once(const GemmCall<T>& call) {
  if (call.m == 0 || call.n == 0) return;
  const int64_t threads = useful_threads(work_of(call));
  if (threads > 1 && threads == thread_count() && has_own_threads(threads)) {
    call_library(call);
    return;
  }
  const SerialScope scope;
  if (threads == 1) {
    call_library(call);
    return;
  }
  const Grid grid = choose_grid(call.m, call.n, threads);
  parallel_for_each(grid.rows * grid.columns, 1, [&](int64_t tile) {
    const GemmCall<T> part = tile_of(call, grid, tile);
    if (part.m > 0 && part.n > 0) call_library(part);
  });
}

/// A call with a square A, in parts: of B's columns where A is on the left, of its rows on the
/// right. It takes `share` of order * m * n multiplications; advance(part, begin) moves what a part
/// has besides B.
template <class T, class Call, class Advance>
void beside_square(const Call& call, double share, Advance&& advance) {
  if (call.m == 0 || call.n == 0) return;
  const SerialScope scope;
  const bool is_left = call.side == Side::kLeft;
  const int64_t order = is_left ? call.m : call.n;
  const double work = static_cast<double>(order) * static_cast<double>(call.m) *
                      static_cast<double>(call.n) * share;
  const int64_t parts = std::max(useful_threads(work), interruptible_parts<T>(work, kMostWork));
  split(is_left ? call.n : call.m, parts, kBlock, [&](int64_t begin, int64_t size) {
    Call part = call;
    (is_left ? part.n : part.m) = size;
    part.b += is_left ? begin : begin * call.ldb;
    advance(part, begin);
    call_library(part);
  });
}

}  // namespace

template <class T>
void gemm(const GemmCall<T>& call) {
  if (call.m == 0 || call.n == 0) return;
  require_library();
  const double work = work_of(call);
  const auto threads = static_cast<double>(useful_threads(work));
  const int64_t parts = interruptible_parts<T>(work, kMostWork * threads);
  if (parts == 1) return gemm_at_once(call);
  const Grid grid = choose_grid(call.m, call.n, parts);
  for (int64_t tile = 0; tile < grid.rows * grid.columns; ++tile) {
    check_interrupt();
    gemm_at_once(tile_of(call, grid, tile));
  }
}

template <class T>
void gemm_serial(const GemmCall<T>& call) {
  if (call.m == 0 || call.n == 0) return;
  call_library(call);
}

template <class T>
void gemv(const GemvCall<T>& call) {
  const bool is_plain = call.trans == Trans::kNone;
  const int64_t y_size = is_plain ? call.m : call.n;
  const int64_t x_size = is_plain ? call.n : call.m;
  if (y_size == 0) return;
  const SerialScope scope;
  GemvCall<T> whole = call;
  if (call.beta == T(0)) {  // some libraries multiply NaN by this zero
    for (int64_t i = 0; i < y_size; ++i) call.y[i * call.incy] = T(0);
    whole.beta = T(1);
  }
  if (x_size == 0) {
    for (int64_t i = 0; i < y_size; ++i) whole.y[i * call.incy] *= whole.beta;
    return;
  }
  const double work = static_cast<double>(y_size) * static_cast<double>(x_size);
  const int64_t parts = std::max(useful_threads(work), interruptible_parts<T>(work, kMostReads));
  split(y_size, parts, kBlock, [&](int64_t begin, int64_t size) {
    GemvCall<T> part = whole;
    (is_plain ? part.m : part.n) = size;
    part.a += is_plain ? begin * call.lda : begin;
    part.y += begin * call.incy;
    call_library(part);
  });
}

template <class T>
void symm(const SymmCall<T>& call) {
  beside_square<T>(call, 1.0, [&](SymmCall<T>& part, int64_t begin) {
    part.c += call.side == Side::kLeft ? begin : begin * call.ldc;
  });
}

template <class T>
void trsm(const TrsmCall<T>& call) {
  beside_square<T>(call, 0.5, [](TrsmCall<T>&, int64_t) {});
}

template void gemm(const GemmCall<float>&);
template void gemm(const GemmCall<double>&);
template void gemm(const GemmCall<std::complex<float>>&);
template void gemm(const GemmCall<std::complex<double>>&);
template void gemm_serial(const GemmCall<float>&);
template void gemm_serial(const GemmCall<double>&);
template void gemm_serial(const GemmCall<std::complex<float>>&);
template void gemm_serial(const GemmCall<std::complex<double>>&);
template void gemv(const GemvCall<float>&);
template void gemv(const GemvCall<double>&);
template void gemv(const GemvCall<std::complex<float>>&);
template void gemv(const GemvCall<std::complex<double>>&);
template void symm(const SymmCall<float>&);
template void symm(const SymmCall<double>&);
template void symm(const SymmCall<std::complex<float>>&);
template void symm(const SymmCall<std::complex<double>>&);
template void trsm(const TrsmCall<float>&);
template void trsm(const TrsmCall<double>&);
template void trsm(const TrsmCall<std::complex<float>>&);
template void trsm(const TrsmCall<std::complex<double>>&);

}  // namespace cuop::backend::blas
