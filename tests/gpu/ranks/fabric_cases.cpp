#include "tests/gpu/ranks/fabric_cases.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/nccl.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist::rank_test {
namespace {

using conformance::Rank;
using ::testing::HasSubstr;

/// 0, 1, 2, ... from a number that tells rank and round apart.
Tensor numbered(int rank, int round, const Shape& shape, Device device) {
  const Tensor values = arange(0, element_count(shape), 1, DType::kFloat64);
  return to_device(reshape(add(values, 1e6 * rank + 1e3 * round), shape), device);
}

std::vector<double> values(const Tensor& tensor) {
  const Tensor host = contiguous(to_device(tensor, kCpu));
  return {host.data<double>(), host.data<double>() + host.size()};
}

/// Everybody sends `mine` to everybody, and expects what `of(peer)` says in tensors on `device`.
template <class Of>
void exchange_with_all(Rank comm, const Tensor& mine, Device device, const Of& of) {
  std::vector<Patch> sends, receives;
  for (int peer = 0; peer < comm->size(); ++peer) {
    sends.push_back({peer, mine});
    receives.push_back({peer, full(mine.shape(), -1.0, mine.dtype(), device)});
  }
  comm->exchange(sends, receives, current_stream(device));
  for (const Patch& patch : receives) {
    EXPECT_EQ(values(patch.elements), values(of(patch.peer))) << "from rank " << patch.peer;
  }
}

Device home() { return backend::current_device(); }

bool is_mapping() { return env().cuda_allocator.value == "auto" && env().peer_mapping.value; }

/// Whether NCCL takes what cannot be mapped: of ranks that share a GPU the first one's alone.
bool is_linking(Rank comm) {
  const int gpus = backend::device_count(DeviceType::kCuda);
  const bool is_used = env().nccl.value && backend::cuda::nccl_version() > 0;
  return is_used && comm->rank() < gpus && gpus > 1 && comm->size() > 1;
}

void ways_are_found(Rank comm) {
  for (int round = 0; round < 3; ++round) {
    const auto of = [&](int rank) { return numbered(rank, round, {37, 11}, home()); };
    exchange_with_all(comm, of(comm->rank()), home(), of);
  }
  const std::string ways = comm->exchange_ways();
  if (is_mapping()) {
    EXPECT_THAT(ways, HasSubstr("reads the memory of rank"));
    EXPECT_THAT(ways, Not(HasSubstr("through the host")));
    EXPECT_THAT(ways, Not(HasSubstr("NCCL")));
    return;
  }
  EXPECT_THAT(ways, Not(HasSubstr("reads the memory")));
  if (std::getenv("SIM_NCCL_FAULT") != nullptr) {  // of an NCCL that is there and does not work
    EXPECT_THAT(ways, HasSubstr("through the host: rank"));
    EXPECT_THAT(ways, HasSubstr("NCCL is not used: "));
    EXPECT_FALSE(comm->maps_gpu_memory());
  } else if (is_linking(comm)) {
    EXPECT_THAT(ways, HasSubstr("by NCCL: rank"));
    EXPECT_TRUE(comm->maps_gpu_memory());
  } else {
    EXPECT_THAT(ways, HasSubstr("through the host: rank"));
  }
}

/// Tensors of several pieces, in all layouts.
void large_tensors_and_views(Rank comm) {
  const auto huge = [&](int rank) { return numbered(rank, 1, {7, 700, 1000}, home()); };
  exchange_with_all(comm, huge(comm->rank()), home(), huge);
  const auto whole = [&](int rank) { return numbered(rank, 1, {3, 200, 500}, home()); };
  const auto turned = [](const Tensor& t) { return permute(t, std::vector<int64_t>{2, 0, 1}); };
  const auto cut = [](const Tensor& t) { return slice(slice(t, 2, 480, 20, -3), 1, 5, 190, 7); };
  exchange_with_all(comm, turned(whole(comm->rank())), home(),
                    [&](int rank) { return turned(whole(rank)); });
  exchange_with_all(comm, cut(whole(comm->rank())), home(),
                    [&](int rank) { return cut(whole(rank)); });
  const auto row = [&](int rank) {
    return broadcast_to(numbered(rank, 2, {1, 9}, home()), Shape{400, 9});
  };
  exchange_with_all(comm, row(comm->rank()), home(), row);
}

/// What was given back to the system is announced as gone, and what comes in its place as new.
void memory_comes_and_goes(Rank comm) {
  for (int round = 0; round < 6; ++round) {
    const Shape shape{round % 2 == 0 ? 900 : 5, 900 + 300 * round};
    const auto of = [&](int rank) { return numbered(rank, round, shape, home()); };
    exchange_with_all(comm, of(comm->rank()), home(), of);
    memory::current_resource(home()).release_cached();
  }
}

/// The same elements in memory of another library.
Tensor borrowed_copy(const Tensor& x) {
  namespace cuda = backend::cuda;
  const cuda::ContextScope scope(home());
  cuda::DevicePointer address = 0;
  cuda::check(cuda::driver().mem_alloc(&address, static_cast<size_t>(x.nbytes())), "test");
  const std::shared_ptr<void> owner(reinterpret_cast<void*>(address), [](void* data) {
    const cuda::ContextScope its(home());
    cuda::driver().mem_free(cuda::device_pointer(data));
  });
  const Tensor result =
      from_memory(owner.get(), contiguous_layout(x.shape()), x.dtype(), home(), owner);
  copy_into(result, x);
  return result;
}

/// Which is copied before.
void borrowed_memory(Rank comm) {
  constexpr int64_t kCount = 1000;
  const auto of = [](int rank) { return numbered(rank, 7, {kCount}, home()); };
  const Tensor borrowed = borrowed_copy(of(comm->rank()));
  const Tensor every_third = slice(borrowed, 0, 1, 1 + 3 * 300, 3);
  exchange_with_all(comm, every_third, home(),
                    [&](int rank) { return slice(of(rank), 0, 1, 1 + 3 * 300, 3); });
  EXPECT_EQ(values(borrowed), values(of(comm->rank())));
  // Once, for those who will send it often; what others read where it lies is not.
  const Tensor readable = comm->readable_by_others(borrowed), own = of(comm->rank());
  EXPECT_EQ(values(readable), values(borrowed));
  const bool is_copied = readable.storage() != borrowed.storage();
  const bool is_mapped = is_mapping() && comm->kind() != "thread" && comm->size() > 1;
  EXPECT_EQ(is_copied, is_mapped) << comm->kind();
  EXPECT_EQ(comm->readable_by_others(own).storage(), own.storage());
  exchange_with_all(comm, readable, home(), of);
}

/// A product that hides its moves, of operands that ranks have in such memory.
void product_in_chunks_of_borrowed_memory(Rank comm) {
  Machine machine;
  machine.overlap = 1;
  machine.flops = machine.link_bandwidth = 1e6;
  machine.latency = machine.message_overhead = 1e-12;
  const CommunicatorPtr whole = comm;
  const Sharding rows(Mesh::line(comm->size()), split_dim(2, 0));
  const Tensor a = numbered(0, 1, {60, 70}, kCpu), b = numbered(0, 2, {70, 900}, kCpu);
  const auto in_parts = [&](const Tensor& x) {
    const Box mine = rows.owner_box(x.shape(), comm->rank());
    const Interval lines = mine.empty() ? Interval{0, 0} : mine.interval(0);
    const Tensor part = to_device(slice(x, 0, lines.low, lines.high), home());
    return DistTensor(whole, rows, x.shape(), x.dtype(),
                      part.size() > 0 ? borrowed_copy(part) : part, home());
  };
  const DistTensor c = matmul(in_parts(a), in_parts(b), {.strategy = "row", .machine = machine});
  EXPECT_EQ(values(gather_all(c)), values(cuop::matmul(a, b)));
}

/// Ranks differ in where their tensors lie.
void host_and_other_devices(Rank comm) {
  const auto on = [&](int rank, Device device) { return numbered(rank, 3, {40, 30}, device); };
  exchange_with_all(comm, on(comm->rank(), home()), home(), [&](int r) { return on(r, home()); });
  const int gpus = backend::device_count(DeviceType::kCuda);
  for (int turn = 0; turn < comm->size(); ++turn) {
    const bool is_mine = turn == comm->rank();
    const Device other{DeviceType::kCuda, (home().index + 1) % gpus};
    for (const Device device : {is_mine ? kCpu : home(), is_mine ? other : home()}) {
      exchange_with_all(comm, on(comm->rank(), device), device,
                        [&](int rank) { return on(rank, kCpu); });
    }
  }
}

/// A stream's work comes before what it sends, and what it receives before its next work.
void calls_are_work_of_the_stream(Rank comm) {
  const backend::OwnedStream own(home());
  const StreamScope scope(own.get());
  const int next = (comm->rank() + 1) % comm->size();
  const int last = (comm->rank() + comm->size() - 1) % comm->size();
  Tensor x = full({60, 50}, comm->rank(), DType::kFloat64, home());
  for (int round = 0; round < 8; ++round) {
    const Tensor sent = permute(add(x, 1.0), std::vector<int64_t>{1, 0});
    const Tensor got = empty(sent.shape(), sent.dtype(), home());
    const std::vector<Patch> sends{{next, sent}}, receives{{last, got}};
    comm->exchange(sends, receives, own.get());
    x = permute(got, std::vector<int64_t>{1, 0});
  }
  const int origin = ((comm->rank() - 8) % comm->size() + comm->size()) % comm->size();
  EXPECT_EQ(values(x), std::vector<double>(3000, origin + 8.0));
}

/// One direction alone; empty tensors; ranks that do nothing.
void few_take_part(Rank comm) {
  const Tensor sent = numbered(0, 4, {50, 3}, home()),
               none = empty({0, 3}, DType::kFloat64, home());
  const Tensor got = full({50, 3}, 0.0, DType::kFloat64, home());
  std::vector<Patch> sends, receives;
  const int end = comm->size() - 1;
  if (comm->rank() == 0) sends = {{end, none}, {end, sent}};
  if (comm->rank() == end) receives = {{0, empty({0, 3}, DType::kFloat64, home())}, {0, got}};
  for (int round = 0; round < 3; ++round) comm->exchange(sends, receives, current_stream(home()));
  if (comm->rank() == end) {
    EXPECT_EQ(values(got), values(sent));
  }
}

/// Longer than what goes in one step.
void long_calls_read_mapped_memory(Rank comm) {
  constexpr int64_t kCount = 1'100'017;  // more than 8 MiB, and little where races are looked for
  const int64_t bytes = kCount * itemsize(DType::kFloat64);
  const Stream stream = current_stream(home());
  const auto of = [](int rank) { return numbered(rank, 8, {kCount}, home()); };
  exchange_with_all(comm, of(comm->rank()), home(), of);
  EXPECT_TRUE(comm->maps_gpu_memory() || !is_mapping());
  Tensor sum = of(0);
  for (int rank = 1; rank < comm->size(); ++rank) sum = add(sum, of(rank));
  const std::vector<double> expected = values(sum);
  const int root = comm->size() - 1;

  const Tensor x = of(comm->rank()), reduced = full({kCount}, -1.0, DType::kFloat64, home());
  comm->reduce(x.data(), reduced.data(), kCount, DType::kFloat64, ReduceKind::kSum, root, stream);
  EXPECT_EQ(values(reduced), comm->rank() == root ? expected : std::vector<double>(kCount, -1.0));
  comm->all_reduce(x.data(), x.data(), kCount, DType::kFloat64, ReduceKind::kSum, stream);
  EXPECT_EQ(values(x), expected);
  const Tensor told = of(comm->rank());
  comm->broadcast(told.data(), bytes, root, stream);
  EXPECT_EQ(values(told), values(of(root)));
}

class Exhausted final : public memory::MemoryResource {
 public:
  void* allocate(int64_t, Stream) override { throw MemoryError("exhausted"); }
  void deallocate(void*, int64_t, Stream) noexcept override {}
  memory::Statistics statistics() const override { return {}; }
  void reset_peak() override {}
  int64_t release_cached() override { return 0; }
  Device device() const override { return home(); }
};

/// What goes wrong on one rank within a call is told to the others.
void a_call_without_memory_is_refused(Rank comm) {
  const Tensor x = full({1 << 16}, 1.0, DType::kFloat64, home());
  const auto all_reduce = [&] {
    comm->all_reduce(x.data(), x.data(), x.size(), DType::kFloat64, ReduceKind::kSum,
                     current_stream(home()));
  };
  exchange_with_all(comm, x, home(), [&](int) { return x; });
  if (comm->size() == 1 || !comm->maps_gpu_memory()) return;
  if (comm->rank() == 0) {
    Exhausted exhausted;
    const memory::ResourceScope scope(exhausted);
    EXPECT_THROW(all_reduce(), MemoryError);
  } else {
    const auto go_on = [&] {
      for (;;) all_reduce();
    };
    EXPECT_THAT(go_on, testing::ThrowsMessage<CommunicationError>(HasSubstr("exhausted")));
  }
  comm->recover();
}

void a_failure_is_recovered_from(Rank comm) {
  const auto of = [](int rank) { return numbered(rank, 5, {64, 64}, home()); };
  if (comm->rank() == 0) {
    exchange_with_all(comm, of(0), home(), of);
    comm->abort("of the test");  // others may still be in the call
  } else {
    EXPECT_THROW(for (;;) exchange_with_all(comm, of(comm->rank()), home(), of),
                 CommunicationError);
  }
  comm->recover();
  exchange_with_all(comm, of(comm->rank()), home(), of);
}

void parts_have_ways_of_their_own(Rank comm) {
  const auto part = comm->split(comm->rank() % 2, -comm->rank());
  const auto of = [](int rank) { return numbered(rank, 6, {30, 30}, home()); };
  exchange_with_all(part, of(part->rank()), home(), of);
  exchange_with_all(comm, of(comm->rank()), home(), of);
}

/// One rank after the other: they may be threads, and looking opens a file.
int64_t open_files(Rank comm) {
  int64_t count = 0;
  for (int turn = 0; turn < comm->size(); ++turn) {
    comm->barrier();
    if (turn == comm->rank()) {
      const std::filesystem::directory_iterator all("/proc/self/fd"), end;
      count = std::distance(all, end);
    }
  }
  comm->barrier();
  return count;
}

/// The files that stand for memory are closed when it is mapped.
void no_files_stay_open(Rank comm) {
  const auto exchange = [&](int round) {
    const auto of = [&](int rank) {
      return numbered(rank, round, {1 << 10, 600 * (1 + round % 3)}, home());
    };
    exchange_with_all(comm, of(comm->rank()), home(), of);
    memory::current_resource(home()).release_cached();
  };
  exchange(0);
  const int64_t before = open_files(comm);
  for (int round = 1; round < 5; ++round) exchange(round);
  EXPECT_EQ(open_files(comm), before);
}

}  // namespace

std::vector<conformance::Case> fabric_cases() {
  return {{"ways_are_found", ways_are_found},
          {"large_tensors_and_views", large_tensors_and_views},
          {"memory_comes_and_goes", memory_comes_and_goes},
          {"borrowed_memory", borrowed_memory},
          {"product_in_chunks_of_borrowed_memory", product_in_chunks_of_borrowed_memory},
          {"host_and_other_devices", host_and_other_devices},
          {"calls_are_work_of_the_stream", calls_are_work_of_the_stream},
          {"few_take_part", few_take_part},
          {"long_calls_read_mapped_memory", long_calls_read_mapped_memory},
          {"a_call_without_memory_is_refused", a_call_without_memory_is_refused},
          {"a_failure_is_recovered_from", a_failure_is_recovered_from},
          {"parts_have_ways_of_their_own", parts_have_ways_of_their_own},
          {"no_files_stay_open", no_files_stay_open}};
}

}  // namespace cuop::dist::rank_test
