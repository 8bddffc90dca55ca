// A cuBLASLt for the simulated GPU: products by plain loops on the stream's thread. It has four
// algorithms, so that the choice among them can be tested: the default, which is slow; one that is
// fast; one whose result is wrong; and one that fails to start. Results have the operands' type, or
// of 16-bit ones float32: other pairs of types it refuses.
#include <chrono>
#include <complex>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/cublaslt_api.h"
#include "cuop/core/half.h"
#include "tests/simulator/elements.h"
#include "tests/simulator/library_work.h"

namespace {

using namespace cuop::backend::cuda;
using namespace cuop::backend::cuda::blaslt;
using cuop::BFloat16;
using cuop::Half;
using cuop::simulator::Region;
using cuop::simulator::Wide;

constexpr int kInvalidValue = 7;
constexpr int kExecutionFailed = 13;
constexpr int kNotSupported = 15;
constexpr uint64_t kMark = 0x63754f50;  ///< in the second word of every algorithm of this library
enum Method : uint64_t { kSlow, kFast, kWrong, kFailing, kMethodCount };

/// Of float64 all but the slow one claim matrix units.
uint64_t implementations_of(uint64_t method, ScalarType type) {
  return type == kReal64 && method != kSlow ? kByMatrixUnits & 0x08 : kByFusedMultiplyAdd;
}
struct Choosing {
  uint64_t implementations = ~uint64_t{0};
};

struct Description {
  int trans_a = 0, trans_b = 0;
};
struct Layout {
  ScalarType type = kReal32;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};

/// Everything that a product needs when its turn in the stream comes.
struct Product {
  Description description;
  Layout a_layout, b_layout, c_layout, d_layout;
  Wide alpha, beta;
  const void *a, *b, *c;
  void* d;
  uint64_t method;
};

template <class T>
Wide read(const void* data, int64_t i) {
  return cuop::simulator::widened(static_cast<const T*>(data)[i]);
}
template <class T>
void write(void* data, int64_t i, Wide value) {
  static_cast<T*>(data)[i] = cuop::simulator::narrowed<T>(value);
}

/// Element (row, column) of op(matrix); matrices lie by columns.
template <class T>
Wide element(const void* data, const Layout& layout, int trans, int64_t batch, int64_t row,
             int64_t column) {
  if (trans != 0) std::swap(row, column);
  const auto value = read<T>(data, batch * layout.stride + column * layout.ld + row);
  return trans == 2 ? std::conj(value) : value;
}

/// Real numbers where the elements are: a product of complex ones takes ten times as long.
template <class T>
using Sum = std::conditional_t<std::is_constructible_v<T, Wide>, Wide, double>;

/// The elements that place(line, k) names, each line's beside each other.
template <class T, class Place>
std::vector<Sum<T>> lines_of(int64_t lines, int64_t depth, const Place& place) {
  std::vector<Sum<T>> result;
  result.reserve(static_cast<size_t>(lines * depth));
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t k = 0; k < depth; ++k) {
      result.push_back(cuop::simulator::narrowed<Sum<T>>(place(line, k)));
    }
  }
  return result;
}

/// Operands of T, results of To.
template <class T, class To>
void multiply(const Product& p) {
  const auto rows = static_cast<int64_t>(p.d_layout.rows);
  const auto columns = static_cast<int64_t>(p.d_layout.columns);
  const auto depth =
      static_cast<int64_t>(p.description.trans_a != 0 ? p.a_layout.rows : p.a_layout.columns);
  for (int64_t batch = 0; batch < p.d_layout.batch; ++batch) {
    const auto a = lines_of<T>(rows, depth, [&](int64_t row, int64_t k) {
      return element<T>(p.a, p.a_layout, p.description.trans_a, batch, row, k);
    });
    const auto b = lines_of<T>(columns, depth, [&](int64_t column, int64_t k) {
      return element<T>(p.b, p.b_layout, p.description.trans_b, batch, k, column);
    });
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        Wide sum = std::inner_product(a.begin() + row * depth, a.begin() + (row + 1) * depth,
                                      b.begin() + column * depth, Sum<T>());
        sum *= p.alpha;
        if (p.beta != Wide(0)) {
          sum += p.beta * element<To>(p.c, p.c_layout, 0, batch, row, column);
        }
        write<To>(p.d, batch * p.d_layout.stride + column * p.d_layout.ld + row, sum);
      }
    }
  }
  if (p.method == kWrong) write<To>(p.d, 0, read<To>(p.d, 0) + 100.0);
}

