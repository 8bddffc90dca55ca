// Operations that make any block of their result from blocks of their inputs, described: what
// run_sharded and run_rooted plan over ranks serves arrays that are larger than memory as well.
#pragma once

#include <string>

#include "cuop/dist/exec/map.h"
#include "cuop/ops/conv/conv.h"

namespace cuop::dist {

/// The options, all of them.
std::string conv_text(const ConvOptions& options);
/// Inputs: input, weight, bias if there is one.
DescribeMapping conv_mapping(const ConvOptions& options);
/// a + b.
DescribeMapping add_mapping();
DescribeMapping transpose_mapping(int64_t dim0, int64_t dim1);

}  // namespace cuop::dist
