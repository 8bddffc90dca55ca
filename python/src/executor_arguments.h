// What the bindings of cuop.executor share.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "binders.h"
#include "callback.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/executor/pass_log.h"
#include "cuop/executor/tiled_call.h"
#include "dist_arguments.h"

namespace cuop::python {

// Parts of bind_executor.
void bind_executor_plans(Module& m);
void bind_executor_calls(Module& m);

using Limit = std::optional<int64_t>;

inline constexpr std::pair<const char*, dist::FftKind> kLineTransforms[] = {
    {"fft", dist::FftKind::kFft},
    {"ifft", dist::FftKind::kIfft},
    {"rfft", dist::FftKind::kRfft},
    {"irfft", dist::FftKind::kIrfft}};
/// Transforms of one line by name.
dist::FftBatch line_batch(Limit n, int64_t dim, std::string_view norm, std::string_view kind);

/// A log of passes that Python keeps; null for None.
std::shared_ptr<executor::PassLog> pass_log(const nb::object& log);

/// ShapeError for what no memory holds, whose bytes could not be added up.
inline void check_bytes(const executor::Header& header) {
  constexpr int64_t kMost = int64_t{1} << 58;
  if (element_count(header.shape) <= kMost / itemsize(header.dtype)) return;
  throw ShapeError(
      cat("plan: an array of ", header, " is more than any memory; allowed are ", kMost, " bytes"));
}

/// Inputs that need not be there. ExecutionError unless there are as many dtypes as shapes.
using Shapes = std::vector<Arg<Shape>>;
using DTypes = std::vector<Arg<DType>>;
inline std::vector<executor::Header> headers_of(const Shapes& shapes, const DTypes& dtypes) {
  if (shapes.size() != dtypes.size()) {
    throw ExecutionError(cat("plan: ", shapes.size(), " shapes and ", dtypes.size(),
                             " dtypes were given; each array needs one of both"));
  }
  std::vector<executor::Header> headers;
  for (size_t i = 0; i < shapes.size(); ++i) {
    headers.push_back({*shapes[i], *dtypes[i]});
    check_bytes(headers.back());
  }
  return headers;
}

/// Tells Python now and then how far the work is, and at its end.
inline std::function<void(int64_t, int64_t)> progress(const nb::object& function) {
  if (function.is_none()) return {};
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPeriod = std::chrono::milliseconds(100);
  return [held = shared_function(function), next = Clock::time_point()](int64_t done,
                                                                        int64_t all) mutable {
    const Clock::time_point now = Clock::now();
    if (now < next && done < all) return;
    next = now + kPeriod;
    call_at_work(*held, "the progress of a call", done, all);
  };
}

inline executor::TiledOptions tiled_options(Limit memory_limit, double safety_margin,
                                            int64_t least_tiles = 1,
                                            const nb::object& function = nb::none()) {
  return {{safety_margin, memory_limit},
          least_tiles,
          progress(function),
          std::make_shared<executor::TiledReport>()};
}

/// The devices of the ranks within limits, in the place of a machine on paper.
struct RankDevices {
  dist::CommunicatorPtr comm;
  executor::TiledOptions options;
};

/// What a call with tiles returns: the result on rank 0, and what it did on every rank.
using Outcome = std::pair<std::optional<Tensor>, executor::TiledReport>;
inline Outcome outcome(Tensor result, const executor::TiledOptions& options) {
  return {or_none(std::move(result)), *options.report};
}

}  // namespace cuop::python
