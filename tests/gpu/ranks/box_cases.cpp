#include "tests/gpu/ranks/box_cases.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <optional>
#include <thread>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/peer_link.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/process_boxes.h"
#include "cuop/executor/root_arrays.h"
#include "cuop/executor/tiled_call.h"
#include "cuop/memory/current.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist::rank_test {
namespace {

using conformance::Rank;
using executor::BoxRoom;
using executor::ProcessBoxes;
using executor::Reader;
using executor::SharedBox;
using ::testing::HasSubstr;

Device home() { return backend::current_device(); }
bool is_mapping() { return env().cuda_allocator.value == "auto" && env().peer_mapping.value; }

/// 0, 1, 2, ..., the same on all ranks.
Tensor numbers(const Shape& shape) {
  return reshape(arange(0, element_count(shape), 1, DType::kFloat32), shape);
}

/// Small whole numbers, whose products and sums are exact.
Tensor numbers_modulo(int64_t divisor, const Shape& shape) {
  return reshape(remainder(arange(0, element_count(shape), 1, DType::kFloat64), divisor), shape);
}
template <class T>
std::vector<T> values(const Tensor& x) {
  return {x.data<T>(), x.data<T>() + x.size()};
}

/// One rank's reads of an array of the host.
class BoxReader {
 public:
  BoxReader(Rank comm, const Tensor& array, const std::vector<BoxRoom>& rooms)
      : array_{array, whole_box(array.shape()), kCpu},
        boxes_(*comm, home(), rooms),
        reader_{comm->rank(), comm->size()} {}

  /// Reads the box; the one before is let go of.
  void read(const Box& box) {
    box_ = nullptr;
    brought = 0;
    const auto bring = [&](const Box& piece, const Tensor& place) {
      if (before_bring) before_bring(piece);
      copy_across(place, view_of(array_, piece));
      brought += place.nbytes();
    };
    box_ = boxes_.read(0, array_.local.dtype(), box, home(), reader_, bring);
    EXPECT_EQ(brought + taken(), box_->part().local.nbytes());
  }
  int64_t taken() const { return box_->taken_bytes(); }
  void expect_right() const {
    const Tensor there = to_device(box_->part().local, kCpu);
    const Tensor expected = contiguous(view_of(array_, box_->part().box));
    EXPECT_EQ(values<float>(there), values<float>(expected)) << box_->part().box;
  }
  /// Work on the box that writes to it when it is given back.
  void spoil() {
    fill(box_->part().local, -1);
    box_->note_used();
    box_ = nullptr;
  }
  void release_memory() { boxes_.release_memory(); }

  std::function<void(const Box&)> before_bring = {};
  int64_t brought = 0;

 private:
  Part array_;
  ProcessBoxes boxes_;
  Reader reader_;
  std::shared_ptr<SharedBox> box_;
};

const Shape kShape{701, 300};
constexpr int64_t kBytes = 701 * 300 * 4;

void each_byte_comes_from_the_host_once(Rank comm) {
  BoxReader reader(comm, numbers(kShape), {{kBytes, true}});
  for (const Box& box : {whole_box(kShape), Box{{10, 20}, {690, 250}}, Box{{7, 0}, {8, 300}}}) {
    comm->barrier();
    reader.read(box);
    reader.expect_right();
    const int64_t bytes = box.size() * 4;
    const int64_t taken = agree_max(*comm, reader.taken());
    // Who is late finds all of it, and who is not has brought a part of it.
    if (is_mapping()) {
      EXPECT_GT(taken, 0) << box;
    }
    EXPECT_LE(taken, is_mapping() ? bytes : 0) << box;
  }
}

void who_is_late_takes_all(Rank comm) {
  BoxReader reader(comm, numbers(kShape), {{kBytes, true}});
  const Box first{{0, 0}, {350, 300}}, second{{350, 0}, {701, 300}}, third{{3, 0}, {340, 9}};
  for (const Box& box : {first, second, third}) {
    if (comm->rank() == 0) reader.read(box), reader.expect_right();
  }
  comm->barrier();
  if (comm->rank() > 0) {
    reader.read(second);
    EXPECT_EQ(reader.brought, is_mapping() ? 0 : 351 * 300 * 4);
    reader.expect_right();
    comm->barrier();
    // Where it was stands another box.
    const bool is_first = comm->rank() == 1;
    if (is_first) reader.read(first), reader.expect_right();
    if (is_first) {
      EXPECT_EQ(reader.taken(), 0);
    }
  } else {
    comm->barrier();
  }
  comm->barrier();
}

/// What is copied to a slot waits for the work on what stood there, and for nobody's copies.
void slots_are_filled_anew_behind_their_work(Rank comm) {
  BoxReader reader(comm, numbers(kShape), {{kBytes, true}});
  for (int round = 0; round < 12; ++round) {
    const int64_t row = 20 * (round % 5);
    reader.read(Box{{row, 0}, {row + 600, 300}});
    reader.expect_right();
    comm->barrier();  // none takes what is written now
    reader.spoil();
    reader.read(whole_box(kShape));
    reader.expect_right();
    comm->barrier();
  }
}

/// Boxes beyond the room are not on offer, and what others offer is taken all the same.
void who_has_no_room_takes_from_others(Rank comm) {
  const auto memory = memory::make_limited(home(), 1000);
  std::optional<memory::ResourceScope> scope;
  if (comm->rank() > 0) scope.emplace(*memory);
  BoxReader reader(comm, numbers(kShape), {{kBytes, false}});
  scope.reset();
  if (comm->rank() == 0) reader.read(whole_box(kShape));
  comm->barrier();
  if (comm->rank() > 0) {
    reader.read(whole_box(kShape));
    EXPECT_EQ(reader.brought, is_mapping() ? 0 : kBytes);
  }
  reader.expect_right();
  comm->barrier();
  // The only one that has it gives it away.
  if (comm->rank() == 0) reader.release_memory();
  comm->barrier();
  reader.read(Box{{0, 0}, {700, 300}});
  EXPECT_EQ(reader.taken(), 0);
  reader.expect_right();
  comm->barrier();
}

/// The last rank stays in its first piece until the others are through.
class Held {
 public:
  explicit Held(Rank comm) : comm_(comm), reader_(comm, numbers(kShape), {{kBytes, false}}) {}
  bool is_last() const { return comm_->rank() == comm_->size() - 1; }
  BoxReader& reader() { return reader_; }