/// Calls call(T()) with the type of the elements.
template <class Call>
void visit(ScalarType type, Call&& call) {
  switch (type) {
    case kReal16:
      return call(Half());
    case kRealB16:
      return call(BFloat16());
    case kReal32:
      return call(float());
    case kReal64:
      return call(double());
    case kComplex32:
      return call(std::complex<float>());
    case kComplex64:
      return call(std::complex<double>());
  }
}

bool is_supported(const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool is_short = a.type == kReal16 || a.type == kRealB16;
  return a.type == b.type && c.type == d.type &&
         (d.type == a.type || (is_short && d.type == kReal32));
}

/// Runs on the stream's thread.
void run(const Product& p, void* workspace, size_t workspace_bytes) {
  visit(p.a_layout.type, [&]<class T>(T) {
    if (p.d_layout.type == p.a_layout.type) {
      multiply<T, T>(p);
    } else {
      multiply<T, float>(p);
    }
  });
  if (p.method == kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
}

Region region_of(const Layout& layout, const void* data) {
  Region result;
  const auto rows = static_cast<int64_t>(layout.rows);
  const auto columns = static_cast<int64_t>(layout.columns);
  const int64_t extent = rows == 0 || columns == 0 ? 0 : (columns - 1) * layout.ld + rows;
  visit(layout.type, [&]<class T>(T) {
    result = cuop::simulator::region(static_cast<const T*>(data), extent, 1, layout.batch,
                                     layout.stride);
  });
  return result;
}

/// A coefficient, which has the type that the elements are scaled in.
Wide coefficient(const void* data, ScalarType type) {
  switch (type) {
    case kReal64:
      return read<double>(data, 0);
    case kComplex32:
      return read<std::complex<float>>(data, 0);
    case kComplex64:
      return read<std::complex<double>>(data, 0);
    default:
      return read<float>(data, 0);
  }
}

template <class T>
T& as(void* handle) {
  return *static_cast<T*>(handle);
}

Heuristic heuristic_of(uint64_t method, ScalarType type) {
  Heuristic result{};
  result.algorithm.data[2] = implementations_of(method, type);
  result.algorithm.data[0] = method;
  result.algorithm.data[1] = kMark;
  result.workspace_bytes = method == kFast ? 1024 : 0;
  return result;
}

}  // namespace

