// Calls over ranks as values: what the functions of algo/ plan and follow. A plan of one needs no
// ranks (exec/operation.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cuop/dist/exec/map.h"
#include "cuop/dist/exec/operation.h"
#include "cuop/dist/plan/wire.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/sparse/product_path.h"
#include "cuop/ops/stencil/stencil.h"

namespace cuop {
struct PathOptions;
}

namespace cuop::dist {

// The arguments stand beside the functions that take them.
struct Fft2dBatch;
struct FftBatch;
struct ReduceOptions;
struct SolveInfo;
struct TensordotAxes;

Operation matmul_operation(const Wire& wire = {}, ProductPath path = ProductPath::kDense);
const Operation& batch_matmul_operation();
/// Of `count` operands.
Operation einsum_operation(std::string_view equation, size_t count, const PathOptions& path);
Operation tensordot_operation(const TensordotAxes& axes);

const Operation& add_operation();
Operation transpose_operation(int64_t dim0, int64_t dim1);
Operation conv_operation(const ConvOptions& options);
Operation reduce_operation(const ReduceOptions& options);

Operation fft_operation(const FftBatch& batch);
/// ShapeError for a length below 1.
void check_batch(const FftBatch& batch);
Operation fft2d_operation(const Fft2dBatch& batch);

Operation stencil_operation(Boundary boundary, int64_t iterations);
/// Its calls leave in `info` what they did.
Operation jacobi_operation(const JacobiOptions& options, const std::shared_ptr<SolveInfo>& info);

// Operations that make any block of their result from blocks of their inputs, described: what
// run_sharded and run_rooted plan over ranks serves arrays that are larger than memory as well.
/// The options, all of them.
std::string conv_text(const ConvOptions& options);
/// Inputs: input, weight, bias if there is one.
DescribeMapping conv_mapping(const ConvOptions& options);
/// a + b.
DescribeMapping add_mapping();
DescribeMapping transpose_mapping(int64_t dim0, int64_t dim1);

}  // namespace cuop::dist
