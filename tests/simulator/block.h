// One block of a kernel: its threads run one at a time, in an order that differs from block to
// block, each until it waits for others.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/simulator/fiber.h"
#include "tests/simulator/kernel_interface.h"
#include "tests/simulator/races.h"

namespace cuop::simulator {

class BlockRunner {
 public:
  explicit BlockRunner(uint64_t seed);

  /// Before the first block of each launch.
  void begin_launch();
  /// Runs the block running.block of size running.block_size. "" or what went wrong: an access to
  /// memory that is not the kernel's, a barrier that some threads do not reach, a race where those
  /// are looked for, for which the block's shared memory is that between the two addresses.
  std::string run(Running& running, void (*call)(void**), void** arguments,
                  const unsigned char* shared_begin = nullptr,
                  const unsigned char* shared_end = nullptr);

  /// Binds the calls of kernels to this runner's memory; before run.
  void prepare(Running& running);

  std::minstd_rand& random() { return random_; }

 private:
  enum class State : uint8_t { kNew, kReady, kAtBarrier, kInWarp, kDone };
  struct Thread {
    Position position = nullptr;
    size_t stack = 0;
    State state = State::kNew;
    Index3 index{};
    unsigned lanes = 0;
    const char* file = nullptr;
    int line = 0;
  };

  static void enter();
  static void meet(Group group, unsigned lanes, const char* file, int line);
  static void refuse(const char* what, const void* address, unsigned long bytes);
  static void watch(Access access, const void* address, unsigned long bytes);

  void wait_for_block(Thread& own, const char* file, int line);
  void wait_for_warp(Thread& own, Group group, unsigned lanes, const char* file, int line);
  void leave(std::string failure);
  void make_ready(unsigned first, unsigned count);
  std::string stuck() const;
  std::string name(unsigned thread) const;
  /// A number below the count.
  size_t drawn(size_t count) { return random_() * count >> 31; }
  unsigned count() const { return static_cast<unsigned>(threads_.size()); }

  Stacks stacks_;
  std::minstd_rand random_;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;
  std::vector<unsigned char> exchange_;
  Position scheduler_ = nullptr;
  unsigned current_ = 0, at_barrier_ = 0, done_ = 0;
  unsigned first_at_barrier_ = 0;              ///< stands for all that wait there
  std::array<unsigned, kMaxWarps> in_warp_{};  ///< the lanes that wait for others of their warp
  std::string failure_;
  Running* running_ = nullptr;
  void (*call_)(void**) = nullptr;
  void** arguments_ = nullptr;
  std::unique_ptr<Races> races_;  ///< null when nobody looks for them
};

}  // namespace cuop::simulator
