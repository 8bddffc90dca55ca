// A cuSPARSE for the simulated GPU: products of a CSR and a dense matrix, by plain loops on the
// stream's thread, with the checks of its documentation. Its numbers are written down here a second
// time, apart from cuOP's own, so that a slip in either shows. Results pass through the workspace,
// which is spoilt behind them; descriptions may go as soon as the product has been started.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/simulator/library_work.h"

namespace {

using namespace cuop::backend::cuda;
using cuop::simulator::region;

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 2,
  kInvalidValue = 3,
  kExecutionFailed = 6,
  kNotSupported = 10,
};
enum ElementType : int { kFloat = 0, kDouble = 1 };
enum IndexType : int { kShort = 1, kInt = 2, kLong = 3 };
enum Order : int { kByColumns = 1, kByRows = 2 };
constexpr int kPlain = 0;
constexpr int kRowMajorAlgorithm = 6;

struct Session {
  ContextHandle context = nullptr;
  std::shared_ptr<const cuop::simulator::LibraryMemory> memory;
  StreamHandle stream = nullptr;
};

struct Sparse {
  int64_t rows, columns, nonzeros;
  const void* positions;
  const void* column_of;
  const void* values;
  IndexType index;
  ElementType element;
};

struct Dense {
  int64_t rows, columns, stride;
  void* values;
  ElementType element;
};

bool fits(const Sparse& a, const Dense& b, const Dense& c, ElementType computed_in) {
  return a.columns == b.rows && a.rows == c.rows && b.columns == c.columns &&
         a.element == computed_in && b.element == computed_in && c.element == computed_in;
}

template <class T, class Index>
struct Product {
  Sparse a;
  Dense b, c;
  T alpha, beta;
  T* work;

  void run() const {
    const auto* const positions = static_cast<const Index*>(a.positions);
    const auto* const columns = static_cast<const Index*>(a.column_of);
    const auto* const values = static_cast<const T*>(a.values);
    const auto* const right = static_cast<const T*>(b.values);
    auto* const result = static_cast<T*>(c.values);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.columns; ++j) {
        double sum = 0;
        for (int64_t k = positions[i]; k < positions[i + 1]; ++k) {
          sum += static_cast<double>(values[k]) *
                 static_cast<double>(right[columns[k] * b.stride + j]);
        }
        sum *= static_cast<double>(alpha);
        if (beta != T(0)) {
          sum += static_cast<double>(beta) * static_cast<double>(result[i * c.stride + j]);
        }
        work[i * c.columns + j] = static_cast<T>(sum);
      }
    }
    for (int64_t i = 0; i < c.rows * c.columns; ++i) {
      result[i / c.columns * c.stride + i % c.columns] = work[i];
    }
    std::memset(static_cast<void*>(work), 0xff,
                static_cast<size_t>(c.rows * c.columns) * sizeof(T));
  }
};

template <class T, class Index>
int start(const Session& session, const Sparse& a, const Dense& b, const Dense& c,
          const void* alpha, const void* beta, void* work) {
  const Product<T, Index> product{
      a, b, c, *static_cast<const T*>(alpha), *static_cast<const T*>(beta), static_cast<T*>(work)};
  const Result result = cuop::simulator::start_library_work(
      session.stream,
      {region(static_cast<const Index*>(a.positions), a.rows + 1, 1, 1, 1),
       region(static_cast<const Index*>(a.column_of), a.nonzeros, 1, 1, 1),
       region(static_cast<const T*>(a.values), a.nonzeros, 1, 1, 1),
       region(static_cast<const T*>(b.values), b.columns, 1, b.rows, b.stride),
       region(static_cast<const T*>(c.values), c.columns, 1, c.rows, c.stride),
       region(product.work, c.rows * c.columns, 1, 1, 1)},
      [product] { product.run(); });
  return result == Result::kSuccess ? kSuccess : kExecutionFailed;
}

}  // namespace

