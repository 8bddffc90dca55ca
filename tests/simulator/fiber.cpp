#include "tests/simulator/fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

// What the System V ABI lets a function keep across a call lies on the stack that is left.
asm(R"(
.text
.globl cuop_simulator_switch
.hidden cuop_simulator_switch
.type cuop_simulator_switch, @function
cuop_simulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuop_simulator_switch, .-cuop_simulator_switch
)");

namespace cuop::simulator {

namespace {
constexpr size_t kGuardBytes = 4096;
constexpr size_t kKeptRegisters = 6;
// Where stacks begin differs, so that their first frames do not share the same few places of a
// cache.
constexpr size_t kColours = 64, kColourBytes = 128;
}  // namespace

Stacks::Stacks(size_t count) : count_(count) {
  void* made = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    std::fputs("simulated GPU: no memory for stacks\n", stderr);
    std::abort();
  }
  base_ = static_cast<std::byte*>(made);
  for (size_t i = 0; i < count; ++i) mprotect(base_ + i * kBytes, kGuardBytes, PROT_NONE);
  give_all_back();
}

Stacks::~Stacks() { munmap(base_, bytes()); }

void Stacks::give_all_back() {
  idle_.clear();
  for (size_t i = count_; i-- > 0;) idle_.push_back(i);
}

Position Stacks::begin(void (*entry)(), size_t& number) {
  number = idle_.back();
  idle_.pop_back();
  const size_t colour = number % kColours * kColourBytes;
  auto* top = reinterpret_cast<void**>(base_ + (number + 1) * kBytes - colour);
  // As if `entry` had just been called: the stack is 8 bytes off a multiple of 16.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (size_t i = 0; i < kKeptRegisters; ++i) *--top = nullptr;
  return top;
}

}  // namespace cuop::simulator
