// The interpreter's instructions: loops over one block of elements, one for each operation and
// dtype, compiled for each instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/dtype.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// Blocks hold a multiple of this many elements: the lanes of the widest vector math call, so that
/// no element is ever computed by a loop's scalar remainder.
inline constexpr int64_t kBlockMultiple = 16;

/// out[i] = f(a[i], b[i], c[i]) for i < n, n a multiple of kBlockMultiple. `out` may be an
/// argument.
using BlockKernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);

/// The same where an argument is one element for all.
struct ScalarKernels {
  BlockKernel before = nullptr;  ///< the first of two
  BlockKernel behind = nullptr;  ///< the second of two, or the others of three
};

/// Reduction of a run of elements (any number of them). Float32 is accumulated in vector lanes over
/// one run and in float64 over runs.
struct ReduceKernel {
  void (*run)(void* accumulator, const void* in, int64_t n) = nullptr;
  void (*combine)(void* accumulator, const void* other) = nullptr;
  /// The result in the dtype of the elements; `count` of them were reduced (for the mean).
  void (*finish)(void* out, const void* accumulator, int64_t count) = nullptr;
};

/// Room for an accumulator of any dtype.
struct alignas(16) Accumulator {
  std::byte bytes[16];
};

inline constexpr int kMaxOps = 128;

template <class Entry>
using PerDType = std::array<Entry, kDTypeCount>;

/// Kernels by [operation][compute dtype], [from][to] and [kind][dtype]; null where there is none.
/// Of 16-bit floats, which compute in float32, there are the operations on their sign.
struct BlockTable {
  std::array<PerDType<BlockKernel>, kMaxOps> ops{};
  std::array<PerDType<ScalarKernels>, kMaxOps> scalar_ops{};  ///< of cheap operations
  PerDType<PerDType<BlockKernel>> casts{};
  std::array<PerDType<ReduceKernel>, kFoldedKinds> reductions{};

  BlockKernel op(int code, DType dtype) const {
    return ops[static_cast<size_t>(code)][static_cast<size_t>(dtype)];
  }
  const ScalarKernels& scalar_op(int code, DType dtype) const {
    return scalar_ops[static_cast<size_t>(code)][static_cast<size_t>(dtype)];
  }
  BlockKernel cast(DType from, DType to) const {
    return casts[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
  const ReduceKernel& reduction(ReduceKind kind, DType dtype) const {
    return reductions[static_cast<size_t>(kind)][static_cast<size_t>(dtype)];
  }
};

template <class Level>
void add_float_kernels(BlockTable& table);
/// Those that gather the rows of their tables, in place of those that load them one by one; where
/// the level has no gathers that may be quick, none. The results are the same bits.
template <class Level>
void add_gathering_kernels(BlockTable& table);
/// Those without permutations of eight floats in place of those that look up the coefficients of an
/// interval, or the parity of a number, by them; where the level's vectors have more floats, none.
template <class Level>
void add_unpermuted_kernels(BlockTable& table);
template <class Level>
void add_integer_kernels(BlockTable& table);
template <class Level>
void add_complex_kernels(BlockTable& table);
template <class Level>
void add_cast_kernels(BlockTable& table);
template <class Level>
void add_reduce_kernels(BlockTable& table);

/// The table of one instruction set, built on first use.
const BlockTable& block_table(isa::Level level);
/// That of the instruction set in use.
const BlockTable& block_table();

}  // namespace cuop::jit
