#include "cuop/backend/cuda/cublas.h"

#include <complex>
#include <tuple>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/idle_objects.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/memory/workspace.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 12 and later.
using Handle = struct HandleState*;
constexpr int kPedanticMath = 2;

/// What the library recommends for its fastest kernels on the newest GPUs.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

/// Those of one type, which has a letter in their names.
template <class T>
struct Functions {
  Functions(const DynLib& lib, char letter)
      : symm(lib.require(cat("cublas", letter, "symm_v2_64"))),
        trsm(lib.require(cat("cublas", letter, "trsm_v2_64"))) {}
  int (*symm)(Handle, int side, int uplo, int64_t m, int64_t n, const T* alpha, const T* a,
              int64_t lda, const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc);
  int (*trsm)(Handle, int side, int uplo, int trans, int diag, int64_t m, int64_t n, const T* alpha,
              const T* a, int64_t lda, T* b, int64_t ldb);
};

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kCublas);
  int (*create)(Handle*) = lib.require("cublasCreate_v2");
  const char* (*status_name)(int) = lib.require("cublasGetStatusName");
  int (*set_math_mode)(Handle, int) = lib.require("cublasSetMathMode");
  int (*set_stream)(Handle, StreamHandle) = lib.require("cublasSetStream_v2");
  int (*set_workspace)(Handle, void*, size_t) = lib.require("cublasSetWorkspace_v2");
  std::tuple<Functions<float>, Functions<double>, Functions<std::complex<float>>,
             Functions<std::complex<double>>>
      functions{{lib, 'S'}, {lib, 'D'}, {lib, 'C'}, {lib, 'Z'}};
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  check_library(status, "cuBLAS", who, step, library().status_name);
}

/// A handle for one call of one thread, set to a stream and to memory of that stream.
class Session {
 public:
  Session(const char* who, Stream stream)
      : scope_(stream.device),
        workspace_(kWorkspaceBytes, stream),
        lease_(stream.device, [&] { return start(who); }) {
    const Library& lib = library();
    check_status(lib.set_stream(handle(), static_cast<StreamHandle>(stream.handle)), who,
                 "a stream");
    // Setting a stream takes back the workspace of before.
    check_status(lib.set_workspace(handle(), workspace_.data(), kWorkspaceBytes), who,
                 "a workspace");
  }

  Handle handle() const { return lease_.get(); }

 private:
  static Handle start(const char* who) {
    const trace::Interruption interruption;
    const RelaxedCapture relaxed;
    Handle made = nullptr;
    check_status(library().create(&made), who, "its start");
    check_status(library().set_math_mode(made, kPedanticMath), who, "exact arithmetic");
    return made;
  }

  ContextScope scope_;
  memory::Workspace workspace_;
  IdleObjects<Handle>::Lease lease_;
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
