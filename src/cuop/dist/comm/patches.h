// The tensors of an exchange, rank by rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/p2p_collectives.h"

namespace cuop::dist {

/// Those to or from `rank`, in their order.
std::vector<Tensor> tensors_of(std::span<const Patch> patches, int rank);

/// patch(peer) of all ranks but this one, which begins with the next: each with another one.
template <class PatchOf>
std::vector<Patch> patches_of_others(int rank, int size, const PatchOf& patch) {
  std::vector<Patch> patches;
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    patches.push_back({peer, patch(peer)});
  }
  return patches;
}

/// "" when the tensors that rank `src` sends are as many, of the same shapes and dtypes, as those
/// that are expected of it; else "expects ... from rank 1, which sends ...".
std::string misfit(const std::vector<Tensor>& expected, const std::vector<Tensor>& sent, int src);

/// Whether all lie in GPUs' memory that cuOP has mapped. Another library's may belong to a context
/// of the driver's, and then copies from a peer wait for the default streams of both GPUs: 256 MiB
/// each way between two H200s take 1.5 ms by the copy engine, 0.7 from mapped memory.
bool are_mapped(std::span<const Patch> patches);

/// Copies what this rank sends itself; fails the call where that does not fit.
void copy_own_patches(Exchange& x, const Collective& call);

/// Bytes of the host in which tensors stand one after the other: page-locked for a GPU's stream.
class PackedTensors {
 public:
  /// Room for tensors of these shapes and dtypes.
  PackedTensors(const std::vector<Tensor>& like, Stream stream);

  char* data() const { return static_cast<char*>(whole_.data()); }
  int64_t bytes() const { return bytes_; }
  /// Of the tensors, in their order.
  const std::vector<Tensor>& places() const { return places_; }

 private:
  int64_t bytes_ = 0;
  Tensor whole_;
  std::vector<Tensor> places_;
};

}  // namespace cuop::dist
