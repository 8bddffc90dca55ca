// A cuBLAS for the simulated GPU: products with symmetric matrices and solutions of triangular
// systems, by plain loops on the stream's thread, with the checks of its documentation. Its numbers
// are written down here a second time, apart from cuOP's own, so that a slip in either shows.
// Results pass through the workspace that the caller gave, which is spoilt behind them.
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulator/elements.h"
#include "tests/simulator/library_work.h"

namespace {

using namespace cuop::backend::cuda;
using cuop::simulator::narrowed;
using cuop::simulator::region;
using cuop::simulator::Wide;

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
};
enum Side : int { kLeft = 0, kRight = 1 };
enum Fill : int { kLower = 0, kUpper = 1 };
enum Operation : int { kPlain = 0, kTransposed = 1, kAdjoint = 2 };
enum Diagonal : int { kGiven = 0, kOnes = 1 };

constexpr uintptr_t kWorkspaceAlignment = 256;
constexpr int kMathModes = 4, kMathFlags = 16;

struct Session {
  ContextHandle context = nullptr;
  std::shared_ptr<const cuop::simulator::LibraryMemory> memory;
  StreamHandle stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// The matrix of which one triangle is given; by columns, as all of them.
template <class T>
struct Triangle {
  const T* data;
  int64_t order, ld;
  Fill fill;
  Wide stored(int64_t row, int64_t column) const { return Wide(data[column * ld + row]); }
};

template <class T>
struct Matrix {
  T* data;
  int64_t rows, columns, ld;
  T& at(int64_t row, int64_t column) const { return data[column * ld + row]; }
};

/// Room for a result: of the workspace where it is large enough.
template <class T>
class Room {
 public:
  Room(const Session& session, int64_t count) : count_(static_cast<size_t>(count)) {
    if (session.workspace_bytes >= count_ * sizeof(T)) {
      data_ = static_cast<T*>(session.workspace);
    } else {
      own_.resize(count_);
      data_ = own_.data();
    }
  }
  ~Room() { std::memset(static_cast<void*>(data_), 0xff, count_ * sizeof(T)); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  T& operator[](int64_t i) { return data_[i]; }

 private:
  size_t count_;
  std::vector<T> own_;
  T* data_ = nullptr;
};

template <class T>
struct Product {
  Side side;
  Triangle<T> a;
  Matrix<const T> b;
  Matrix<T> c;
  T alpha, beta;

  Wide symmetric(int64_t row, int64_t column) const {
    const bool is_given = a.fill == kLower ? row >= column : row <= column;
    return is_given ? a.stored(row, column) : a.stored(column, row);
  }
  void run(const Session& session) const {
    Room<T> room(session, c.rows * c.columns);
    for (int64_t column = 0; column < c.columns; ++column) {
      for (int64_t row = 0; row < c.rows; ++row) {
        Wide sum = 0;
        for (int64_t k = 0; k < a.order; ++k) {
          sum += side == kLeft ? symmetric(row, k) * Wide(b.at(k, column))
                               : Wide(b.at(row, k)) * symmetric(k, column);
        }
        sum *= Wide(alpha);
        if (beta != T(0)) sum += Wide(beta) * Wide(c.at(row, column));
        room[column * c.rows + row] = narrowed<T>(sum);
      }
    }
    for (int64_t i = 0; i < c.rows * c.columns; ++i) c.at(i % c.rows, i / c.rows) = room[i];
  }
};

template <class T>
struct Solution {
  Side side;
  Operation operation;
  Diagonal diagonal;
  Triangle<T> a;
  Matrix<T> b;
  T alpha;