CUOP_SIMULATOR_ENTRY const char* cusparseGetErrorName(int status) {
  return status == kInvalidValue      ? "CUSPARSE_STATUS_INVALID_VALUE"
         : status == kAllocFailed     ? "CUSPARSE_STATUS_ALLOC_FAILED"
         : status == kExecutionFailed ? "CUSPARSE_STATUS_EXECUTION_FAILED"
         : status == kNotSupported    ? "CUSPARSE_STATUS_NOT_SUPPORTED"
                                      : "CUSPARSE_STATUS_NOT_INITIALIZED";
}
CUOP_SIMULATOR_ENTRY int cusparseGetProperty(int part, int* value) {
  constexpr int kVersion[] = {12, 6, 3};
  if (part < 0 || part > 2 || value == nullptr) return kInvalidValue;
  *value = kVersion[part];
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseCreate(Session** session) {
  const ContextHandle context = cuop::simulator::library_context();
  if (context == nullptr) return kNotInitialized;
  auto memory = std::make_shared<const cuop::simulator::LibraryMemory>();
  if (memory->region().data == nullptr) return kAllocFailed;
  *session = new Session{context, std::move(memory)};
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseSetStream(Session* session, StreamHandle stream) {
  if (session == nullptr) return kNotInitialized;
  session->stream = stream;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseCreateConstCsr(Sparse** made, int64_t rows, int64_t columns,
                                                int64_t nonzeros, const void* positions,
                                                const void* column_of, const void* values,
                                                IndexType of_positions, IndexType of_columns,
                                                int base, ElementType element) {
  const bool is_named = positions != nullptr && column_of != nullptr && values != nullptr;
  if (rows < 0 || columns < 0 || nonzeros < 0 || !is_named) return kInvalidValue;
  if (of_positions != of_columns || of_columns == kShort || base != 0) return kNotSupported;
  *made = new Sparse{rows, columns, nonzeros, positions, column_of, values, of_columns, element};
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseDestroySpMat(Sparse* matrix) {
  delete matrix;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseCreateDnMat(Dense** made, int64_t rows, int64_t columns,
                                             int64_t stride, void* values, ElementType element,
                                             Order order) {
  if (rows < 0 || columns < 0 || values == nullptr) return kInvalidValue;
  if (order != kByRows) return kNotSupported;  // cuOP has rows alone
  if (stride < columns) return kInvalidValue;
  *made = new Dense{rows, columns, stride, values, element};
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseDestroyDnMat(Dense* matrix) {
  delete matrix;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseSpMM_bufferSize(Session* session, int a_form, int b_form,
                                                 const void* alpha, const Sparse* a, const Dense* b,
                                                 const void* beta, const Dense* c,
                                                 ElementType computed_in, int algorithm,
                                                 size_t* bytes) {
  if (session == nullptr) return kNotInitialized;
  const bool is_named = alpha != nullptr && beta != nullptr && bytes != nullptr;
  if (!is_named || a == nullptr || b == nullptr || c == nullptr) return kInvalidValue;
  if (a_form != kPlain || b_form != kPlain || algorithm != kRowMajorAlgorithm) return kNotSupported;
  if (!fits(*a, *b, *c, computed_in)) return kInvalidValue;
  *bytes = static_cast<size_t>(c->rows * c->columns) * (computed_in == kDouble ? 8 : 4);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cusparseSpMM(Session* session, int a_form, int b_form, const void* alpha,
                                      const Sparse* a, const Dense* b, const void* beta,
                                      const Dense* c, ElementType computed_in, int algorithm,
                                      void* work) {
  size_t bytes = 0;
  const int status = cusparseSpMM_bufferSize(session, a_form, b_form, alpha, a, b, beta, c,
                                             computed_in, algorithm, &bytes);
  if (status != kSuccess) return status;
  if (bytes > 0 && work == nullptr) return kInvalidValue;
  if (session->context != cuop::simulator::library_context()) return kExecutionFailed;
  if (computed_in == kDouble) {
    return (a->index == kLong ? start<double, int64_t>
                              : start<double, int32_t>)(*session, *a, *b, *c, alpha, beta, work);
  }
  return (a->index == kLong ? start<float, int64_t> : start<float, int32_t>)(*session, *a, *b, *c,
                                                                             alpha, beta, work);
}
