#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstring>
#include <numeric>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::conformance {

namespace {

/// Short and long messages take different ways (copied or read in place, one round or many).
constexpr int64_t kSizes[] = {0, 1, 61, 5000, 200'003};

int next(Rank comm) { return (comm->rank() + 1) % comm->size(); }
int previous(Rank comm) { return (comm->rank() + comm->size() - 1) % comm->size(); }

const Block& mine(Rank comm, const std::vector<Block>& blocks) {
  return blocks[static_cast<size_t>(comm->rank())];
}

void expect_block(const std::vector<char>& buffer, const Block& block, int src, const char* what) {
  const auto expected = pattern_bytes(src, block.bytes);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), buffer.begin() + block.offset))
      << what << ": block of rank " << src << ", " << block.bytes << " bytes";
}

/// All bytes outside the blocks still have the filler.
void expect_gaps_untouched(std::vector<char> buffer, const std::vector<Block>& blocks,
                           char filler) {
  for (const Block& block : blocks) {
    std::fill_n(buffer.begin() + block.offset, block.bytes, filler);
  }
  EXPECT_EQ(std::count(buffer.begin(), buffer.end(), filler), static_cast<int64_t>(buffer.size()));
}

void describes_itself(Rank comm) {
  EXPECT_GE(comm->rank(), 0);
  EXPECT_LT(comm->rank(), comm->size());
  EXPECT_GE(comm->local_size(), 1);
  EXPECT_LE(comm->local_size(), comm->size());
  EXPECT_FALSE(comm->kind().empty());
  EXPECT_GT(comm->timeout(), 0.0);
}

void ring(Rank comm) {
  for (int64_t bytes : kSizes) {
    const auto out = pattern_bytes(comm->rank(), bytes);
    std::vector<char> in(static_cast<size_t>(bytes));
    comm->sendrecv(out.data(), bytes, next(comm), in.data(), bytes, previous(comm), 4);
    expect_block(in, {0, bytes}, previous(comm), "sendrecv");
  }
}

void messages_to_oneself(Rank comm) {
  for (int64_t bytes : kSizes) {
    const auto out = pattern_bytes(comm->rank(), bytes);
    std::vector<char> in(static_cast<size_t>(bytes));
    comm->send(out.data(), bytes, comm->rank(), 1);
    comm->recv(in.data(), bytes, comm->rank(), 1);
    EXPECT_EQ(in, out);
    std::fill(in.begin(), in.end(), 'x');
    comm->sendrecv(out.data(), bytes, comm->rank(), in.data(), bytes, comm->rank(), 2);
    EXPECT_EQ(in, out);
  }
}

/// Several messages of two tags from everybody to rank 0, which takes the tags in the other order.
void order_and_tags(Rank comm) {
  constexpr int kMessages = 5;
  if (comm->rank() != 0) {
    for (int tag : {7, 8}) {
      for (int i = 0; i < kMessages; ++i) {
        const int64_t payload = comm->rank() * 1000 + tag * 100 + i;
        comm->send(&payload, sizeof(payload), 0, tag);
      }
    }
    return;
  }
  for (int src = comm->size() - 1; src > 0; --src) {
    for (int tag : {8, 7}) {
      for (int i = 0; i < kMessages; ++i) {
        int64_t payload = -1;
        comm->recv(&payload, sizeof(payload), src, tag);
        EXPECT_EQ(payload, src * 1000 + tag * 100 + i);
      }
    }
  }
}

void long_messages_one_way(Rank comm) {
  constexpr int64_t kBytes = 700'001;
  std::vector<char> buffer = pattern_bytes(comm->rank(), kBytes);
  if (comm->rank() > 0) comm->send(buffer.data(), kBytes, 0, 3);
  if (comm->rank() > 0) return;
  for (int src = 1; src < comm->size(); ++src) {
    comm->recv(buffer.data(), kBytes, src, 3);
    expect_block(buffer, {0, kBytes}, src, "recv");
  }
}

void barriers(Rank comm) {
  for (int i = 0; i < 50; ++i) comm->barrier();
}

