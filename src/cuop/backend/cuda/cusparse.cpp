#include "cuop/backend/cuda/cusparse.h"

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/idle_objects.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/workspace.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 12.
using Handle = struct SparseHandleState*;
using SparseDescription = struct SparseMatrixState*;
using DenseDescription = struct DenseMatrixState*;
enum ElementType : int { kReal32 = 0, kReal64 = 1 };
enum IndexType : int { kInt32 = 2, kInt64 = 3 };
constexpr int kFromZero = 0;
constexpr int kByRows = 2;
constexpr int kAsGiven = 0;  // neither operand is transposed
/// For matrices in rows; with `kAsGiven` the same in every run.
constexpr int kRowAlgorithm = 6;

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kCusparse);
  int (*create)(Handle*) = lib.require("cusparseCreate");
  const char* (*status_name)(int) = lib.require("cusparseGetErrorName");
  int (*set_stream)(Handle, StreamHandle) = lib.require("cusparseSetStream");
  int (*create_sparse)(SparseDescription*, int64_t rows, int64_t columns, int64_t nonzeros,
                       const void* positions, const void* column_of, const void* values,
                       IndexType of_positions, IndexType of_columns, int base,
                       ElementType) = lib.require("cusparseCreateConstCsr");
  int (*destroy_sparse)(SparseDescription) = lib.require("cusparseDestroySpMat");
  int (*create_dense)(DenseDescription*, int64_t rows, int64_t columns, int64_t stride,
                      const void* values, ElementType,
                      int order) = lib.require("cusparseCreateDnMat");
  int (*destroy_dense)(DenseDescription) = lib.require("cusparseDestroyDnMat");
  int (*work_bytes)(Handle, int, int, const void* alpha, SparseDescription, DenseDescription,
                    const void* beta, DenseDescription, ElementType, int algorithm,
                    size_t* bytes) = lib.require("cusparseSpMM_bufferSize");
  int (*multiply)(Handle, int, int, const void* alpha, SparseDescription, DenseDescription,
                  const void* beta, DenseDescription, ElementType, int algorithm,
                  void* work) = lib.require("cusparseSpMM");
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  check_library(status, "cuSPARSE", who, step, library().status_name);
}

Handle start(const char* who) {
  const trace::Interruption interruption;
  const RelaxedCapture relaxed;
  Handle made = nullptr;
  check_status(library().create(&made), who, "its start");
  return made;
}

/// A description for the time of its life: made by make(&it), ended by `destroy`.
template <class Object>
class Description : NonCopyable {
 public:
  template <class Make>
  Description(const char* who, const char* what, int (*destroy)(Object), Make&& make)
      : destroy_(destroy) {
    check_status(make(&object_), who, what);
  }
  ~Description() { destroy_(object_); }
  Object get() const { return object_; }

 private:
  int (*destroy_)(Object);
  Object object_ = nullptr;
};

}  // namespace

void sparse_product(const char* who, const SparseProduct& p, Stream stream) {
  const ContextScope scope(stream.device);
  const Library& lib = library();
  const IdleObjects<Handle>::Lease handle(stream.device, [&] { return start(who); });
  check_status(lib.set_stream(handle.get(), static_cast<StreamHandle>(stream.handle)), who,
               "a stream");
  const ElementType element = p.is_double ? kReal64 : kReal32;
  const IndexType index = p.has_wide_indices ? kInt64 : kInt32;
  const Description<SparseDescription> a(
      who, "the sparse matrix", lib.destroy_sparse, [&](SparseDescription* made) {
        return lib.create_sparse(made, p.m, p.k, p.nonzeros, p.positions, p.columns, p.values,
                                 index, index, kFromZero, element);
      });
  const auto dense = [&](int64_t rows, int64_t stride, const void* values) {
    return [&lib, &p, element, rows, stride, values](DenseDescription* made) {
      return lib.create_dense(made, rows, p.n, stride, values, element, kByRows);
    };
  };
  const Description<DenseDescription> b(who, "the dense matrix", lib.destroy_dense,
                                        dense(p.k, p.b_stride, p.b));
  const Description<DenseDescription> c(who, "the result", lib.destroy_dense,
                                        dense(p.m, p.c_stride, p.c));
  const double one = 1, zero = 0;
  const float short_one = 1, short_zero = 0;
  const void* const alpha = p.is_double ? static_cast<const void*>(&one) : &short_one;
  const void* const beta = p.is_double ? static_cast<const void*>(&zero) : &short_zero;
  size_t bytes = 0;
  check_status(lib.work_bytes(handle.get(), kAsGiven, kAsGiven, alpha, a.get(), b.get(), beta,
                              c.get(), element, kRowAlgorithm, &bytes),
               who, "the size of its workspace");
  const memory::Workspace work(static_cast<int64_t>(bytes), stream);
  Operation operation(who, stream);
  check_status(lib.multiply(handle.get(), kAsGiven, kAsGiven, alpha, a.get(), b.get(), beta,
                            c.get(), element, kRowAlgorithm, work.data()),
               who, "the product");
  operation.started();
}

}  // namespace cuop::backend::cuda
