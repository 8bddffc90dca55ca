#include "cuop/backend/cuda/cublas.h"

#include <complex>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 12 and later.
using Handle = struct HandleState*;
constexpr int kPedanticMath = 2;

/// What the library recommends for its fastest kernels on the newest GPUs.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

template <class T>
struct Functions {
  int (*symm)(Handle, int side, int uplo, int64_t m, int64_t n, const T* alpha, const T* a,
              int64_t lda, const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc);
  int (*trsm)(Handle, int side, int uplo, int trans, int diag, int64_t m, int64_t n, const T* alpha,
              const T* a, int64_t lda, T* b, int64_t ldb);
};

struct Library {
  int (*create)(Handle*);
  const char* (*status_name)(int);
  int (*set_math_mode)(Handle, int);
  int (*set_stream)(Handle, StreamHandle);
  int (*set_workspace)(Handle, void*, size_t);
  std::tuple<Functions<float>, Functions<double>, Functions<std::complex<float>>,
             Functions<std::complex<double>>>
      functions;
};

const Library& library() {
  static const Library loaded = [] {
    cuda_library(CudaLibrary::kCublasLt);  // which it is built on and finds by name alone
    const DynLib& lib = cuda_library(CudaLibrary::kCublas);
    Library l{};
    const auto bind = [&]<class Function>(Function*& entry, const char* name) {
      entry = lib.require_function<Function>(name);
    };
    bind(l.create, "cublasCreate_v2");
    bind(l.status_name, "cublasGetStatusName");
    bind(l.set_math_mode, "cublasSetMathMode");
    bind(l.set_stream, "cublasSetStream_v2");
    bind(l.set_workspace, "cublasSetWorkspace_v2");
    const auto bind_type = [&](auto& functions, char letter) {
      bind(functions.symm, cat("cublas", letter, "symm_v2_64").c_str());
      bind(functions.trsm, cat("cublas", letter, "trsm_v2_64").c_str());
    };
    auto& [s, d, c, z] = l.functions;
    bind_type(s, 'S');
    bind_type(d, 'D');
    bind_type(c, 'C');
    bind_type(z, 'Z');
    return l;
  }();
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  if (status != 0) [[unlikely]]
    throw ExecutionError(
        cat(who, ": cuBLAS answered ", library().status_name(status), " to ", step));
}

/// Handles nobody uses, by device. They are never destroyed, which would wait for the device.
class IdleHandles {
 public:
  Handle take(int device) {
    const std::lock_guard lock(mutex_);
    std::vector<Handle>& idle = idle_[device];
    if (idle.empty()) return nullptr;
    const Handle handle = idle.back();
    idle.pop_back();
    return handle;
  }
  void put(int device, Handle handle) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::vector<Handle>> idle_;
};

IdleHandles& idle_handles() {
  static auto* handles = new IdleHandles;  // outlives what may still run at the end
  return *handles;
}

/// A handle for one call of one thread, set to a stream and to memory of that stream.
class Session {
 public:
  Session(const char* who, Stream stream)
      : stream_(stream), scope_(stream.device), resource_(memory::current_resource(stream.device)) {
    handle_ = idle_handles().take(stream.device.index);
    try {
      if (handle_ == nullptr) start(who);
      workspace_ = resource_.allocate(kWorkspaceBytes, stream);
      const Library& lib = library();
      check_status(lib.set_stream(handle_, queue()), who, "a stream");
      // Setting a stream takes back the workspace of before.
      check_status(lib.set_workspace(handle_, workspace_, kWorkspaceBytes), who, "a workspace");
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~Session() { give_back(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Handle handle() const { return handle_; }
  StreamHandle queue() const { return static_cast<StreamHandle>(stream_.handle); }

 private:
  void start(const char* who) {
    check_status(library().create(&handle_), who, "its start");
    check_status(library().set_math_mode(handle_, kPedanticMath), who, "exact arithmetic");
  }
  /// The memory is free behind the work, in the stream's order.
  void give_back() {
    if (workspace_ != nullptr) resource_.deallocate(workspace_, kWorkspaceBytes, stream_);
    if (handle_ != nullptr) idle_handles().put(stream_.device.index, handle_);
  }

  Stream stream_;
  ContextScope scope_;
  memory::MemoryResource& resource_;
  Handle handle_ = nullptr;
  void* workspace_ = nullptr;
};

int code(Side side) { return side == Side::kLeft ? 0 : 1; }
int code(Uplo uplo) { return uplo == Uplo::kLower ? 0 : 1; }
int code(Trans trans) { return trans == Trans::kNone ? 0 : trans == Trans::kTrans ? 1 : 2; }
int code(Diag diag) { return diag == Diag::kNonUnit ? 0 : 1; }

}  // namespace

template <class T>
void symm(const blas::SymmCall<T>& given, Stream stream) {
  const auto call = blas::by_columns(given);
  const Session session("symm", stream);
  Operation operation("symm", stream);
  check_status(
      std::get<Functions<T>>(library().functions)
          .symm(session.handle(), code(call.side), code(call.uplo), call.m, call.n, &call.alpha,
                call.a, call.lda, call.b, call.ldb, &call.beta, call.c, call.ldc),
      "symm", "the product");
  operation.started();
}

template <class T>
void trsm(const blas::TrsmCall<T>& given, Stream stream) {
  const auto call = blas::by_columns(given);
  const Session session("trsm", stream);
  Operation operation("trsm", stream);
  check_status(
      std::get<Functions<T>>(library().functions)
          .trsm(session.handle(), code(call.side), code(call.uplo), code(call.trans),
                code(call.diag), call.m, call.n, &call.alpha, call.a, call.lda, call.b, call.ldb),
      "trsm", "the solution");
  operation.started();
}

template void symm(const blas::SymmCall<float>&, Stream);
template void symm(const blas::SymmCall<double>&, Stream);
template void symm(const blas::SymmCall<std::complex<float>>&, Stream);
template void symm(const blas::SymmCall<std::complex<double>>&, Stream);
template void trsm(const blas::TrsmCall<float>&, Stream);
template void trsm(const blas::TrsmCall<double>&, Stream);
template void trsm(const blas::TrsmCall<std::complex<float>>&, Stream);
template void trsm(const blas::TrsmCall<std::complex<double>>&, Stream);

}  // namespace cuop::backend::cuda
