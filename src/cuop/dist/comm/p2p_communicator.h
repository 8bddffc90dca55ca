// A whole communicator over any transport: collectives as messages (p2p_collectives.h), deadlines
// in every wait, failures by control messages (failure_watch.h).
#pragma once

#include <memory>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/failure_watch.h"
#include "cuop/dist/comm/mailbox.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

class P2pCommunicator final : public Communicator {
 public:
  /// `watch` is null unless the communicator was split from another.
  P2pCommunicator(std::shared_ptr<Transport> transport, std::shared_ptr<FailureWatch> watch,
                  double timeout);

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string_view kind() const override { return transport_->kind(); }
  int local_size() const override { return transport_->local_size(); }
  int in_world(int rank) const override { return watch_->in_root(rank); }

  void send(const void* data, int64_t bytes, int dst, int tag) override;
  void recv(void* data, int64_t bytes, int src, int tag) override;
  void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                int64_t recv_bytes, int src, int tag) override;
  void barrier() override;
  void broadcast(void* data, int64_t bytes, int root) override;
  void scatter(const void* send, std::span<const Block> blocks, void* recv, int root) override;
  void gather(const void* send, std::span<const Block> blocks, void* recv, int root) override;
  void all_gather(const void* send, std::span<const Block> blocks, void* recv) override;
  void all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                  std::span<const Block> recv_blocks) override;
  void reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op,
              int root) override;
  void all_reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op) override;
  void reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts, DType dtype,
                      ReduceKind op) override;
  std::shared_ptr<Communicator> split(int color, int key) override;

  double timeout() const override { return timeout_; }
  void set_timeout(double seconds) override { timeout_ = seconds; }
  void refuse_call(const std::string& text) noexcept override { watch_->refuse_call(text); }
  void refuse_message(const std::string& text) noexcept override { watch_->refuse_message(text); }
  void abort(const std::string& reason) noexcept override { watch_->abort(reason); }
  std::string failure() const override { return watch_->failure(); }
  bool is_failure_reported() const override { return watch_->is_reported(); }
  void recover() override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  class Operation;

  void send_to_self(const void* data, int64_t bytes, int tag);
  void recv_from_self(std::string_view op, void* data, int64_t bytes, int tag);

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<FailureWatch> watch_;
  double timeout_;
  int64_t bytes_sent_ = 0;
  int64_t splits_ = 0;
  Mailbox to_self_;
  int64_t to_self_epoch_ = 0;  // messages of an earlier epoch are dropped
};

}  // namespace cuop::dist
