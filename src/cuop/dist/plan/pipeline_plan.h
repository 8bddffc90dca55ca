// Work in chunks, of which one is computed while the next is on its way here and the one before is
// on its way back.
#pragma once

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct PipelinedMatmul {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  DType dtype = DType::kFloat32;
  Sharding at_root;    ///< where A and B lie and C is wanted
  int64_t chunks = 0;  ///< 0: as many as take the least time
};

/// B goes to every rank; rows of A go out, are multiplied and come back in chunks, each of them
/// split over all ranks. Strategies: "pipelined", and "root" unless chunks are asked for. settings:
/// chunks, 0 of "root".
Plan plan_pipelined_matmul(const PipelinedMatmul& problem, const Machine& machine,
                           std::string_view strategy = {});

/// The rows of chunk `chunk` that each rank multiplies.
std::vector<Box> chunk_boxes(int64_t rows, int64_t columns, int64_t chunks, int64_t chunk,
                             int ranks);

}  // namespace cuop::dist
