#include "cuop/dist/comm/mpi.h"

#include <dlfcn.h>

#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/datagrams.h"
#include "cuop/dist/comm/p2p_communicator.h"

namespace cuop::dist {

namespace {

/// The folder that this library was loaded from.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&mpi_unavailable_reason), &info) == 0 ||
      info.dli_fname == nullptr) {
    return ".";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

const DynLib& module() {
  // Never destroyed: threads may compute while the process ends.
  static const DynLib& library = *new DynLib("MPI", {own_folder() + "/libcuop_mpi.so"});
  return library;
}

}  // namespace

std::string mpi_unavailable_reason() {
  if (module().is_loaded()) return "";
  return cat(
      "the module libcuop_mpi.so could not be opened, it is built where an MPI is installed (",
      module().reason(), ")");
}

std::shared_ptr<Communicator> make_mpi_communicator() {
  const std::string reason = mpi_unavailable_reason();
  if (!reason.empty()) throw CommunicationError(cat("mpi: ", reason));
  std::shared_ptr<Transport> transport;
  void (*const make_world)(std::shared_ptr<Transport>*) = module().require("cuop_mpi_world");
  make_world(&transport);
  auto comm =
      std::make_shared<P2pCommunicator>(std::move(transport), nullptr, env().comm_timeout.value);
  if (comm->size() > 1) comm->start_heartbeat({own_addresses(), ""});
  return comm;
}

void set_mpi_chunk_bytes(int64_t bytes) {
  constexpr int64_t kMost = int64_t{1} << 30;  // MPI counts bytes in an int
  if (bytes < 1 || bytes > kMost) {
    throw ExecutionError(cat("mpi: chunks of ", bytes, " bytes, possible are 1 to ", kMost));
  }
  void (*const set)(int64_t) = module().require("cuop_mpi_set_chunk_bytes");
  set(bytes);
}

void set_mpi_reads_memory(bool reads) {
  void (*const set)(bool) = module().require("cuop_mpi_set_reads_memory");
  set(reads);
}

}  // namespace cuop::dist