CUOP_SIMULATOR_ENTRY size_t cublasLtGetVersion() { return 999; }
CUOP_SIMULATOR_ENTRY const char* cublasLtGetStatusName(int status) {
  return status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == kNotSupported  ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                    : "CUBLAS_STATUS_INVALID_VALUE";
}
CUOP_SIMULATOR_ENTRY int cublasLtCreate(void** handle) {
  static int only = 0;
  *handle = &only;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulDescCreate(void** made, ComputeType, ScalarType) {
  *made = new Description;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulDescSetAttribute(void* description, DescAttribute attribute,
                                                        const void* value, size_t bytes) {
  auto& to = as<Description>(description);
  if (bytes != sizeof(int)) return kInvalidValue;
  std::memcpy(attribute == kDescTransA ? &to.trans_a : &to.trans_b, value, sizeof(int));
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulDescDestroy(void* description) {
  delete static_cast<Description*>(description);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatrixLayoutCreate(void** made, ScalarType type, uint64_t rows,
                                                    uint64_t columns, int64_t ld) {
  if (ld < static_cast<int64_t>(rows)) return kInvalidValue;
  *made = new Layout{type, rows, columns, ld, 1, 0};
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatrixLayoutSetAttribute(void* layout, LayoutAttribute attribute,
                                                          const void* value, size_t bytes) {
  auto& to = as<Layout>(layout);
  if (attribute == kLayoutBatchCount && bytes == sizeof to.batch) {
    std::memcpy(&to.batch, value, bytes);
  } else if (attribute == kLayoutBatchStride && bytes == sizeof to.stride) {
    std::memcpy(&to.stride, value, bytes);
  } else {
    return kInvalidValue;
  }
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulPreferenceCreate(void** made) {
  *made = new Choosing;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulPreferenceSetAttribute(void* preference,
                                                              PreferenceAttribute attribute,
                                                              const void* value, size_t bytes) {
  if (attribute != kPreferImplementations) return 0;
  auto& to = as<Choosing>(preference);
  if (bytes != sizeof to.implementations) return kInvalidValue;
  std::memcpy(&to.implementations, value, bytes);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Choosing*>(preference);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulAlgoCapGetAttribute(const Algorithm* algorithm,
                                                           AlgorithmCapability capability,
                                                           void* value, size_t bytes,
                                                           size_t* written) {
  if (capability != kCapabilityImplementations || bytes != sizeof(uint64_t)) return kInvalidValue;
  std::memcpy(value, &algorithm->data[2], sizeof(uint64_t));
  *written = sizeof(uint64_t);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulAlgoGetHeuristic(void*, void*, void* a, void* b, void* c,
                                                        void* d, void* preference, int most,
                                                        Heuristic* results, int* count) {
  *count = 0;
  if (!is_supported(as<Layout>(a), as<Layout>(b), as<Layout>(c), as<Layout>(d))) {
    return kNotSupported;
  }
  const ScalarType type = as<Layout>(a).type;
  for (uint64_t method = kSlow; method < kMethodCount && *count < most; ++method) {
    const uint64_t allowed = as<Choosing>(preference).implementations;
    if ((implementations_of(method, type) & ~allowed) != 0) continue;
    results[(*count)++] = heuristic_of(method, type);
  }
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmulAlgoCheck(void*, void*, void* a, void* b, void* c, void* d,
                                                 const Algorithm* algorithm, Heuristic* result) {
  const bool is_known = algorithm->data[0] < kMethodCount && algorithm->data[1] == kMark;
  if (!is_known || !is_supported(as<Layout>(a), as<Layout>(b), as<Layout>(c), as<Layout>(d))) {
    return kNotSupported;
  }
  *result = heuristic_of(algorithm->data[0], as<Layout>(a).type);
  return 0;
}
CUOP_SIMULATOR_ENTRY int cublasLtMatmul(void*, void* description, const void* alpha, const void* a,
                                        void* a_layout, const void* b, void* b_layout,
                                        const void* beta, const void* c, void* c_layout, void* d,
                                        void* d_layout, const Algorithm* algorithm, void* workspace,
                                        size_t workspace_bytes, StreamHandle stream) {
  const uint64_t method = algorithm->data[0];
  if (method == kFailing) return kExecutionFailed;
  if (!is_supported(as<Layout>(a_layout), as<Layout>(b_layout), as<Layout>(c_layout),
                    as<Layout>(d_layout))) {
    return kNotSupported;
  }
  const ScalarType type = as<Layout>(a_layout).type;
  const size_t used_bytes = heuristic_of(method, type).workspace_bytes;
  if (workspace_bytes < used_bytes) return kInvalidValue;
  const Product product{as<Description>(description),
                        as<Layout>(a_layout),
                        as<Layout>(b_layout),
                        as<Layout>(c_layout),
                        as<Layout>(d_layout),
                        coefficient(alpha, type),
                        coefficient(beta, type),
                        a,
                        b,
                        c,
                        d,
                        method};
  std::vector<Region> regions{region_of(product.a_layout, a),
                              region_of(product.b_layout, b),
                              region_of(product.d_layout, d),
                              {workspace, used_bytes}};
  if (product.beta != Wide(0)) regions.push_back(region_of(product.c_layout, c));
  const Result result = cuop::simulator::start_library_work(
      stream, std::move(regions),
      [product, workspace, used_bytes] { run(product, workspace, used_bytes); });
  return result == Result::kSuccess ? 0 : kExecutionFailed;
}
