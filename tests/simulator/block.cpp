#include "tests/simulator/block.h"

#include <bit>
#include <cstring>
#include <utility>

#include "cuop/core/text.h"
#include "tests/simulator/settings.h"

namespace cuop::simulator {

namespace {

thread_local BlockRunner* current_runner = nullptr;

bool is_same_place(const char* file, int line, const char* other_file, int other_line) {
  return line == other_line && (file == other_file || std::strcmp(file, other_file) == 0);
}

}  // namespace

BlockRunner::BlockRunner(uint64_t seed) : stacks_(kMaxThreads), random_(seed) {
  if (settings().finds_races) races_ = std::make_unique<Races>();
}

void BlockRunner::begin_launch() {
  if (races_ != nullptr) races_->begin_launch();
}

void BlockRunner::prepare(Running& running) {
  exchange_.resize(16 * kMaxThreads);
  running.meet = &BlockRunner::meet;
  running.refuse = &BlockRunner::refuse;
  running.watch = races_ != nullptr ? &BlockRunner::watch : nullptr;
  running.is_atomic = false;
  running.exchange = exchange_.data();
  running.stacks = stacks_.address();
  running.stacks_bytes = stacks_.bytes();
}

std::string BlockRunner::run(Running& running, void (*call)(void**), void** arguments,
                             const unsigned char* shared_begin, const unsigned char* shared_end) {
  running_ = &running;
  call_ = call;
  arguments_ = arguments;
  const Index3 size = running.block_size;
  threads_.assign(size_t{size.x} * size.y * size.z, Thread{});
  size_t next = 0;
  for (unsigned z = 0; z < size.z; ++z) {
    for (unsigned y = 0; y < size.y; ++y) {
      for (unsigned x = 0; x < size.x; ++x) threads_[next++].index = {x, y, z};
    }
  }
  at_barrier_ = done_ = 0;
  in_warp_.fill(0);
  failure_.clear();
  ready_.clear();
  make_ready(0, count());
  current_runner = this;
  if (races_ != nullptr) {
    races_->begin_block(running.block, reinterpret_cast<uintptr_t>(shared_begin),
                        reinterpret_cast<uintptr_t>(shared_end));
  }
  while (!ready_.empty() && failure_.empty()) {
    current_ = ready_.back();
    ready_.pop_back();
    Thread& thread = threads_[current_];
    if (thread.state == State::kNew) thread.position = stacks_.begin(&enter, thread.stack);
    thread.state = State::kReady;
    running.thread = thread.index;
    cuop_simulator_switch(&scheduler_, thread.position);
    if (thread.state == State::kDone) {
      stacks_.give_back(thread.stack);
      ++done_;
    }
  }
  if (failure_.empty() && done_ < count()) failure_ = stuck();
  if (!failure_.empty()) stacks_.give_all_back();
  return failure_;
}

/// The first frame of every thread's stack.
void BlockRunner::enter() {
  BlockRunner& runner = *current_runner;
  runner.call_(runner.arguments_);
  Thread& own = runner.threads_[runner.current_];
  own.state = State::kDone;
  cuop_simulator_switch(&own.position, runner.scheduler_);
}

void BlockRunner::meet(Group group, unsigned lanes, const char* file, int line) {
  BlockRunner& runner = *current_runner;
  Thread& own = runner.threads_[runner.current_];
  own.file = file;
  own.line = line;
  if (group == Group::kBlock) {
    runner.wait_for_block(own, file, line);
  } else {
    runner.wait_for_warp(own, group, lanes, file, line);
  }
  cuop_simulator_switch(&own.position, runner.scheduler_);
}

void BlockRunner::refuse(const char* what, const void* address, unsigned long bytes) {
  BlockRunner& runner = *current_runner;
  const std::string size = bytes > 0 ? cat(bytes, " bytes at ") : std::string();
  runner.leave(cat(runner.name(runner.current_), ' ', what, ' ', size, address,
                   ", which its device does not let it"));
}

void BlockRunner::watch(Access access, const void* address, unsigned long bytes) {
  BlockRunner& runner = *current_runner;
  const std::string race =
      runner.races_->use(access, reinterpret_cast<uintptr_t>(address), bytes, runner.current_);
  if (race.empty()) return;
  const Thread& own = runner.threads_[runner.current_];
  const std::string since = own.file == nullptr ? "" : cat(", after ", own.file, ':', own.line);
  runner.leave(cat(runner.name(runner.current_), ' ', race, since, ", at ", address,
                   ", and nothing puts one before the other"));
}

void BlockRunner::leave(std::string failure) {
  failure_ = std::move(failure);
  Position never = nullptr;
  cuop_simulator_switch(&never, scheduler_);
}

void BlockRunner::wait_for_block(Thread& own, const char* file, int line) {
  if (at_barrier_ == 0) first_at_barrier_ = current_;
  const Thread& other = threads_[first_at_barrier_];
  if (!is_same_place(file, line, other.file, other.line)) {
    failure_ = cat("threads of a block wait at different barriers, ", file, ':', line, " and ",
                   other.file, ':', other.line);
    return;
  }
  own.state = State::kAtBarrier;
  if (++at_barrier_ < count()) return;
  at_barrier_ = 0;
  if (races_ != nullptr) races_->at_barrier();
  make_ready(0, count());
}

void BlockRunner::wait_for_warp(Thread& own, Group group, unsigned lanes, const char* file,
                                int line) {
  const unsigned warp = current_ / kWarpThreads, first = warp * kWarpThreads;
  const unsigned own_lane = 1u << (current_ - first), size = count() - first;
  if ((lanes & own_lane) == 0) {
    failure_ = cat(name(current_), " names other lanes than its own at ", file, ':', line);
    return;
  }
  own.state = State::kInWarp;
  own.lanes = lanes;
  in_warp_[warp] |= own_lane;
  const unsigned named = size < kWarpThreads ? lanes & ((1u << size) - 1) : lanes;
  if ((in_warp_[warp] & named) != named) return;
  for (unsigned left = named; left != 0; left &= left - 1) {
    const Thread& other = threads_[first + static_cast<unsigned>(std::countr_zero(left))];
    if (other.lanes != lanes) return;
    if (is_same_place(file, line, other.file, other.line)) continue;
    failure_ = cat("lanes of a warp meet at different places, ", file, ':', line, " and ",
                   other.file, ':', other.line);
    return;
  }
  if (races_ != nullptr && group == Group::kWarp) races_->at_warp_barrier(warp);
  in_warp_[warp] &= ~named;
  for (unsigned left = named; left != 0; left &= left - 1) {
    make_ready(first + static_cast<unsigned>(std::countr_zero(left)), 1);
  }
}

void BlockRunner::make_ready(unsigned first, unsigned count) {
  const size_t begin = ready_.size();
  for (unsigned i = first; i < first + count; ++i) {
    if (threads_[i].state != State::kNew) threads_[i].state = State::kReady;
    ready_.push_back(i);
  }
  if (count > 1) {
    for (size_t i = count; i > 1; --i) {
      std::swap(ready_[begin + i - 1], ready_[begin + drawn(i)]);
    }
  } else {
    std::swap(ready_.back(), ready_[drawn(ready_.size())]);
  }
}

std::string BlockRunner::stuck() const {
  for (unsigned i = 0; i < count(); ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == State::kDone) continue;
    return cat(name(i), " waits at ", thread.file, ':', thread.line,
               " for threads that do not come; ", done_, " of ", count(), " have returned");
  }
  return "";
}

std::string BlockRunner::name(unsigned thread) const {
  const Index3 b = running_->block;
  return cat("thread ", thread, " of block (", b.x, ", ", b.y, ", ", b.z, ')');
}

}  // namespace cuop::simulator