void broadcasts(Rank comm) {
  for (int64_t bytes : kSizes) {
    for (int root = 0; root < comm->size(); ++root) {
      std::vector<char> data(static_cast<size_t>(bytes), 'x');
      if (comm->rank() == root) data = pattern_bytes(root, bytes);
      comm->broadcast(data.data(), bytes, root);
      expect_block(data, {0, bytes}, root, "broadcast");
    }
  }
}

void scatters_and_gathers(Rank comm) {
  for (int64_t scale : {1, 40, 100'000}) {
    const auto blocks = uneven_blocks(comm->size(), scale);
    for (int root = 0; root < comm->size(); ++root) {
      std::vector<char> whole(static_cast<size_t>(total_extent(blocks)), 'x');
      if (comm->rank() == root) {
        for (int rank = 0; rank < comm->size(); ++rank) {
          const Block& block = blocks[static_cast<size_t>(rank)];
          const auto part = pattern_bytes(rank, block.bytes);
          std::copy(part.begin(), part.end(), whole.begin() + block.offset);
        }
      }
      std::vector<char> part(static_cast<size_t>(mine(comm, blocks).bytes));
      comm->scatter(comm->rank() == root ? whole.data() : nullptr, blocks, part.data(), root);
      expect_block(part, {0, mine(comm, blocks).bytes}, comm->rank(), "scatter");
      std::fill(whole.begin(), whole.end(), 'x');
      comm->gather(part.data(), blocks, comm->rank() == root ? whole.data() : nullptr, root);
      if (comm->rank() != root) continue;
      for (int rank = 0; rank < comm->size(); ++rank) {
        expect_block(whole, blocks[static_cast<size_t>(rank)], rank, "gather");
      }
      expect_gaps_untouched(whole, blocks, 'x');
    }
  }
}

void all_gathers(Rank comm) {
  for (int64_t scale : {1, 40, 100'000}) {
    const auto blocks = uneven_blocks(comm->size(), scale);
    const auto part = pattern_bytes(comm->rank(), mine(comm, blocks).bytes);
    std::vector<char> whole(static_cast<size_t>(total_extent(blocks)), 'x');
    comm->all_gather(part.data(), blocks, whole.data());
    for (int rank = 0; rank < comm->size(); ++rank) {
      expect_block(whole, blocks[static_cast<size_t>(rank)], rank, "all_gather");
    }
    expect_gaps_untouched(whole, blocks, 'x');
    // The same with this rank's part in its place already.
    comm->all_gather(whole.data() + mine(comm, blocks).offset, blocks, whole.data());
    for (int rank = 0; rank < comm->size(); ++rank) {
      expect_block(whole, blocks[static_cast<size_t>(rank)], rank, "all_gather in place");
    }
  }
}

/// Bytes that rank `src` sends to rank `dst`.
int64_t exchanged(int src, int dst, int64_t scale) {
  return (src + 2 * dst) % 3 == 0 ? 0 : scale * (src + 1) + dst;
}

void all_to_alls(Rank comm) {
  for (int64_t scale : {1, 60, 30'000}) {
    std::vector<Block> send_blocks, recv_blocks;
    int64_t sent = 0;
    int64_t received = 0;
    for (int peer = 0; peer < comm->size(); ++peer) {
      send_blocks.push_back({sent, exchanged(comm->rank(), peer, scale)});
      recv_blocks.push_back({received, exchanged(peer, comm->rank(), scale)});
      sent += send_blocks.back().bytes;
      received += recv_blocks.back().bytes + 1;
    }
    std::vector<char> out;
    for (int peer = 0; peer < comm->size(); ++peer) {
      const auto part =
          pattern_bytes(comm->rank() * 8 + peer, exchanged(comm->rank(), peer, scale));
      out.insert(out.end(), part.begin(), part.end());
    }
    std::vector<char> in(static_cast<size_t>(received), 'x');
    comm->all_to_all(out.data(), send_blocks, in.data(), recv_blocks);
    for (int peer = 0; peer < comm->size(); ++peer) {
      expect_block(in, recv_blocks[static_cast<size_t>(peer)], peer * 8 + comm->rank(),
                   "all_to_all");
    }
    expect_gaps_untouched(in, recv_blocks, 'x');
  }
}

/// A view of `shape` whose elements lie apart in memory, of bytes 'x'; the odd ones are transposed.
Tensor apart(const Shape& shape, DType dtype, int number) {
  const bool is_transposed = number % 2 == 1;
  const int64_t rows = shape[is_transposed ? 1 : 0], columns = shape[is_transposed ? 0 : 1];
  const Tensor whole = empty({rows + 2, 2 * columns + 1}, dtype);
  std::memset(whole.data(), 'x', static_cast<size_t>(whole.nbytes()));
  const Tensor inner = slice(slice(whole, 0, 1, 1 + rows), 1, 1, 1 + 2 * columns, 2);
  return is_transposed ? permute(inner, std::vector<int64_t>{1, 0}) : inner;
}

/// What rank `src` sends to rank `dst` as its tensor `number`: row-major.
Tensor sent_tensor(int src, int dst, int number, int64_t scale, DType dtype) {
  const Tensor tensor = empty({exchanged(src, dst, scale), number + 3}, dtype);
  const auto bytes = pattern_bytes(src * 8 + dst + number, tensor.nbytes());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data()));
  return tensor;
}

void exchanges(Rank comm) {
  constexpr int kTensors = 3;  // from each rank to each
  for (const DType dtype : {DType::kUInt8, DType::kFloat32, DType::kComplex128}) {
    for (int64_t scale : {1, 17, 900}) {
      std::vector<Patch> sends, receives;
      for (int number = 0; number < kTensors; ++number) {
        for (int peer = 0; peer < comm->size(); ++peer) {
          const Tensor out = sent_tensor(comm->rank(), peer, number, scale, dtype);
          sends.push_back({peer, apart(out.shape(), dtype, number)});
          copy_into(sends.back().elements, out);
          const Shape shape{exchanged(peer, comm->rank(), scale), number + 3};
          receives.push_back({peer, apart(shape, dtype, number / 2)});
        }
      }
      const int64_t before = comm->bytes_sent();
      comm->exchange(sends, receives);
      int64_t sent = 0;
      for (const Patch& patch : sends)
        sent += patch.peer == comm->rank() ? 0 : patch.elements.nbytes();
      EXPECT_EQ(comm->bytes_sent() - before, sent);
      for (size_t i = 0; i < receives.size(); ++i) {
        const auto& [peer, elements] = receives[i];
        const int number = static_cast<int>(i) / comm->size();
        const Tensor expected = sent_tensor(peer, comm->rank(), number, scale, dtype);
        const Tensor got = contiguous(elements);
        const auto* const bytes = static_cast<const char*>(got.data());
        EXPECT_TRUE(
            std::equal(bytes, bytes + got.nbytes(), static_cast<const char*>(expected.data())))
            << "tensor " << number << " of rank " << peer << ", " << dtype;
      }
    }
  }
}

/// Element (i, j) of what `src` sends in a round.
double element_of(int src, int round, int64_t i, int64_t j) {
  return src + 10.0 * round + 1e3 * static_cast<double>(i) + 1e7 * static_cast<double>(j);
}

/// Tensors of many megabytes, longer than whatever they pass through, transposed on the way; rounds
/// of other shapes follow each other without a barrier, and some ranks come late.
void long_exchanges(Rank comm) {
  if (comm->size() == 1) return;
  constexpr int kRounds = 4;
  const auto shape_of = [](int src, int round) {
    return Shape{700 + 13 * src - 90 * round, 500 + 100 * (round % 2)};
  };
  for (int round = 0; round < kRounds; ++round) {
    const int late = round % comm->size();
    if (comm->rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Shape mine = shape_of(comm->rank(), round), theirs = shape_of(previous(comm), round);
    const bool is_transposed = round % 2 == 1;
    const Tensor flat = empty({mine[0] * mine[1]}, DType::kComplex128);
    auto* const values = flat.data<std::complex<double>>();
    for (int64_t i = 0; i < mine[0]; ++i) {
      for (int64_t j = 0; j < mine[1]; ++j) {
        values[is_transposed ? j * mine[0] + i : i * mine[1] + j] =
            element_of(comm->rank(), round, i, j);
      }
    }
    const Tensor out =
        is_transposed ? transpose(reshape(flat, {mine[1], mine[0]})) : reshape(flat, mine);
    const Tensor in = transpose(empty({theirs[1], theirs[0]}, DType::kComplex128));
    comm->exchange(std::vector<Patch>{{next(comm), out}}, std::vector<Patch>{{previous(comm), in}});
    const Tensor got = contiguous(in);
    int64_t wrong = 0;
    for (int64_t i = 0; i < theirs[0]; ++i) {
      for (int64_t j = 0; j < theirs[1]; ++j) {
        const double expected = element_of(previous(comm), round, i, j);
        wrong += got.data<std::complex<double>>()[i * theirs[1] + j] == expected ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0) << "round " << round;
  }
}

/// Short ones in a row, with as many tensors and of such shapes as the round says.
void exchanges_in_a_row(Rank comm) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Patch> sends, receives;
    for (int number = 0; number <= round % 3; ++number) {
      for (int peer = 0; peer < comm->size(); ++peer) {
        if ((peer + comm->rank() + round) % 4 == 0) continue;  // the same both ways
        const Shape shape{1 + round % 5, 1 + number};
        const auto value = [&](int src) { return Scalar(src * 1000 + round * 4 + number); };
        sends.push_back({peer, full(shape, value(comm->rank()), DType::kInt32)});
        receives.push_back({peer, full(shape, -1, DType::kInt32)});
      }
    }
    comm->exchange(sends, receives);
    size_t i = 0;
    for (int number = 0; number <= round % 3; ++number) {
      for (int peer = 0; peer < comm->size(); ++peer) {
        if ((peer + comm->rank() + round) % 4 == 0) continue;
        const Tensor& got = receives[i++].elements;
        for (int64_t at = 0; at < got.size(); ++at) {
          ASSERT_EQ(got.data<int32_t>()[at], peer * 1000 + round * 4 + number);
        }
      }
    }
  }
}

void refuses_wrong_tensors(Rank comm) {
  const auto rows = [](DType dtype) { return empty({2, 3}, dtype); };
  const std::vector<Patch> none, beyond{{comm->size(), rows(DType::kInt8)}}, nothing{{0, Tensor()}};
  const std::vector<Patch> mixed{{0, rows(DType::kInt8)}, {0, rows(DType::kInt16)}};
  EXPECT_THROW(comm->exchange(beyond, none), IndexError);
  EXPECT_THROW(comm->exchange(none, beyond), IndexError);
  EXPECT_THROW(comm->exchange(nothing, none), ExecutionError);
  EXPECT_THROW(comm->exchange(mixed, none), DTypeError);
  EXPECT_THROW(comm->exchange(mixed, none, {{DeviceType::kCuda, 0}}), DeviceError);
  const Tensor spread = broadcast_to(empty({1, 3}, DType::kInt8), {2, 3});
  EXPECT_THROW(comm->exchange(none, std::vector<Patch>{{0, spread}}), ExecutionError);
  comm->barrier();  // nothing was sent, so nothing has failed
}

void splits(Rank comm) {
  const int color = comm->rank() % 2;
  const auto half = comm->split(color, -comm->rank());
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->kind(), comm->kind());
  EXPECT_EQ(half->size(), (comm->size() + 1 - color) / 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - comm->rank() / 2);
  // Both halves work at the same time, each on its own messages.
  std::vector<int> ranks(static_cast<size_t>(half->size()), -1);
  std::vector<Block> blocks;
  for (int rank = 0; rank < half->size(); ++rank) blocks.push_back({rank * 4, 4});
  const int old_rank = comm->rank();
  half->all_gather(&old_rank, blocks, ranks.data());
  for (int rank = 0; rank < half->size(); ++rank) {
    EXPECT_EQ(ranks[static_cast<size_t>(rank)], color + 2 * (half->size() - 1 - rank));
  }
  const auto first_alone = comm->split(comm->rank() == 0 ? 3 : -1, 0);
  EXPECT_EQ(first_alone != nullptr, comm->rank() == 0);
  if (first_alone) {
    EXPECT_EQ(first_alone->size(), 1);
    first_alone->barrier();
  }
  const auto quarter = half->split(half->rank() % 2, 0);
  quarter->barrier();
  comm->barrier();
}

