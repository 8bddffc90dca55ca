// GPU memory that the processes of a host map into each other: what one rank sends another reads
// where it lies, over the link between their GPUs, and the host's memory takes no part.
//
// Ranks agree on it once, by a trial: each announces a little tensor to each and reads those of the
// others, so that whatever stands in the way (another host, a container, a driver, GPUs without a
// link) is found out before anything depends on it, and both ends know. An announcement is a file
// that the driver makes of a piece of memory (fabric_exports.h), handed over by a Unix socket
// (descriptor_channel.h) and mapped by the receiver (fabric_imports.h). Messages between ranks then
// name places in memory that was announced. What its owner gives back it says at its next exchange;
// until then a peer keeps that memory from the system.
//
// No process waits for its GPU in an exchange of such memory: streams wait for each other
// (fabric_flags.h). Where ranks cannot have that, they wait and tell each other by messages.
//
// Where some GPUs stay out of reach, such as those of other hosts, NCCL takes what goes between
// them (nccl_links.h), and where that cannot be either, the host's memory.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/fabric_exports.h"
#include "cuop/dist/comm/fabric_flags.h"
#include "cuop/dist/comm/fabric_imports.h"
#include "cuop/dist/comm/nccl_links.h"
#include "cuop/dist/comm/p2p_collectives.h"

namespace cuop::dist {

/// Of one communicator, and used within its calls.
class Fabric : NonCopyable {
 public:
  /// Collective. This rank reads with `device`, nothing when that is the host.
  Fabric(Exchange& x, Device device, fabric::Watched watched);
  /// Waits a while for what calls still copy.
  ~Fabric();

  /// Whether anything goes from a rank's GPU to another's without the host: the same on all ranks.
  bool is_used() const { return is_used_; }
  /// "cuda:0, GPU-5f1c... reads the memory of rank 1 (cuda:1, GPU-88e0...); by NCCL: rank 2 (...);
  /// through the host: rank 3 (why); streams wait for ranks 1".
  std::string description() const;

  /// The call on all ranks, as work of its stream. Returns before that is done where streams wait
  /// for each other, else when what is received is there and what is sent was read.
  void exchange(Exchange& x, const Collective& call);
  /// Null where no streams wait for others.
  fabric::Flags* flags() const { return flags_.get(); }

  /// The call on all ranks: `Communicator::map_memory`.
  std::vector<std::vector<Tensor>> map(Exchange& x, std::span<const Tensor> mine);

  /// For other calls of the communicator: tells peers what memory is gone and lets go of theirs.
  void tidy();
  /// Whether others read this rank's memory where it lies.
  bool is_read() const { return std::ranges::any_of(peers_, &Peer::reads_us); }
  /// The tensor, or a copy of it that others can map.
  Tensor readable(const Tensor& tensor) const;

 private:
  struct Peer {
    fabric::Offer offer;
    std::optional<fabric::Exports> exports;
    std::optional<fabric::Imports> imports;
    /// What is wrong with what it announced, or that it is not there; null while all is well.
    std::exception_ptr error;
    bool reads_us = false;
    std::string unread;  ///< why this rank does not read it
  };
  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  // fabric.cpp: the agreement.
  void make_offers(Exchange& x);
  void make_trials(Exchange& x);
  void agree(Exchange& x);
  void link(Exchange& x);
  void order(Exchange& x, fabric::Watched watched);
  bool is_through();
  bool has_gpu(int rank) { return !peer(rank).offer.gpu.str().empty(); }
  fabric::Trial announce_trial(Peer& to);
  std::string find_out(const Peer& from, const fabric::Trial& trial) const;

  /// Receives and sends what can be; what goes wrong is the peer's error.
  void advance() noexcept;
  void post_arrival(Exchange& x, int from, int64_t pieces);
  /// Of what `to` waits for in this call.
  void post_departure(Exchange& x, int to);

  // fabric_map.cpp
  std::vector<fabric::MapNote> notes_for(int rank, std::span<const Tensor> mine);
  std::vector<Tensor> views_of(Exchange& x, int rank, const std::vector<fabric::MapNote>& notes);

  // fabric_exchange.cpp: a call.
  struct Side;
  void carry(Exchange& x, const Collective& call);
  void await_places(Exchange& x, std::vector<Side>& out, std::vector<Side>& in, Stream stream);
  void copy_linked(Exchange& x, const std::vector<Side>& out, const std::vector<Side>& in);
  void receive_waiting(Exchange& x, const std::vector<Side>& out, const std::vector<Side>& in,
                       Stream stream);
  void receive_in_order(Exchange& x, const std::vector<Side>& out, const std::vector<Side>& in,
                        Stream stream);
  void prepare(Exchange& x, Side& to, Stream stream);
  void take_notes(Exchange& x, Side& from, Stream stream);
  void land(Exchange& x, const Side& from, Stream stream) const;
  void pull(const Tensor& to, const Tensor& from, Stream stream) const;
  static bool is_idle(Stream stream);
  void wait_for(Exchange& x, Stream stream) const;

  Device device_;
  std::string absence_;    ///< why this rank takes no part
  std::string unordered_;  ///< why no streams wait for others
  std::optional<DescriptorChannel> channel_;
  std::vector<Peer> peers_;
  std::optional<NcclLinks> links_;
  std::unique_ptr<fabric::Flags> flags_;
  int rank_ = 0;
  bool is_used_ = false;
  // Of a call that is under way or has failed, as far as peers may still read what it sends, and
  // this rank's GPU what they send.
  std::vector<Tensor> kept_;
  std::optional<Stream> busy_;
};

}  // namespace cuop::dist
