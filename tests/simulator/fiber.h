// The threads of a simulated block: stacks of their own that one thread of the host switches among.
// x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuop::simulator {

/// Where a stack that does not run goes on.
using Position = void*;

/// Goes on at `to`; returns when somebody goes on at what this leaves in `from`.
extern "C" void cuop_simulator_switch(Position* from, Position to);

/// Stacks, kept for the next who asks. Below each lies a page that nobody may touch.
class Stacks {
 public:
  static constexpr size_t kBytes = 64 << 10;

  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  /// A position that, gone on at, calls entry(), which must not return. There must be a stack left.
  Position begin(void (*entry)(), size_t& number);
  void give_back(size_t number) { idle_.push_back(number); }
  void give_all_back();

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(base_); }
  size_t bytes() const { return count_ * kBytes; }

 private:
  size_t count_;
  std::byte* base_;
  std::vector<size_t> idle_;
};

}  // namespace cuop::simulator
