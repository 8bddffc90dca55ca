// Copies from memory to a block's shared memory that go on beside the work of its threads: those
// that each thread starts for itself (compute capability 8.0), and rows that the GPU's copy engine
// brings (9.0). On the host, where there is no such thing, a thread's copies are made when it waits
// for them, and rows at once.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"

namespace cuop::jit {

#ifndef CUOP_HOST_THREADS

/// The shared memory that the launch gives a block; all calls of a kernel name the same size.
template <int Bytes>
CUOP_FN unsigned char* block_room() {
  extern __shared__ Word16 cuop_block_room[];
  return reinterpret_cast<unsigned char*>(cuop_block_room);
}

namespace detail {
CUOP_FN unsigned shared_address(const void* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

/// Until the use of the barrier that is numbered `turn` from 0 has ended.
CUOP_FN void wait_for_phase(const void* barrier, unsigned turn) {
  unsigned is_done = 0;
  CUOP_ROLLED
  do {
    asm volatile(
        "{\n  .reg .pred done;\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, done;\n}"
        : "=r"(is_done)
        : "r"(shared_address(barrier)), "r"(turn & 1u)
        : "memory");
  } while (is_done == 0);
}
}  // namespace detail

/// What one thread copies to shared memory, in groups that are waited for in their order. At most
/// `Most` copies are open at a time.
template <int Most>
class ThreadCopies {
 public:
  /// Bytes (4, 8 or 16, of which both addresses are multiples): the first `valid` from memory, the
  /// others zeros.
  template <int Bytes>
  CUOP_FN void start(void* to, const void* from, int valid) {
    const unsigned place = detail::shared_address(to);
    if constexpr (Bytes == 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
                   "r"(valid)
                   : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from),
                   "n"(Bytes), "r"(valid)
                   : "memory");
    }
  }
  /// What was started since the last call is a group, and may be nothing.
  CUOP_FN void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  /// Until all groups but the last `Open` are there for this thread; others see them behind a
  /// barrier.
  template <int Open>
  CUOP_FN void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
  }
};

/// Where threads learn that the rows of a stage have come. In shared memory.
struct RowArrival {
  uint64_t word;

  /// By one thread, before the block's next barrier.
  CUOP_FN void prepare() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(detail::shared_address(this))
                 : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  /// By one thread, before the rows of a stage are started: how many bytes they have, perhaps 0.
  CUOP_FN void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     detail::shared_address(this)),
                 "r"(bytes)
                 : "memory");
  }
  /// By one thread: bytes and addresses are multiples of 16.
  CUOP_FN void start(void* to, const void* from, int bytes) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(detail::shared_address(to)),
        "l"(from), "r"(bytes), "r"(detail::shared_address(this))
        : "memory");
  }
  /// By every thread: until the use that is numbered `turn` from 0 has all of its rows.
  CUOP_FN void wait(unsigned turn) { detail::wait_for_phase(this, turn); }
};

/// After a thread has written by itself where rows will come later.
CUOP_FN void before_later_rows() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#else

template <int Bytes>
CUOP_FN unsigned char* block_room() {
  alignas(16) __shared__ unsigned char room[Bytes];
  return room;
}

template <int Most>
class ThreadCopies {
 public:
  template <int Bytes>
  CUOP_FN void start(void* to, const void* from, int valid) {
    if (end_ - begin_ == Most) __builtin_trap();
    open_[end_++ % Most] = {to, from, valid, groups_, &copy<Bytes>};
  }
  CUOP_FN void close_group() { ++groups_; }
  template <int Open>
  CUOP_FN void wait() {
    for (; begin_ < end_ && open_[begin_ % Most].group + Open < groups_; ++begin_) {
      const Copy& next = open_[begin_ % Most];
      next.copy(next.to, next.from, next.valid);
    }
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    int valid, group;
    void (*copy)(void* to, const void* from, int valid);
  };
  template <int Bytes>
  static void copy(void* to, const void* from, int valid) {
    Pack<uint8_t, Bytes> bytes{};
    if (valid == Bytes) {
      bytes = *static_cast<const Pack<uint8_t, Bytes>*>(from);
    } else {
      for (int i = 0; i < valid; ++i) bytes.values[i] = static_cast<const uint8_t*>(from)[i];
    }
    *static_cast<Pack<uint8_t, Bytes>*>(to) = bytes;
  }

  Copy open_[Most];
  int begin_ = 0, end_ = 0, groups_ = 0;
};

/// The lower half of the word counts the bytes that are on their way, the upper one completed uses.
struct RowArrival {
  uint64_t word;
  static constexpr uint64_t kUse = uint64_t{1} << 32;

  CUOP_FN void prepare() { word = 0; }
  CUOP_FN void expect(int bytes) {
    atomicAdd(&word, bytes == 0 ? kUse : static_cast<uint64_t>(bytes));
  }
  CUOP_FN void start(void* to, const void* from, int bytes) {
    for (int i = 0; i < bytes / 16; ++i)
      static_cast<Word16*>(to)[i] = static_cast<const Word16*>(from)[i];
    const uint64_t before = atomicAdd(&word, uint64_t{0} - static_cast<uint64_t>(bytes));
    if (static_cast<uint32_t>(before) == static_cast<uint32_t>(bytes)) atomicAdd(&word, kUse);
  }
  CUOP_FN void wait(unsigned turn) {
    __syncthreads();  // the thread that starts rows has come here too
    if (atomicAdd(&word, uint64_t{0}) / kUse % 2 == turn % 2) __builtin_trap();
  }
};

CUOP_FN void before_later_rows() {}

#endif

}  // namespace cuop::jit
