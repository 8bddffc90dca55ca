// CUDA's built-in names on the host, for kernel text. Whoever includes this first declares
// `cuop::simulator::running`, the thread that runs, where it shall live.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static  // of the one block that a kernel runs at a time

/// Kernel text: what a GPU does beside its threads is done by them.
#define CUOP_HOST_THREADS

/// Of functions that are no part of the kernel: their accesses to memory are not its own.
#define CUOP_UNCHECKED __attribute__((no_sanitize("kernel-address", "alignment", "bounds")))

#define threadIdx (::cuop::simulator::running.thread)
#define blockIdx (::cuop::simulator::running.block)
#define blockDim (::cuop::simulator::running.block_size)
#define gridDim (::cuop::simulator::running.grid)
inline constexpr int warpSize = 32;

namespace cuop::simulator {

inline unsigned thread_number() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

inline constexpr unsigned kExchangeBytes = 16;

/// The value that `lane` of this thread's warp gives; all `lanes` come here together.
template <class T>
CUOP_UNCHECKED T exchanged(unsigned lanes, T value, unsigned lane, const char* file, int line) {
  static_assert(sizeof(T) <= kExchangeBytes);
  const unsigned self = thread_number();
  __builtin_memcpy(running.exchange + self * kExchangeBytes, &value, sizeof value);
  running.meet(Group::kExchange, lanes, file, line);
  T result;
  __builtin_memcpy(&result, running.exchange + (self / 32 * 32 + lane) * kExchangeBytes,
                   sizeof result);
  running.meet(Group::kExchange, lanes, file, line);
  return result;
}

/// A bit for each of `lanes` whose predicate holds.
CUOP_UNCHECKED inline unsigned voted(unsigned lanes, bool predicate, const char* file, int line) {
  const unsigned self = thread_number();
  running.exchange[self * kExchangeBytes] = predicate;
  running.meet(Group::kExchange, lanes, file, line);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    if (running.exchange[(self / 32 * 32 + lane) * kExchangeBytes] != 0) votes |= 1u << lane;
  }
  running.meet(Group::kExchange, lanes, file, line);
  return votes;
}

/// Where a lane reads when the one it asks for is outside its part of the warp: from itself.
inline unsigned lane_within(int wanted, int width) {
  const int own = static_cast<int>(thread_number() % 32);
  const int first = own / width * width;
  return static_cast<unsigned>(wanted < first || wanted >= first + width ? own : wanted);
}

}  // namespace cuop::simulator

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ::cuop::simulator::running.meet(::cuop::simulator::Group::kBlock, 0, file, line);
}
inline void __syncwarp(unsigned lanes = 0xffffffffu, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  ::cuop::simulator::running.meet(::cuop::simulator::Group::kWarp, lanes, file, line);
}
namespace cuop::simulator {
inline void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (running.watch != nullptr) running.watch(Access::kFence, nullptr, 0);
}
}  // namespace cuop::simulator
inline void __threadfence() { ::cuop::simulator::fence(); }
inline void __threadfence_block() { ::cuop::simulator::fence(); }
inline void __threadfence_system() { ::cuop::simulator::fence(); }

template <class T>
T __shfl_sync(unsigned lanes, T value, int source, int width = 32,
              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int own = static_cast<int>(::cuop::simulator::thread_number() % 32);
  const auto lane = static_cast<unsigned>(own / width * width + (source & (width - 1)));
  return ::cuop::simulator::exchanged(lanes, value, lane, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int mask, int width = 32,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int own = static_cast<int>(::cuop::simulator::thread_number() % 32);
  return ::cuop::simulator::exchanged(
      lanes, value, ::cuop::simulator::lane_within(own ^ mask, width), file, line);
}
template <class T>
T __shfl_up_sync(unsigned lanes, T value, unsigned apart, int width = 32,
                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int own = static_cast<int>(::cuop::simulator::thread_number() % 32);
  return ::cuop::simulator::exchanged(
      lanes, value, ::cuop::simulator::lane_within(own - static_cast<int>(apart), width), file,
      line);
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, unsigned apart, int width = 32,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int own = static_cast<int>(::cuop::simulator::thread_number() % 32);
  return ::cuop::simulator::exchanged(
      lanes, value, ::cuop::simulator::lane_within(own + static_cast<int>(apart), width), file,
      line);
}
inline unsigned __ballot_sync(unsigned lanes, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return ::cuop::simulator::voted(lanes, predicate != 0, file, line);
}
inline int __any_sync(unsigned lanes, int predicate, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return ::cuop::simulator::voted(lanes, predicate != 0, file, line) != 0;
}
inline int __all_sync(unsigned lanes, int predicate, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return ::cuop::simulator::voted(lanes, predicate != 0, file, line) == lanes;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) {
  return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits));
}
inline unsigned __brev(unsigned bits) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (bits >> i & 1u) << (31 - i);
  return result;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}
template <class T>
T __ldg(const T* from) {
  return *from;
}
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
template <class T>
T __ldcg(const T* from) {
  return *from;
}
inline long long clock64() { return static_cast<long long>(++::cuop::simulator::running.clock); }

namespace cuop::simulator {

template <class T>
struct Same {
  using type = T;
};
template <class T>
using ConvertedTo = typename Same<T>::type;  // an argument that decides no template parameter

/// Replaces what is at `place` by change(old), whole, and returns the old.
template <class T, class Change>
T replaced(T* place, Change change) {
  running.is_atomic = true;
  T old;
  __atomic_load(place, &old, __ATOMIC_SEQ_CST);
  T next = change(old);
  while (
      !__atomic_compare_exchange(place, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    next = change(old);
  }
  running.is_atomic = false;
  return old;
}

}  // namespace cuop::simulator

template <class T>
T atomicAdd(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicExch(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* place, cuop::simulator::ConvertedTo<T> expected,
            cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return old == expected ? value : old; });
}
template <class T>
T atomicMin(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicMax(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return value > old ? value : old; });
}
template <class T>
T atomicOr(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return static_cast<T>(old | value); });
}
template <class T>
T atomicAnd(T* place, cuop::simulator::ConvertedTo<T> value) {
  return ::cuop::simulator::replaced(place, [=](T old) { return static_cast<T>(old & value); });
}