void counts_bytes(Rank comm) {
  const int64_t before = comm->bytes_sent();
  std::vector<char> data(1000);
  comm->sendrecv(data.data(), 1000, next(comm), data.data(), 0 + 1000, previous(comm), 0);
  EXPECT_EQ(comm->bytes_sent() - before, comm->size() > 1 ? 1000 : 0);
}

void counts_bytes_to_each_rank(Rank comm) {
  const int ranks = comm->size(), self = comm->rank();
  const auto counted = [&](const auto& call) {
    std::vector<int64_t> before = comm->bytes_sent_to();
    before.resize(static_cast<size_t>(ranks));
    const int64_t all = comm->bytes_sent();
    const double seconds = comm->seconds_in_calls();
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GT(comm->seconds_in_calls(), seconds);
    EXPECT_LE(comm->seconds_in_calls() - seconds, took.count());  // calls within calls count once
    std::vector<int64_t> sent = comm->bytes_sent_to();
    sent.resize(static_cast<size_t>(ranks));
    int64_t sum = 0;
    for (size_t rank = 0; rank < sent.size(); ++rank) sum += sent[rank] -= before[rank];
    EXPECT_EQ(sum, comm->bytes_sent() - all);
    EXPECT_EQ(sent[static_cast<size_t>(self)], 0);
    return sent;
  };
  std::vector<char> data(4096), more(4096);
  counted([&] { comm->barrier(); });
  counted([&] { comm->broadcast(data.data(), 1000, ranks - 1); });
  counted(
      [&] { comm->all_reduce(data.data(), data.data(), 1000, DType::kInt8, ReduceKind::kMax); });
  const std::vector<Block> blocks = equal_blocks(ranks, 9);
  const auto gathered = counted([&] { comm->gather(data.data(), blocks, more.data(), ranks - 1); });
  if (self != ranks - 1) {
    EXPECT_GT(std::accumulate(gathered.begin(), gathered.end(), int64_t{0}), 0);
  }
  const auto swapped = counted([&] { comm->all_to_all(data.data(), blocks, more.data(), blocks); });
  const Tensor mine = empty({5}, DType::kInt32), theirs = empty({5}, DType::kInt32);
  const auto exchanged = counted([&] {
    comm->exchange(std::vector<Patch>{{next(comm), mine}},
                   std::vector<Patch>{{previous(comm), theirs}});
  });
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == self) continue;
    EXPECT_EQ(swapped[static_cast<size_t>(rank)], 9);
    EXPECT_EQ(exchanged[static_cast<size_t>(rank)], rank == next(comm) ? 20 : 0);
  }
}

