// The operations that run on arrays larger than memory, for run_tiled.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/dist/algo/conv.h"
#include "cuop/dist/algo/einsum.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

/// Sums of products as ops/einsum says. Any indices of the result may be cut, and the longest one
/// that is summed over.
TileOperation einsum_tiles(const std::string& equation, const PathOptions& path = {});
/// a [M, K] @ b [K, N], which reach GPUs in the wire's form.
TileOperation matmul_tiles(const dist::Wire& wire = {});
/// a [..., M, K] @ b [..., K, N] or [K, N].
TileOperation batch_matmul_tiles();
TileOperation tensordot_tiles(const dist::TensordotAxes& axes);

TileOperation add_tiles();
TileOperation transpose_tiles(int64_t dim0, int64_t dim1);
TileOperation conv_tiles(const ConvOptions& options);

/// 1-D transforms, cut along the other dimensions.
TileOperation fft_tiles(const dist::FftBatch& batch);
/// Transforms of two dimensions at a time, cut along the others.
TileOperation fft2d_tiles(const dist::Fft2dBatch& batch);

/// Sums and their like over some dimensions; cut along all.
TileOperation reduce_tiles(const dist::ReduceOptions& options);

}  // namespace cuop::executor
