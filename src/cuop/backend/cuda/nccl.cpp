#include "cuop/backend/cuda/nccl.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/libraries.h"

namespace cuop::backend::cuda {

namespace {

// The library's binary interface, as its documentation gives it for version 2.14 and later.
constexpr int kFirstThatDoesNotWait = 21400;
constexpr int kSuccess = 0, kInProgress = 7;
constexpr int kByte = 1;  // ncclUint8

/// Of the configuration what 2.14 had; later versions take their defaults for the rest.
struct Configuration {
  size_t size = sizeof(Configuration);
  unsigned magic = 0xcafebeef;
  unsigned version = kFirstThatDoesNotWait;
  int waits = 0;
};

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kNccl);
  int (*version)(int*) = lib.require("ncclGetVersion");
  int (*new_id)(NcclId*) = lib.require("ncclGetUniqueId");
  int (*start)(NcclState**, int size, NcclId, int rank,
               Configuration*) = lib.require("ncclCommInitRankConfig");
  int (*abort)(NcclState*) = lib.require("ncclCommAbort");
  int (*progress)(NcclState*, int* status) = lib.require("ncclCommGetAsyncError");
  const char* (*words)(int status) = lib.require("ncclGetErrorString");
  int (*begin_group)() = lib.require("ncclGroupStart");
  int (*end_group)() = lib.require("ncclGroupEnd");
  int (*send)(const void*, size_t count, int type, int peer, NcclState*,
              StreamHandle) = lib.require("ncclSend");
  int (*receive)(void*, size_t count, int type, int peer, NcclState*,
                 StreamHandle) = lib.require("ncclRecv");
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check_status(int status, const char* step) {
  check_library(status == kInProgress ? kSuccess : status, "NCCL", "exchange", step,
                library().words);
}

}  // namespace

int64_t nccl_version() {
  static const int64_t found = [] {
    int version = 0;
    try {
      if (library().version(&version) != kSuccess) return 0;
    } catch (const DeviceError&) {  // absent, or so old that it lacks some call
      return 0;
    }
    return version < kFirstThatDoesNotWait ? 0 : version;
  }();
  return found;
}

NcclId new_nccl_id() {
  NcclId id;
  check_status(library().new_id(&id), "a new group");
  return id;
}

NcclGroup::NcclGroup(Device device, int rank, int size, const NcclId& id) : device_(device) {
  const ContextScope scope(device_);
  Configuration configuration;
  const int status = library().start(&state_, size, id, rank, &configuration);
  try {
    check_status(status, "a group's start");
  } catch (...) {
    if (state_ != nullptr) library().abort(state_);
    throw;
  }
}

NcclGroup::~NcclGroup() {
  try {
    const ContextScope scope(device_);
    library().abort(state_);
  } catch (...) {  // the device is lost, and with it what was under way
  }
}

bool NcclGroup::is_ready() const {
  int status = kSuccess;
  check_status(library().progress(state_, &status), "a question for its progress");
  check_status(status, "what was started");
  return status == kSuccess;
}

void NcclGroup::copy(std::span<const Piece> sends, std::span<const Piece> receives, Stream stream) {
  const ContextScope scope(device_);
  const Library& lib = library();
  const StreamHandle handle = handle_of(stream);
  check_status(lib.begin_group(), "the beginning of copies");
  int status = kSuccess;
  const auto post = [&](const Piece& piece, auto&& call) {
    if (piece.bytes == 0 || (status != kSuccess && status != kInProgress)) return;
    status = call(piece.data, static_cast<size_t>(piece.bytes), kByte, piece.peer, state_, handle);
  };
  for (const Piece& piece : sends) post(piece, lib.send);
  for (const Piece& piece : receives) post(piece, lib.receive);
  const int end = lib.end_group();  // in any case: groups are counted
  check_status(status, "a copy");
  check_status(end, "the end of copies");
}

}  // namespace cuop::backend::cuda