  /// `others` is called on the others while the last one is held.
  void run(const std::function<void()>& others) {
    char word = 0;
    if (!is_last()) {
      comm_->recv(&word, 1, comm_->size() - 1, 1);
      others();
      comm_->send(&word, 1, comm_->size() - 1, 2);
      return;
    }
    bool is_first = true;
    reader_.before_bring = [&](const Box&) {
      if (!std::exchange(is_first, false)) return;
      for (int rank = 0; rank + 1 < comm_->size(); ++rank) comm_->send(&word, 1, rank, 1);
      for (int rank = 0; rank + 1 < comm_->size(); ++rank) comm_->recv(&word, 1, rank, 2);
    };
    reader_.read(whole_box(kShape));
    reader_.expect_right();
  }

 private:
  Rank comm_;
  BoxReader reader_;
};

void a_rank_that_does_not_go_on_is_not_waited_for(Rank comm) {
  Held held(comm);
  using Clock = std::chrono::steady_clock;
  held.run([&] {
    for (const bool is_first : {true, false}) {
      const Clock::time_point start = Clock::now();
      held.reader().read(whole_box(kShape));
      held.reader().expect_right();
      const std::chrono::duration<double> taken = Clock::now() - start;
      if (!is_first) {
        EXPECT_LT(taken.count(), 1.5);  // it has been given up
      }
      EXPECT_LT(taken.count(), 20.0);
    }
  });
  comm->barrier();
}

void waiting_for_another_rank_is_interrupted(Rank comm) {
  if (!is_mapping()) return;
  Held held(comm);
  held.run([&] {
    std::atomic<bool> is_interrupted = false;
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      is_interrupted = true;
    });
    {
      const CancelScope cancelled(is_interrupted);
      EXPECT_THROW(held.reader().read(whole_box(kShape)), Interrupted);
    }
    late.join();
  });
  comm->barrier();
}

/// Of a box that was not read to its end nothing is taken.
void what_fails_on_one_rank_is_brought_by_the_others(Rank comm) {
  BoxReader reader(comm, numbers(kShape), {{kBytes, false}});
  if (comm->rank() == 0) {
    int pieces = 0;
    reader.before_bring = [&](const Box&) {
      if (++pieces == 2) throw ExecutionError("the array cannot be read");
    };
    EXPECT_THROW(reader.read(whole_box(kShape)), ExecutionError);
  }
  comm->barrier();
  if (comm->rank() == 1) {
    reader.read(whole_box(kShape));
    EXPECT_EQ(reader.brought, kBytes);
    reader.expect_right();
  }
  comm->barrier();
}

/// A product on ranks of which several read the second operand, from a host that is far slower than
/// the links between GPUs.
void operands_of_a_product_in_tiles_come_once(Rank comm) {
  const bool is_root = comm->rank() == executor::kRoot;
  const Tensor a = numbers_modulo(7, {700, 1100}), b = numbers_modulo(5, {1100, 500});
  for (const int64_t bytes : {int64_t{12} << 20, int64_t{64} << 20}) {
    executor::TiledOptions options;
    options.report = std::make_shared<executor::TiledReport>();
    executor::TileMachine machine;
    machine.devices = comm->size();
    machine.memory = bytes;
    machine.upload = machine.download = 1e8;
    machine.between = 1e11;
    machine.figures = work_figures(home());
    options.machine = machine;
    int64_t shared = 0;
    // Of a rank that the host lets run only when the other is through all comes from the host.
    for (int run = 0; run < 10 && shared == 0; ++run) {
      const auto inputs = is_root ? std::vector<Tensor>{a, b} : std::vector<Tensor>(2);
      const Tensor product = run_tiled(comm, executor::matmul_tiles(), inputs, options);
      const executor::TiledReport& report = *options.report;
      shared = report.shared;
      EXPECT_GT(report.plan.shared, 0) << report.plan.explain();
      EXPECT_LE(report.peak, report.plan.memory);
      EXPECT_EQ(report.halvings, 0);
      if (is_root) {
        EXPECT_EQ(values<double>(product), values<double>(cuop::matmul(a, b)));
      }
      if (!is_mapping()) break;
    }
    EXPECT_EQ(shared > 0, is_mapping()) << "within " << bytes;
  }
}

