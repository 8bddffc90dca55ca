// NCCL between ranks whose GPUs cannot read each other's memory, such as those of two hosts: what
// one sends another travels as NCCL's sends and receives, over whatever it finds between the two.
//
// Ranks agree on it as on mapped memory (fabric.h), by a trial. All that NCCL does has a deadline
// here; what is not through by then, or is interrupted, is given up on the GPU as well.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuop/backend/cuda/nccl.h"
#include "cuop/core/tensor.h"
#include "cuop/dist/comm/fabric_messages.h"
#include "cuop/dist/comm/p2p_collectives.h"

namespace cuop::dist {

/// Which ways between this rank and another need it, as memory is not read where it lies.
struct LinkNeed {
  bool to = false, from = false;
};

class NcclLinks {
 public:
  /// What a rank says of itself. Looking for NCCL opens it, which takes a while.
  struct Candidate {
    int64_t version = 0;  ///< 0 for a rank that does not use it
    fabric::Text gpu;
  };
  /// Those that could use it together: of one version, each with another GPU.
  static std::vector<int> members(std::span<const Candidate> candidates);

  /// Collective over all ranks; members meet, and try the links that are needed. `gpu` names the
  /// device, `needs` has one for each rank.
  NcclLinks(Exchange& x, Device device, const fabric::Text& gpu, std::vector<LinkNeed> needs);

  /// Whether all members can use it: the same on all ranks.
  bool is_used() const { return is_used_; }
  /// Why not, as far as this rank knows.
  const std::string& finding() const { return finding_; }
  /// Whether elements go so to the rank, or come from it.
  bool leads_to(int rank) const { return is_used_ && need(rank).to; }
  bool leads_from(int rank) const { return is_used_ && need(rank).from; }

  /// A tensor without gaps on this rank's device, and the other rank.
  struct Copy {
    int rank = 0;
    Tensor tensor;
  };
  /// Returns when the copies are made, of which there is one at least, as work of the stream.
  /// Between two ranks the first that is sent meets the first that is received, of as many bytes.
  void copy(Exchange& x, std::span<const Copy> sends, std::span<const Copy> receives,
            Stream stream);

 private:
  const LinkNeed& need(int rank) const { return needs_[static_cast<size_t>(rank)]; }
  bool is_member(int rank) const { return index(rank) >= 0; }
  int index(int rank) const;
  void meet(Exchange& x);
  void try_links(Exchange& x);
  std::vector<backend::cuda::NcclGroup::Piece> pieces_of(std::span<const Copy> copies) const;
  void start(std::span<const Copy> sends, std::span<const Copy> receives, Stream stream);
  /// Whether what was started on the stream, and is all that it has, is done.
  bool is_through(Stream stream) const;
  template <class Holds>
  void await(Exchange& x, const char* what, Holds&& holds);
  bool all_agree(Exchange& x);

  Device device_;
  std::vector<int> members_;
  std::vector<LinkNeed> needs_;
  std::unique_ptr<backend::cuda::NcclGroup> group_;
  uint64_t mark_ = 0;  ///< of this group, which stands in what is tried
  std::string finding_;
  bool is_used_ = false;
};

}  // namespace cuop::dist