void refuses_wrong_arguments(Rank comm) {
  char byte = 0;
  const std::vector<Block> none;
  EXPECT_THROW(comm->send(&byte, 1, comm->size(), 0), IndexError);
  EXPECT_THROW(comm->recv(&byte, 1, -1, 0), IndexError);
  EXPECT_THROW(comm->send(&byte, 1, 0, 65536), ExecutionError);
  EXPECT_THROW(comm->send(&byte, 1, 0, -1), ExecutionError);
  EXPECT_THROW(comm->broadcast(&byte, 1, comm->size()), IndexError);
  EXPECT_THROW(comm->broadcast(&byte, -1, 0), ExecutionError);
  EXPECT_THROW(comm->all_gather(&byte, none, &byte), ExecutionError);
  EXPECT_THROW(comm->all_reduce(&byte, &byte, 1, DType::kComplex64, ReduceKind::kMax), DTypeError);
  comm->barrier();  // nothing was sent, so nothing has failed
}

}  // namespace

std::vector<Case> movement_cases() {
  return {{"describes_itself", describes_itself},
          {"ring", ring},
          {"messages_to_oneself", messages_to_oneself},
          {"order_and_tags", order_and_tags},
          {"long_messages_one_way", long_messages_one_way},
          {"barriers", barriers},
          {"broadcasts", broadcasts},
          {"scatters_and_gathers", scatters_and_gathers},
          {"all_gathers", all_gathers},
          {"all_to_alls", all_to_alls},
          {"exchanges", exchanges},
          {"long_exchanges", long_exchanges},
          {"exchanges_in_a_row", exchanges_in_a_row},
          {"refuses_wrong_tensors", refuses_wrong_tensors},
          {"splits", splits},
          {"counts_bytes", counts_bytes},
          {"counts_bytes_to_each_rank", counts_bytes_to_each_rank},
          {"refuses_wrong_arguments", refuses_wrong_arguments}};
}

}  // namespace cuop::dist::conformance
