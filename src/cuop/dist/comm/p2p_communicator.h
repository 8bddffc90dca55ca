// A whole communicator over any transport: collectives as messages (p2p_collectives.h), deadlines
// in every wait, failures by control messages (failure_watch.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/failure_watch.h"
#include "cuop/dist/comm/mailbox.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

class Fabric;
class SharedExchange;

class P2pCommunicator final : public Communicator {
 public:
  /// `watch` is null unless the communicator was split from another.
  P2pCommunicator(std::shared_ptr<Transport> transport, std::shared_ptr<FailureWatch> watch,
                  double timeout);
  ~P2pCommunicator() override;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string_view kind() const override { return transport_->kind(); }
  int local_size() const override;
  int in_world(int rank) const override { return watch_->in_root(rank); }

  void send(const void* data, int64_t bytes, int dst, int tag) override;
  void recv(void* data, int64_t bytes, int src, int tag) override;
  void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                int64_t recv_bytes, int src, int tag) override;
  std::shared_ptr<Communicator> split(int color, int key) override;

  void refuse_call(const std::string& text) noexcept override {
    if (is_at_home()) watch_->refuse_call(text);
  }
  void refuse_message(const std::string& text) noexcept override {
    if (is_at_home()) watch_->refuse_message(text);
  }
  void abort_for(int failed, const std::string& reason) noexcept override;
  // In a child of fork the watch is not asked: it would take messages that are for the rank.
  std::string failure() const override {
    return is_at_home() ? watch_->failure() : "this process was forked from the rank's";
  }
  bool is_failure_reported() const override { return !is_at_home() || watch_->is_reported(); }
  void recover() override;
  bool exchanges_tensors(Stream stream) override;
  std::string exchange_ways() const override;
  bool maps_gpu_memory() const override;
  Tensor readable_by_others(const Tensor& tensor) const override;
  std::vector<std::vector<Tensor>> map_memory(std::span<const Tensor> mine) override;
  std::vector<RankHealth> health() const override {
    check_process("health");
    return watch_->health();
  }
  std::shared_ptr<Communicator> shrink() override;

  /// Collective, before anything else: from now on the ranks watch each other, those of other hosts
  /// by `way`.
  void start_heartbeat(const HostWay& way);

 protected:
  void run(const Collective& call) override;

 private:
  class Operation;

  void exchange_tensors(const Collective& call);
  void run_call(const Collective& call);
  /// Raises what streams of this rank have given up for, as an error of `op`.
  void check_streams(const char* op);
  void forget_streams();
  /// After a failure no streams wait for this rank any more, nor its own for others.
  void release_streams() noexcept;
  /// Whether there is a fabric, and no recovery of what this was split from came behind it.
  bool has_fabric() const { return fabric_ && fabric_epoch_ == watch_->epoch(); }
  void check_own_block(const Collective& call);
  void send_to_self(const void* data, int64_t bytes, int tag);
  void recv_from_self(std::string_view op, void* data, int64_t bytes, int tag);

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<FailureWatch> watch_;
  int64_t splits_ = 0;
  std::unique_ptr<Fabric> fabric_;          ///< null until the first exchange
  std::unique_ptr<SharedExchange> shared_;  ///< null where the fabric is used
  int64_t fabric_epoch_ = 0;
  std::mutex to_self_mutex_;  // threads may share a rank that is alone
  Mailbox to_self_;
  int64_t to_self_epoch_ = 0;  // messages of an earlier epoch are dropped
};

}  // namespace cuop::dist
