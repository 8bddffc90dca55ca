// Collective calls on GPU buffers: of ranks that are processes through page-locked host memory and
// by reading each other's GPU memory, of threads of this process by peer access alone.
//
//   mpirun -np 2 cuop-bench-collectives [largest MiB]
//   cuop-bench-collectives LARGEST_MIB THREADS
//
// Microseconds of a call, of the slowest rank: the median of 9 rounds of at least 3 calls and a
// wait for the GPU. float32; a rank's part of an all_gather, all_to_all or exchange (of tensors,
// with all others) has the bytes of the row divided by the ranks. With CUOP_STREAM_FLAGS=0 the
// processes wait for their GPUs in each call, where streams would wait for each other; the first
// line says which it was.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/stream.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/bootstrap.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/ops/create/create.h"

namespace {

using namespace cuop;  // NOLINT: a program

double median_us(dist::Communicator& comm, Stream stream, int64_t bytes,
                 const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const int calls = bytes > (int64_t{16} << 20) ? 3 : 20;
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    backend::runtime(stream.device).synchronize(stream);
    comm.barrier();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    backend::runtime(stream.device).synchronize(stream);
    double taken = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
    comm.all_reduce(&taken, &taken, 1, DType::kFloat64, ReduceKind::kMax);
    if (round > 0) rounds.push_back(taken);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

struct Case {
  std::string name;
  std::function<void()> call;
};

std::vector<Case> cases(dist::Communicator& comm, const Tensor& in, const Tensor& out,
                        Stream stream) {
  const int64_t bytes = in.nbytes();
  const auto blocks = dist::equal_blocks(comm.size(), bytes / comm.size());
  return {
      {"broadcast", [&, bytes] { comm.broadcast(in.data(), bytes, 0, stream); }},
      {"gather", [&, blocks] { comm.gather(in.data(), blocks, out.data(), 0, stream); }},
      {"all_gather", [&, blocks] { comm.all_gather(in.data(), blocks, out.data(), stream); }},
      {"all_to_all",
       [&, blocks] { comm.all_to_all(in.data(), blocks, out.data(), blocks, stream); }},
      {"all_reduce",
       [&] {
         comm.all_reduce(in.data(), out.data(), in.size(), in.dtype(), ReduceKind::kSum, stream);
       }},
      {"exchange",
       [&, bytes] {
         const int64_t part = bytes / comm.size();
         std::vector<dist::Patch> sends, receives;
         for (int peer = 0; peer < comm.size(); ++peer) {
           if (peer == comm.rank()) continue;
           const auto piece = [&](const Tensor& of) {
             char* const first = static_cast<char*>(of.data()) + peer * part;
             return from_memory(first, contiguous_layout({part}), DType::kUInt8, of.device(),
                                of.storage());
           };
           sends.push_back({peer, piece(in)});
           receives.push_back({peer, piece(out)});
         }
         comm.exchange(sends, receives, stream);
       }},
  };
}

/// Short calls, where waits are what counts, in smaller steps.
int64_t next_size(int64_t bytes) { return bytes < (int64_t{64} << 10) ? bytes * 4 : bytes * 8; }

void bench(const std::shared_ptr<dist::Communicator>& comm, int64_t largest) {
  const Device device = backend::current_device();
  const Stream stream = current_stream(device);
  const bool are_threads = comm->kind() == "thread";
  comm->exchanges_tensors(stream);
  if (comm->rank() == 0) {
    std::printf("%d ranks; rank 0: %s\n\n", comm->size(),
                are_threads ? "threads" : comm->exchange_ways().c_str());
    std::printf(
        "| call | bytes | through the host, us | mapped, us | ratio |\n|---|---|---|---|---|\n");
  }
  for (int64_t bytes = 256; bytes <= largest; bytes = next_size(bytes)) {
    const Tensor in = ones({bytes / 4}, DType::kFloat32, device);
    const Tensor out = zeros({bytes / 4}, DType::kFloat32, device);
    for (const Case& each : cases(*comm, in, out, stream)) {
      comm->set_mapped_from(std::numeric_limits<int64_t>::max());
      // These take the mapped way whatever their length.
      const bool is_staged = !are_threads && each.name != "all_to_all" && each.name != "exchange";
      const double staged = is_staged ? median_us(*comm, stream, bytes, each.call) : 0.0;
      comm->set_mapped_from(0);
      const double mapped = median_us(*comm, stream, bytes, each.call);
      if (comm->rank() != 0) continue;
      std::printf("| %s | %lld | ", each.name.c_str(), static_cast<long long>(bytes));
      if (is_staged) {
        std::printf("%.1f | %.1f | %.2f |\n", staged, mapped, staged / mapped);
      } else {
        std::printf(" | %.1f | |\n", mapped);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t largest = (argc > 1 ? std::atoll(argv[1]) : 256) << 20;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const auto comm = dist::world();
  if (backend::current_device().is_cpu() || comm->size() * threads < 2) {
    std::fprintf(stderr, "cuop-bench-collectives: needs GPUs and 2 ranks or more\n");
    return 2;
  }
  if (threads > 1) {
    dist::run_ranks(threads,
                    [&](const std::shared_ptr<dist::Communicator>& rank) { bench(rank, largest); });
  } else {
    bench(comm, largest);
  }
  return 0;
}