/// One piece of memory that cannot be read, or none, on some ranks.
void memory_is_mapped_by_rank_and_place(Rank comm) {
  comm->exchanges_tensors(current_stream(home()));
  std::vector<Tensor> mine(3);
  mine[0] = full({1000}, 10 + comm->rank(), DType::kUInt8, home());
  if (comm->rank() % 2 == 0) mine[2] = full({5 << 20}, 50, DType::kUInt8, home());
  backend::runtime(home()).synchronize();
  const auto all = comm->map_memory(mine);
  ASSERT_EQ(static_cast<int>(all.size()), comm->size());
  for (int rank = 0; rank < comm->size(); ++rank) {
    const std::vector<Tensor>& its = all[static_cast<size_t>(rank)];
    ASSERT_EQ(its.size(), 3U);
    EXPECT_FALSE(its[1].is_defined());
    const bool is_read = is_mapping() && rank != comm->rank();
    ASSERT_EQ(its[0].is_defined(), is_read);
    EXPECT_EQ(its[2].is_defined(), is_read && rank % 2 == 0);
    if (!is_read) continue;
    EXPECT_EQ(its[0].shape(), Shape({1000}));
    EXPECT_EQ(to_device(its[0], kCpu).data<uint8_t>()[999], 10 + rank);
    if (rank % 2 == 0) {
      EXPECT_EQ(to_device(its[2], kCpu).data<uint8_t>()[(5 << 20) - 1], 50);
    }
  }
  comm->barrier();
  EXPECT_EQ(comm->map_memory({}).size(), static_cast<size_t>(comm->size()));
}

void links_are_measured_where_memory_is_mapped(Rank comm) {
  const double bandwidth = peer_bandwidth(*comm, home());
  EXPECT_EQ(bandwidth > 0, is_mapping());
  EXPECT_EQ(agree_max(*comm, bandwidth), agree_min(*comm, bandwidth));
  EXPECT_EQ(peer_bandwidth(*comm, home()), bandwidth);  // which is kept
}

}  // namespace

int run_killed_among_boxes(Rank comm) {
  using Clock = std::chrono::steady_clock;
  const int last = comm->size() - 1;
  BoxReader reader(comm, numbers(kShape), {{kBytes, true}});
  comm->barrier();
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < 20; ++round) {
    if (comm->rank() == last && round == 10) {
      reader.before_bring = [](const Box&) { kill(getpid(), SIGKILL); };
    }
    const int64_t row = 20 * (round % 5);
    reader.read(Box{{row, 0}, {row + 600, 300}});
    reader.expect_right();
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  bool is_right = !::testing::Test::HasFailure() && taken.count() < 30.0;
  if (!is_right) std::cerr << "rank " << comm->rank() << ": " << taken.count() << " s" << std::endl;
  try {
    comm->barrier();
    is_right = false;
  } catch (const CommunicationError& error) {
    if (error.rank() != last) std::cerr << error.what() << std::endl;
    is_right = is_right && error.rank() == last;
  }
  return is_right ? 0 : 1;
}

std::vector<conformance::Case> box_cases() {
  return {
      {"operands_of_a_product_in_tiles_come_once", operands_of_a_product_in_tiles_come_once},
      {"memory_is_mapped_by_rank_and_place", memory_is_mapped_by_rank_and_place},
      {"links_are_measured_where_memory_is_mapped", links_are_measured_where_memory_is_mapped},
      {"each_byte_comes_from_the_host_once", each_byte_comes_from_the_host_once},
      {"who_is_late_takes_all", who_is_late_takes_all},
      {"slots_are_filled_anew_behind_their_work", slots_are_filled_anew_behind_their_work},
      {"who_has_no_room_takes_from_others", who_has_no_room_takes_from_others},
      {"a_rank_that_does_not_go_on_is_not_waited_for",
       a_rank_that_does_not_go_on_is_not_waited_for},
      {"waiting_for_another_rank_is_interrupted", waiting_for_another_rank_is_interrupted},
      {"what_fails_on_one_rank_is_brought_by_the_others",
       what_fails_on_one_rank_is_brought_by_the_others},
  };
}

}  // namespace cuop::dist::rank_test
