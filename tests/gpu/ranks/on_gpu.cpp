#include "tests/gpu/ranks/on_gpu.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {
namespace {

using Kind = Collective::Kind;

/// How far a call reaches into its buffers, in bytes.
struct Extents {
  int64_t send = 0;
  int64_t recv = 0;
};

Extents extents_of(const Collective& call, int rank) {
  const auto own = [&] { return call.blocks[static_cast<size_t>(rank)].bytes; };
  const auto all = [](std::span<const Block> blocks) { return conformance::total_extent(blocks); };
  const int64_t elements = call.count * itemsize(call.dtype);
  const bool is_root = rank == call.root;
  switch (call.kind) {
    case Kind::kBroadcast:
      return {call.count, call.count};
    case Kind::kScatter:
      return {is_root ? all(call.blocks) : 0, own()};
    case Kind::kGather:
      return {own(), is_root ? all(call.blocks) : 0};
    case Kind::kAllGather:
      return {own(), all(call.blocks)};
    case Kind::kAllToAll:
      return {all(call.blocks), all(call.recv_blocks)};
    case Kind::kReduce:
      return {elements, is_root ? elements : 0};
    case Kind::kAllReduce:
      return {elements, elements};
    case Kind::kReduceScatter:
      return {elements, call.counts[static_cast<size_t>(rank)] * itemsize(call.dtype)};
    default:
      return {};
  }
}

/// Makes the collective calls of a host's buffers with copies of them on a GPU.
class OnGpu final : public Communicator {
 public:
  explicit OnGpu(std::shared_ptr<Communicator> inner)
      : Communicator(inner->timeout()), inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view kind() const override { return inner_->kind(); }
  int local_size() const override { return inner_->local_size(); }
  int in_world(int rank) const override { return inner_->in_world(rank); }

  void send(const void* data, int64_t bytes, int dst, int tag) override {
    forward([&] { inner_->send(data, bytes, dst, tag); });
  }
  void recv(void* data, int64_t bytes, int src, int tag) override {
    forward([&] { inner_->recv(data, bytes, src, tag); });
  }
  void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                int64_t recv_bytes, int src, int tag) override {
    forward([&] { inner_->sendrecv(send_data, send_bytes, dst, recv_data, recv_bytes, src, tag); });
  }
  std::shared_ptr<Communicator> split(int color, int key) override {
    std::shared_ptr<Communicator> part;
    forward([&] { part = inner_->split(color, key); });
    return part == nullptr ? nullptr : std::make_shared<OnGpu>(part);
  }
  void refuse_call(const std::string& text) noexcept override { inner_->refuse_call(text); }
  void refuse_message(const std::string& text) noexcept override { inner_->refuse_message(text); }
  void abort_for(int failed, const std::string& reason) noexcept override {
    inner_->abort_for(failed, reason);
  }
  std::string failure() const override { return inner_->failure(); }
  bool is_failure_reported() const override { return inner_->is_failure_reported(); }
  void recover() override {
    forward([&] { inner_->recover(); });
  }
  std::vector<RankHealth> health() const override { return inner_->health(); }
  bool exchanges_tensors(Stream) override { return true; }
  void map_all() {
    inner_->exchanges_tensors(current_stream(backend::current_device()));
    inner_->set_mapped_from(0);
  }
  std::shared_ptr<Communicator> shrink() override {
    std::shared_ptr<Communicator> left;
    forward([&] { left = inner_->shrink(); });
    return std::make_shared<OnGpu>(left);
  }

 protected:
  void run(const Collective& call) override;

 private:
  template <class Work>
  void forward(Work&& work) {
    inner_->set_timeout(timeout_);
    work();
    set_sent(inner_->bytes_sent(), inner_->bytes_sent_to());
  }
  void exchange_tensors(const Collective& call);
  void pass_on(const Collective& call, const void* send, void* recv, Stream stream);

  std::shared_ptr<Communicator> inner_;
};

