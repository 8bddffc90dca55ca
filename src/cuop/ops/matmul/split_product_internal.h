// Internal: float32 products on a GPU's matrix units by parts of the elements.
#pragma once

#include <limits>

#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/split_product_arguments.cuh"

namespace cuop::kernels {

/// What a product's elements are multiplied as.
inline constexpr const char* kSplitPrecision = "bf16x6";

/// Columns of a tile with which a product [batch, m, k] @ [batch, k, n] of float32 takes the least
/// time on a GPU of so many multiprocessors: 64 or 128; 0 where cuBLASLt is expected to be faster.
int split_columns(int64_t m, int64_t n, int64_t k, int64_t batch, int multiprocessors);

/// What cuBLASLt reaches of the speed of long products by parts on a GPU of so many
/// multiprocessors.
double library_pace(int multiprocessors);

/// What such a product reaches of the speed of long ones by parts, as tiles are cut at its edges
/// and the last ones keep only some multiprocessors at work; 0 where cuBLASLt is expected to be
/// faster.
double split_pace(int64_t m, int64_t n, int64_t k, int64_t batch, int multiprocessors);

/// Seconds of 32 of the depth of a tile with 64 sums of each of two warpgroups by so many columns.
double split_step_seconds(int columns);

/// Why a device has no such units, or "".
std::string split_product_obstacle(Device device);
/// Whether what is expected to be faster by parts is computed so on a device, by what this thread
/// allows.
bool prefers_split_products(Device device);

/// split_columns on a device, by what this thread allows; 0 on one without such units too.
int split_columns_on(Device device, int64_t m, int64_t n, int64_t k, int64_t batch = 1);

/// By parts with tiles of 64 or 128 columns. c = alpha a @ b + beta c of float32 with any strides,
/// K is not 0, on a GPU of compute capability 9.0, by so many blocks at most. False, and nothing
/// done, where there is no room for the parts, 6 bytes an element of both operands.
bool split_product_cuda(const Product& product, int columns,
                        int64_t most_blocks = std::numeric_limits<int64_t>::max());

/// The same where it is expected to be faster than cuBLASLt; else false.
bool try_split_product(const Product& product);

/// float32 matrices [lines, depth] at one stride, in elements.
struct MatrixStack {
  void* data = nullptr;
  int64_t lines = 0, depth = 0, line_step = 0, depth_step = 0;
  int64_t matrices = 1, matrix_step = 0;  ///< 0: one matrix in all places
  Device device{};
  bool operator==(const MatrixStack&) const = default;

  /// So many of t's matrices, the first so many elements behind t's.
  static MatrixStack of(const Tensor& t, int64_t offset, int64_t matrices, int64_t step);
  /// By columns where it was by rows.
  MatrixStack turned() const;
};

/// Bytes that the parts of such matrices and their lines' exponents take.
int64_t parts_bytes(int64_t lines, int64_t depth, int64_t matrices);

/// The parts of a stack's elements, and the stack, which must live as long.
struct SplitStack {
  MatrixStack stack;
  Tensor parts, exponents;
  jit::SplitLines lines{};
};
/// MemoryError where there is no room.
SplitStack room_for_parts(const MatrixStack& stack);
/// Fills in the parts, of two in one launch.
void split_stack(const SplitStack& one);
void split_stacks(const SplitStack& first, const SplitStack& second);
/// c <- alpha a @ b + beta c, with a by rows and b by columns.
void multiply_parts(const SplitStack& a, const SplitStack& b, const MatrixStack& c,
                    const Scalar& alpha, const Scalar& beta, int columns,
                    int64_t most_blocks = std::numeric_limits<int64_t>::max());

/// The kernels, for their compilation: of operands that lie along their depth, with so many groups
/// of lines for each block.
jit::TextKernel split_operands_kernel(bool along_a, int groups_a, bool along_b, int groups_b);
jit::TextKernel split_product_kernel(int columns);

}  // namespace cuop::kernels
