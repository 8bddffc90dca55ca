// Stages of shared memory that one thread fills by the GPU's copy engine while two warpgroups work
// on those that have come (compute capability 9.0). On the host all threads of the block wait for
// each stage, and no copy is ahead of the work.
#pragma once

#include "cuop/jit/kernels/block_copy.cuh"
#include "cuop/jit/kernels/stage_sizes.cuh"

namespace cuop::jit {

/// Room of the block behind the stages of run_stages with the same arguments.
template <int StageBytes, int Stages, int Spare>
CUOP_FN unsigned char* room_behind_stages() {
  return block_room<pipeline_bytes(StageBytes, Stages, Spare)>() +
         pipeline_bytes(StageBytes, Stages);
}

#ifndef CUOP_HOST_THREADS

/// Where the bringing thread learns that a stage has been worked on. In shared memory.
struct StageRelease {
  uint64_t word;

  /// By one thread, before the block's next barrier.
  CUOP_FN void prepare() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(this)),
                 "n"(kWorkingWarpgroups)
                 : "memory");
  }
  /// By one thread of each working warpgroup.
  CUOP_FN void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(this))
                 : "memory");
  }
  CUOP_FN void wait(unsigned turn) { detail::wait_for_phase(this, turn); }
};

/// Goes through the tiles that are numbered below `tiles` and are this block's, each in `steps`
/// stages of memory that are brought while those before them are worked on, of the next tile too.
///
/// place_of(number) is where a tile is; bring(place, step, room, arrival) starts the copies of a
/// step and tells the arrival of their bytes; work(room) is called by all threads of the working
/// warpgroups, with none of the room in use when it returns; finish(place) by them behind a tile's
/// last step. StageBytes is a multiple of the alignment. `Spare` bytes behind the stages are not
/// touched.
template <int StageBytes, int Stages, int Spare = 0, class PlaceOf, class Bring, class Work,
          class Finish>
CUOP_FN void run_stages(int64_t tiles, unsigned steps, PlaceOf place_of, Bring bring, Work work,
                        Finish finish) {
  static_assert(StageBytes % kStageAlignment == 0);
  __shared__ RowArrival arrivals[Stages];
  __shared__ StageRelease releases[Stages];
  unsigned char* const begin = block_room<pipeline_bytes(StageBytes, Stages, Spare)>();
  unsigned char* const rooms = begin + (0u - detail::shared_address(begin)) % kStageAlignment;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int stage = 0; stage < Stages; ++stage) {
      arrivals[stage].prepare();
      releases[stage].prepare();
    }
  }
  __syncthreads();
  unsigned turn = 0;  // of all tiles of this block together
  // Registers go where they are needed: sums are kept by those that work.
  if (threadIdx.x >= 128 * kWorkingWarpgroups) {
#if __CUDA_ARCH__ == 900
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
    if (threadIdx.x == 128 * kWorkingWarpgroups) {
#pragma unroll 1
      for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const auto place = place_of(number);
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step, ++turn) {
          const unsigned stage = turn % Stages;
          if (turn >= Stages) releases[stage].wait(turn / Stages - 1);
          bring(place, step, rooms + stage * StageBytes, arrivals[stage]);
        }
      }
    }
  } else {
#if __CUDA_ARCH__ == 900
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#endif
#pragma unroll 1
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
#pragma unroll 1
      for (unsigned step = 0; step < steps; ++step, ++turn) {
        const unsigned stage = turn % Stages;
        arrivals[stage].wait(turn / Stages);
        work(rooms + stage * StageBytes);
        if (threadIdx.x % 128 == 0) releases[stage].arrive();
      }
      finish(place_of(number));
    }
  }
}

#else

template <int StageBytes, int Stages, int Spare = 0, class PlaceOf, class Bring, class Work,
          class Finish>
CUOP_FN void run_stages(int64_t tiles, unsigned steps, PlaceOf place_of, Bring bring, Work work,
                        Finish finish) {
  static_assert(StageBytes % kStageAlignment == 0);
  __shared__ RowArrival arrival;
  unsigned char* const begin = block_room<pipeline_bytes(StageBytes, Stages, Spare)>();
  unsigned char* const room =
      begin + (0ul - reinterpret_cast<unsigned long>(begin)) % kStageAlignment;
  const bool is_working = threadIdx.x < 128 * kWorkingWarpgroups;
  if (threadIdx.x == 0) arrival.prepare();
  unsigned turn = 0;
  for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
    const auto place = place_of(number);
    for (unsigned step = 0; step < steps; ++step, ++turn) {
      __syncthreads();
      if (threadIdx.x == 0) bring(place, step, room, arrival);
      arrival.wait(turn);
      if (is_working) work(room);
    }
    if (is_working) finish(place);
  }
}

#endif

}  // namespace cuop::jit
