// Internal: the matrix product after all checks, and the kernels that compute it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuop/backend/kernel.h"
#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/matmul/matmul_arguments.cuh"

namespace cuop::kernels {

/// c <- alpha * a @ b + beta * c. a [batch..., M, K], b [batch..., K, N], c [batch..., M, N] have
/// one dtype, of which c may be float32 beside 16-bit floats, one batch shape (stride 0 where
/// broadcast) and any strides; c overlaps neither a nor b. Nothing is empty but perhaps K.
/// `conjugate_a` (complex dtypes) takes conj(a).
struct Product {
  Tensor a, b, c;
  Scalar alpha = 1;
  Scalar beta = 0;
  bool conjugate_a = false;

  bool is_widening() const { return a.dtype() != c.dtype(); }
};

/// The entry for the CPU; the ones below are its parts by dtype. They may rearrange the product.
void matmul_cpu(Product& product);
void matmul_blas_cpu(Product& product);        ///< float32, float64, complex64, complex128
void matmul_half_cpu(const Product& product);  ///< float16, bfloat16; c may be float32
void matmul_integer_cpu(const Product& product);
void matmul_bool_cpu(const Product& product);
/// Plain loops, in tiles when the caller asks for a tile size (backend/kernel.h); the dtypes of
/// BLAS.
void matmul_loops_cpu(Product& product);

/// The entry for a GPU.
void matmul_cuda(Product& product);

/// The batch as one flat index: offsets in elements of matrix i of a, b and c.
class BatchOffsets {
 public:
  explicit BatchOffsets(const Product& product);
  int64_t count() const { return count_; }
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets operator()(int64_t index) const;

 private:
  Shape shape_;
  Strides a_, b_, c_;
  int64_t count_ = 1;
};

/// sum [mr, nr] (row step ld) += a b for packed slivers: a holds `depth` columns of mr elements,
/// b `depth` rows of nr elements.
template <class T>
struct IntegerKernel {
  int64_t mr;
  int64_t nr;
  void (*multiply)(int64_t depth, const T* a, const T* b, T* sum, int64_t ld);
};

struct IntegerKernels {
  IntegerKernel<uint16_t> u16;
  IntegerKernel<uint32_t> u32;
  IntegerKernel<uint64_t> u64;
  IntegerKernel<uint64_t> bits;  ///< "or" of "and" instead of the sum of products
};
template <class Level>
const IntegerKernels& integer_kernels();

/// Bytes of one partial result of a matrix times a vector: VectorProduct's State.
inline constexpr int64_t kVectorStateBytes = 16;

/// What a kernel is compiled for.
struct MatrixVectorForm {
  DType dtype = DType::kFloat32;
  int width = 1;  ///< columns of one access
  bool conjugate_a = false;
  int team = 256;          ///< threads that share a row
  bool is_column = false;  ///< neighbouring threads read neighbouring rows
  bool is_wide = false;    ///< counting in 64 bits
};
jit::TextKernel matrix_vector_kernel(const MatrixVectorForm& form);

struct MatrixVectorPlan {
  MatrixVectorForm form;
  jit::MatrixVector arguments{};  ///< but how blocks share a row
};
/// For a [batch..., M, K], b [batch..., K, 1] and c [batch..., M, 1] of any strides but nothing
/// when the batch cannot be walked with one stride of each.
std::optional<MatrixVectorPlan> plan_matrix_vector(const Product& product);

/// For which matrices.
enum class VectorRows {
  kAny,
  kShort,  ///< that this kernel reads faster than cuBLAS does
};
/// Every dtype; K may be 0. False, and nothing done, where there is no plan or rows are not of
/// these.
bool matrix_vector_cuda(const Product& product, VectorRows rows = VectorRows::kAny);

/// The kernel and its arguments. Of a symmetric a the lower triangle is read.
struct IntegerProductPlan {
  int own = 4;  ///< elements of a thread along each side of a tile
  bool is_symmetric = false;
  jit::IntegerProduct arguments{};
};
IntegerProductPlan plan_integer_product(const Product& product, bool is_symmetric);

jit::TextKernel integer_product_kernel(DType dtype, int own, bool is_symmetric);

/// Integers and bool, any strides; K may be 0.
void integer_product_cuda(const Product& product, bool is_symmetric = false);

/// The kernel with its open numbers chosen.
backend::Kernel completed_product(backend::Kernel kernel);

/// Why there is no such kernel of a product of float16, bfloat16, float32, float64 or a complex
/// dtype on a GPU of these limits, or "". `kernel` is complete; at most `max_registers` of a thread
/// where that is not 0.
std::string product_obstacle(const backend::Kernel& kernel, DType dtype,
                             const backend::GpuLimits& limits, int64_t max_registers);

/// How an operand is read: see Reading in tile_panel.cuh.
struct OperandReading {
  bool is_along_depth = false;
  int width = 1;
};

struct TileProductPlan {
  backend::Kernel kernel;  ///< complete
  DType dtype = DType::kFloat32;
  OperandReading a, b;
  bool conjugate_a = false;
  jit::TileProduct arguments{};
};
/// The product's operands must serve as long as the plan.
TileProductPlan plan_tile_product(const Product& product, const backend::Kernel& kernel);

jit::TextKernel tile_product_kernel(const TileProductPlan& plan);

/// What a kernel on matrix units multiplies: "float64", "tf32x3" for float32.
const char* unit_precision(DType dtype);

/// By the kernel, which has a tile; any strides, K is not 0. CompilationError that says why when
/// there is no such kernel.
void tile_product_cuda(Product& product, const backend::Kernel& kernel);

}  // namespace cuop::kernels
