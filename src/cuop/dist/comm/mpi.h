// MPI, found at run time: libcuop_mpi.so beside libcuop.so, built against the MPI that was there.
#pragma once

#include <memory>
#include <string>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// "" when the module can be opened, else the reason why not. Initialises nothing.
std::string mpi_unavailable_reason();

/// The communicator of all MPI ranks. Initialises MPI on first use unless somebody (mpi4py) has;
/// whoever initialised it finalises it. CommunicationError with the reason when there is no MPI.
std::shared_ptr<Communicator> make_mpi_communicator();

/// Longest single MPI message in bytes (128 KiB); tests set it low to see long ones cut. Starts
/// MPI.
void set_mpi_chunk_bytes(int64_t bytes);
/// Whether long messages from ranks of this host are read in their memory (they are, where the
/// system allows it); tests switch it off to see them sent. Starts MPI.
void set_mpi_reads_memory(bool reads);

}  // namespace cuop::dist
