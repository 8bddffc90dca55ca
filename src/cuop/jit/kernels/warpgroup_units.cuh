// Products of a warpgroup, the four warps that use a GPU's matrix units together (compute
// capability 9.0): sums [64, Columns] += a @ b^T of bfloat16 numbers, where a has 64 lines and b
// has one for each column, both in shared memory. On the host each thread computes what it keeps.
#pragma once

#include "cuop/jit/kernels/block_copy.cuh"

namespace cuop::jit {

/// Lines of bfloat16 numbers in shared memory, 32 of the depth each, as the units read them: 8
/// lines are a group of 512 bytes, line l of which has its 16-byte pieces at their number xor l
/// / 2. The first group begins at a multiple of 512 bytes, the next ones so many bytes on.
template <int GroupStep>
struct UnitLines {
  static constexpr int kDepth = 32, kLinesOfGroup = 8, kLineBytes = 64, kPieceBytes = 16;
  static constexpr int kGroupBytes = kLinesOfGroup * kLineBytes;

  unsigned char* first;

  /// Where a line's numbers from `depth` on are, a multiple of 8, from the beginning of its group.
  CUOP_FN static constexpr int place(int line, int depth) {
    return line % kLinesOfGroup * kLineBytes +
           ((depth / 8) ^ (line % kLinesOfGroup / 2)) * kPieceBytes;
  }
  CUOP_FN UnitLines from_group(int group) const { return {first + group * GroupStep}; }

#ifndef CUOP_HOST_THREADS
  /// For the units: the address, the step from group to group in units of 16 bytes, and the way in
  /// which pieces are exchanged.
  CUOP_FN uint64_t described(int depth) const {
    const unsigned address = detail::shared_address(first) + static_cast<unsigned>(depth) * 2u;
    constexpr uint64_t kExchanges64 = 2;
    return uint64_t{(address & 0x3ffffu) >> 4} | uint64_t{1} << 16 |
           uint64_t{GroupStep / 16} << 32 | kExchanges64 << 62;
  }
#else
  CUOP_FN float number(int line, int depth) const {
    const unsigned char* at = first + line / kLinesOfGroup * GroupStep + place(line, depth);
    return *reinterpret_cast<const BFloat16*>(at + depth % 8 * 2);
  }
#endif
};

/// What a thread of the warpgroup keeps of the sums [64, Columns]: of column pairs 8 apart, in two
/// rows 8 apart.
template <int Columns>
struct WarpgroupSums {
  static constexpr int kCount = Columns / 2;
  float values[kCount];

  CUOP_FN static int row(int n) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    return thread / 32 * 16 + n / 2 % 2 * 8 + thread % 32 / 4;
  }
  CUOP_FN static int column(int n) {
    return n / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + n % 2;
  }
};

#ifndef CUOP_HOST_THREADS

namespace detail {

/// Tells the compiler that the units write the sums beside the thread's own work.
template <int Columns>
CUOP_FN void hold(WarpgroupSums<Columns>& sums) {
#pragma unroll
  for (int n = 0; n < sums.kCount; ++n) asm volatile("" : "+f"(sums.values[n])::"memory");
}

#if __CUDA_ARCH__ == 900
#define CUOP_SUMS_8(at)                                                            \
  "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3]), "+f"(d[at + 4]), \
      "+f"(d[at + 5]), "+f"(d[at + 6]), "+f"(d[at + 7])

CUOP_FN void start_product(WarpgroupSums<64>& sums, uint64_t a, uint64_t b, int adds) {
  float* const d = sums.values;
  asm volatile(
      "{\n  .reg .pred adds;\n  setp.ne.b32 adds, %34, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, adds, 1, 1, 0, 0;\n}"
      : CUOP_SUMS_8(0), CUOP_SUMS_8(8), CUOP_SUMS_8(16), CUOP_SUMS_8(24)
      : "l"(a), "l"(b), "r"(adds));
}
CUOP_FN void start_product(WarpgroupSums<128>& sums, uint64_t a, uint64_t b, int adds) {
  float* const d = sums.values;
  asm volatile(
      "{\n  .reg .pred adds;\n  setp.ne.b32 adds, %66, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, adds, 1, 1, 0, 0;\n}"
      : CUOP_SUMS_8(0), CUOP_SUMS_8(8), CUOP_SUMS_8(16), CUOP_SUMS_8(24), CUOP_SUMS_8(32),
        CUOP_SUMS_8(40), CUOP_SUMS_8(48), CUOP_SUMS_8(56)
      : "l"(a), "l"(b), "r"(adds));
}
#undef CUOP_SUMS_8
#else
/// Other units than those of 9.0 have other instructions; nobody launches this.
template <int Columns>
CUOP_FN void start_product(WarpgroupSums<Columns>&, uint64_t, uint64_t, int) {
  __trap();
}
#endif

}  // namespace detail

/// A run of products into the same sums: begin, add each, end. Until then the sums are the units'.
template <int Columns>
CUOP_FN void begin_unit_products(WarpgroupSums<Columns>& sums) {
  detail::hold(sums);
#if __CUDA_ARCH__ == 900
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// 16 of the depth from `depth` on; not `adds` begins with zero.
template <int Columns, int GroupStep>
CUOP_FN void add_unit_products(WarpgroupSums<Columns>& sums, UnitLines<GroupStep> a,
                               UnitLines<GroupStep> b, int depth, bool adds) {
  detail::start_product(sums, a.described(depth), b.described(depth), adds ? 1 : 0);
}
template <int Columns>
CUOP_FN void end_unit_products(WarpgroupSums<Columns>& sums) {
#if __CUDA_ARCH__ == 900
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
  detail::hold(sums);
}

#else

template <int Columns>
CUOP_FN void begin_unit_products(WarpgroupSums<Columns>&) {}
template <int Columns, int GroupStep>
CUOP_FN void add_unit_products(WarpgroupSums<Columns>& sums, UnitLines<GroupStep> a,
                               UnitLines<GroupStep> b, int depth, bool adds) {
  for (int n = 0; n < sums.kCount; ++n) {
    float sum = adds ? sums.values[n] : 0.0f;
    for (int k = depth; k < depth + 16; ++k) {
      sum += a.number(sums.row(n), k) * b.number(sums.column(n), k);
    }
    sums.values[n] = sum;
  }
}
template <int Columns>
CUOP_FN void end_unit_products(WarpgroupSums<Columns>&) {}

#endif

}  // namespace cuop::jit
