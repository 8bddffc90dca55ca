// The arithmetic of the reducing collectives.
#pragma once

#include <cstdint>
#include <span>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// out[i] = ((in[0][i] op in[1][i]) op in[2][i]) ..., in this order, so that every communicator
/// gives the same bits. float16 and bfloat16 are accumulated in float32 and rounded once; integers
/// wrap; bool sums as "or" and multiplies as "and"; max and min propagate NaN. `out` may be one of
/// the inputs. All lie on one device, whose current stream does the work.
void reduce_in_rank_order(std::span<const void* const> in, void* out, int64_t count, DType dtype,
                          ReduceKind op, Device device = kCpu);

}  // namespace cuop::dist
