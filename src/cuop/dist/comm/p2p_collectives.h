// The collectives as messages between pairs of ranks. Sources: Thakur, Rabenseifner, Gropp,
// "Optimization of Collective Communication Operations in MPICH" (2005); Bruck et al., "Efficient
// Algorithms for All-to-All Communications in Multiport Message-Passing Systems" (1997). Reductions
// differ from them: they add in rank order, so that their bits do not depend on the algorithm.
//
// Short messages take few rounds, long ones few bytes; every algorithm works for any number of
// ranks and uneven or empty blocks. Arguments have been checked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

/// One running operation, as these algorithms see it: post messages to and from other ranks, then
/// wait for all of them.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether the rank lives on the same host as this one.
  virtual bool is_near(int rank) const = 0;
  /// Seconds of a wait until it raises.
  virtual double timeout() const = 0;
  /// Nothing is posted for no bytes: both sides know the length.
  virtual void post_send(const void* data, int64_t bytes, int dst) = 0;
  virtual void post_recv(void* data, int64_t bytes, int src) = 0;
  /// A message without content.
  virtual void post_signal(int dst) = 0;
  virtual void post_await(int src) = 0;
  /// Something that comes true by itself; the peer is named where it does not. `holds` may raise a
  /// CommunicationError that says what is wrong with it.
  virtual void post_condition(std::function<bool()> holds, int peer) = 0;
  /// What moves by itself when it is tested, and not in messages.
  virtual void post_delivery(DeliveryPtr delivery, int peer) = 0;
  /// Fails the call on all ranks: "exchange: rank 0 of 2 <what>".
  [[noreturn]] virtual void fail(int blamed, const std::string& what) = 0;
  /// Returns when all that was posted is complete; raises at the deadline or on a failure.
  virtual void wait_all() = 0;
};

/// Sends mine[r] to rank r; what came from each of them, and this rank's own.
template <class Message>
std::vector<Message> swap_with_all(Exchange& x, const std::vector<Message>& mine) {
  std::vector<Message> theirs = mine;
  for (int rank = 0; rank < x.size(); ++rank) {
    if (rank == x.rank()) continue;
    x.post_send(&mine[static_cast<size_t>(rank)], sizeof(Message), rank);
    x.post_recv(&theirs[static_cast<size_t>(rank)], sizeof(Message), rank);
  }
  x.wait_all();
  return theirs;
}

}  // namespace cuop::dist

namespace cuop::dist::p2p {

void barrier(Exchange& x);
void broadcast(Exchange& x, void* data, int64_t bytes, int root);
void scatter(Exchange& x, const void* send, std::span<const Block> blocks, void* recv, int root);
void gather(Exchange& x, const void* send, std::span<const Block> blocks, void* recv, int root);
void all_gather(Exchange& x, const void* send, std::span<const Block> blocks, void* recv);
void all_to_all(Exchange& x, const void* send, std::span<const Block> send_blocks, void* recv,
                std::span<const Block> recv_blocks);

struct CombineRule {
  DType dtype;
  ReduceKind op;
};
void reduce(Exchange& x, const void* send, void* recv, int64_t count, CombineRule what, int root);
void all_reduce(Exchange& x, const void* send, void* recv, int64_t count, CombineRule what);
void reduce_scatter(Exchange& x, const void* send, void* recv, std::span<const int64_t> counts,
                    CombineRule what);

}  // namespace cuop::dist::p2p