void OnGpu::run(const Collective& call) {
  if (in_world(rank()) % 4 == 3) {
    return forward([&] { pass_on(call, call.send, call.recv, {}); });
  }
  if (call.kind == Kind::kExchange) return exchange_tensors(call);
  const Device device = backend::current_device();
  backend::Runtime& runtime = backend::runtime(device);
  std::optional<backend::OwnedStream> own;
  std::optional<StreamScope> scope;
  if (rank() % 2 == 0) scope.emplace(own.emplace(device).get());
  const Stream stream = current_stream(device);
  const auto [send_bytes, recv_bytes] = extents_of(call, rank());
  const auto* const send_begin = static_cast<const char*>(call.send);
  const auto* const recv_begin = static_cast<const char*>(call.recv);
  const int64_t apart = recv_begin - send_begin;
  // The result may lie in the input.
  const bool is_within =
      send_begin != nullptr && apart >= 0 && apart < std::max<int64_t>(1, send_bytes);
  const Tensor input = empty({is_within ? std::max(send_bytes, apart + recv_bytes) : send_bytes},
                             DType::kUInt8, device);
  const Tensor output = empty({is_within ? 0 : recv_bytes}, DType::kUInt8, device);
  auto* const there =
      is_within ? static_cast<char*>(input.data()) + apart : static_cast<char*>(output.data());
  runtime.copy(input.data(), call.send, send_bytes, stream);
  // What the call leaves alone stays as it was.
  if (!is_within) runtime.copy(there, call.recv, recv_bytes, stream);
  forward([&] { pass_on(call, input.data(), there, stream); });
  runtime.copy(call.recv, there, recv_bytes, stream);
}

/// Every other tensor has its axes in the opposite order in memory.
Tensor on_gpu(const Tensor& host, size_t number, Device device) {
  std::vector<int64_t> axes(static_cast<size_t>(host.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  if (number % 2 == 1) std::reverse(axes.begin(), axes.end());
  return permute(to_device(permute(host, axes), device), axes);
}

void OnGpu::exchange_tensors(const Collective& call) {
  const Device device = backend::current_device();
  std::vector<Patch> sends, receives;
  for (const Patch& patch : call.sends) {
    sends.push_back({patch.peer, on_gpu(patch.elements, sends.size(), device)});
  }
  for (const Patch& patch : call.receives) {
    receives.push_back({patch.peer, on_gpu(patch.elements, receives.size() / 2, device)});
  }
  forward([&] { inner_->exchange(sends, receives, current_stream(device)); });
  for (size_t i = 0; i < receives.size(); ++i) {
    copy_across(call.receives[i].elements, receives[i].elements);
  }
}

void OnGpu::pass_on(const Collective& call, const void* send, void* recv, Stream stream) {
  switch (call.kind) {
    case Kind::kBarrier:
      return inner_->barrier();
    case Kind::kBroadcast:
      return inner_->broadcast(recv, call.count, call.root, stream);
    case Kind::kScatter:
      return inner_->scatter(send, call.blocks, recv, call.root, stream);
    case Kind::kGather:
      return inner_->gather(send, call.blocks, recv, call.root, stream);
    case Kind::kAllGather:
      return inner_->all_gather(send, call.blocks, recv, stream);
    case Kind::kAllToAll:
      return inner_->all_to_all(send, call.blocks, recv, call.recv_blocks, stream);
    case Kind::kExchange:
      return inner_->exchange(call.sends, call.receives, stream);
    case Kind::kReduce:
      return inner_->reduce(send, recv, call.count, call.dtype, call.op, call.root, stream);
    case Kind::kAllReduce:
      return inner_->all_reduce(send, recv, call.count, call.dtype, call.op, stream);
    case Kind::kReduceScatter:
      return inner_->reduce_scatter(send, recv, call.counts, call.dtype, call.op, stream);
    case Kind::kSplit:
      break;
  }
}

}  // namespace

std::shared_ptr<Communicator> on_gpu(std::shared_ptr<Communicator> inner) {
  return std::make_shared<OnGpu>(std::move(inner));
}

std::function<void(conformance::Rank)> mapped(std::function<void(conformance::Rank)> body) {
  return [body = std::move(body)](conformance::Rank comm) {
    dynamic_cast<OnGpu&>(*comm).map_all();
    body(comm);
  };
}

}  // namespace cuop::dist::rank_test