  /// Element of M in M x = b: op(A), or its transpose for the rows of X op(A) = B.
  Wide coefficient(int64_t row, int64_t column) const {
    if (side == kRight) std::swap(row, column);
    if (operation != kPlain) std::swap(row, column);
    const Wide value = a.stored(row, column);
    return operation == kAdjoint ? std::conj(value) : value;
  }
  void run(const Session& session) const {
    Room<T> room(session, b.rows * b.columns);
    for (int64_t i = 0; i < b.rows * b.columns; ++i) room[i] = b.at(i % b.rows, i / b.rows);
    const bool is_turned = (side == kRight) != (operation != kPlain);
    const bool is_lower = (a.fill == kLower) != is_turned;
    const int64_t systems = side == kLeft ? b.columns : b.rows;
    std::vector<Wide> x(static_cast<size_t>(a.order));
    const auto at = [&](int64_t i) -> Wide& { return x[static_cast<size_t>(i)]; };
    for (int64_t system = 0; system < systems; ++system) {
      const auto place = [&](int64_t i) {
        return side == kLeft ? system * b.rows + i : i * b.rows + system;
      };
      for (int64_t step = 0; step < a.order; ++step) {
        const int64_t i = is_lower ? step : a.order - 1 - step;
        at(i) = Wide(alpha) * Wide(room[place(i)]);
        for (int64_t done = 0; done < step; ++done) {
          const int64_t k = is_lower ? done : a.order - 1 - done;
          at(i) -= coefficient(i, k) * at(k);
        }
        if (diagonal == kGiven) at(i) /= coefficient(i, i);
      }
      for (int64_t i = 0; i < a.order; ++i) {
        b.data[place(i) / b.rows * b.ld + place(i) % b.rows] = narrowed<T>(at(i));
      }
    }
  }
};

template <class T>
cuop::simulator::Region region_of(const Triangle<T>& a) {
  return region(a.data, a.order, 1, a.order, a.ld);
}
template <class T>
cuop::simulator::Region region_of(const Matrix<T>& m) {
  return region(m.data, m.rows, 1, m.columns, m.ld);
}

bool is_choice(int value, int count) { return value >= 0 && value < count; }

/// Whether matrices of `rows` and of the triangle's order can lie so.
template <class T>
bool is_layout(const Triangle<T>& a, const Matrix<T>& m) {
  return m.rows >= 0 && m.columns >= 0 && a.ld >= std::max<int64_t>(1, a.order) &&
         m.ld >= std::max<int64_t>(1, m.rows);
}

/// Starts work.run(session) on the session's stream.
template <class Work>
int start(const Session* session, std::vector<cuop::simulator::Region> regions, const Work& work) {
  if (session->context != cuop::simulator::library_context()) return kExecutionFailed;
  regions.push_back({session->workspace, session->workspace_bytes});
  const Result result = cuop::simulator::start_library_work(
      session->stream, std::move(regions), [now = *session, work] { work.run(now); });
  return result == Result::kSuccess ? kSuccess : kExecutionFailed;
}

template <class T>
int symm(const Session* session, Side side, Fill fill, int64_t m, int64_t n, const T* alpha,
         const T* a, int64_t lda, const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc) {
  if (session == nullptr) return kNotInitialized;
  if (!is_choice(side, 2) || !is_choice(fill, 2)) return kInvalidValue;
  const Triangle<T> triangle{a, side == kLeft ? m : n, lda, fill};
  const Matrix<const T> factor{b, m, n, ldb};
  const Matrix<T> result{c, m, n, ldc};
  if (alpha == nullptr || beta == nullptr || !is_layout(triangle, result) ||
      !is_layout(triangle, Matrix<T>{nullptr, m, n, ldb})) {
    return kInvalidValue;
  }
  if (m == 0 || n == 0) return kSuccess;
  return start(session, {region_of(triangle), region_of(factor), region_of(result)},
               Product<T>{side, triangle, factor, result, *alpha, *beta});
}

template <class T>
int trsm(const Session* session, Side side, Fill fill, Operation operation, Diagonal diagonal,
         int64_t m, int64_t n, const T* alpha, const T* a, int64_t lda, T* b, int64_t ldb) {
  if (session == nullptr) return kNotInitialized;
  if (!is_choice(side, 2) || !is_choice(fill, 2) || !is_choice(operation, 3) ||
      !is_choice(diagonal, 2)) {
    return kInvalidValue;
  }
  const Triangle<T> triangle{a, side == kLeft ? m : n, lda, fill};
  // There the library itself ends the process.
  constexpr int64_t kSafeOrder = 128;
  if (std::is_same_v<T, std::complex<double>> && triangle.order > kSafeOrder) return kInvalidValue;
  const Matrix<T> solution{b, m, n, ldb};
  if (alpha == nullptr || !is_layout(triangle, solution)) return kInvalidValue;
  if (m == 0 || n == 0) return kSuccess;
  return start(session, {region_of(triangle), region_of(solution)},
               Solution<T>{side, operation, diagonal, triangle, solution, *alpha});
}

}  // namespace

CUOP_SIMULATOR_ENTRY const char* cublasGetStatusName(int status) {
  return status == kInvalidValue      ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == kAllocFailed     ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                      : "CUBLAS_STATUS_NOT_INITIALIZED";
}
CUOP_SIMULATOR_ENTRY int cublasGetProperty(int part, int* value) {
  constexpr int kVersion[] = {13, 2, 1};
  if (part < 0 || part > 2 || value == nullptr) return kInvalidValue;
  *value = kVersion[part];
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cublasCreate_v2(Session** session) {
  const ContextHandle context = cuop::simulator::library_context();
  if (context == nullptr) return kNotInitialized;
  auto memory = std::make_shared<const cuop::simulator::LibraryMemory>();
  if (memory->region().data == nullptr) return kAllocFailed;
  *session = new Session{context, std::move(memory)};
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cublasSetMathMode(Session* session, int mode) {
  if (session == nullptr) return kNotInitialized;
  return is_choice(mode & ~kMathFlags, kMathModes) ? kSuccess : kInvalidValue;
}
CUOP_SIMULATOR_ENTRY int cublasSetStream_v2(Session* session, StreamHandle stream) {
  if (session == nullptr) return kNotInitialized;
  session->stream = stream;
  session->workspace = nullptr;
  session->workspace_bytes = 0;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int cublasSetWorkspace_v2(Session* session, void* workspace, size_t bytes) {
  if (session == nullptr) return kNotInitialized;
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0) return kInvalidValue;
  session->workspace = workspace;
  session->workspace_bytes = bytes;
  return kSuccess;
}

#define CUOP_SIMULATED_BLAS(letter, T)                                                           \
  CUOP_SIMULATOR_ENTRY int cublas##letter##symm_v2_64(                                           \
      Session* session, Side side, Fill fill, int64_t m, int64_t n, const T* alpha, const T* a,  \
      int64_t lda, const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc) {                  \
    return symm(session, side, fill, m, n, alpha, a, lda, b, ldb, beta, c, ldc);                 \
  }                                                                                              \
  CUOP_SIMULATOR_ENTRY int cublas##letter##trsm_v2_64(                                           \
      Session* session, Side side, Fill fill, Operation operation, Diagonal diagonal, int64_t m, \
      int64_t n, const T* alpha, const T* a, int64_t lda, T* b, int64_t ldb) {                   \
    return trsm(session, side, fill, operation, diagonal, m, n, alpha, a, lda, b, ldb);          \
  }
CUOP_SIMULATED_BLAS(S, float)
CUOP_SIMULATED_BLAS(D, double)
CUOP_SIMULATED_BLAS(C, std::complex<float>)
CUOP_SIMULATED_BLAS(Z, std::complex<double>)
#undef CUOP_SIMULATED_BLAS
