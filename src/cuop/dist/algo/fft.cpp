#include "cuop/dist/algo/fft.h"

#include <functional>
#include <numeric>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/chirp_internal.h"
#include "cuop/dist/algo/four_step_internal.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/passes.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {
namespace {

/// "ifft" and the like, with what follows: "n", "2d", "2d_pencil".
std::string name_of(FftKind kind, const char* suffix) {
  static constexpr const char* kNames[] = {"fft", "ifft", "rfft", "irfft"};
  return cat(kNames[static_cast<size_t>(kind)], suffix);
}

/// The axes, without a sign: those named, in that order, as lengths belong to them one by one; or
/// as many of the last ones as there are lengths, or all.
std::vector<int> axes_of(const std::string& who, const FftCall& call, int ndim) {
  if (call.axes) {
    return axes_as_given(std::span(call.axes->begin(), call.axes->end()), ndim, who.c_str());
  }
  const int count = call.s ? call.s->ndim() : ndim;
  if (count > ndim) {
    throw ShapeError(cat(who, ": ", count, " lengths were given for ", ndim, " dimensions"));
  }
  std::vector<int> axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), ndim - count);
  return axes;
}

void check_length(const std::string& who, int64_t length) {
  if (length < 1) throw ShapeError(cat(who, ": the length is ", length, ", it must be 1 or more"));
}

/// `check` refuses what this form of the call does not take.
Operation operation(const std::string& who, const FftCall& call,
                    const std::function<void(const Placement& x)>& check = nullptr) {
  const auto plan = [=](const PlanArguments& given) {
    const Placement& x = given.inputs.at(0);
    if (check) check(x);
    FftProblem problem = fft_problem(who, call, x);
    problem.wanted = given.output;
    return plan_fft(problem, given.machine, given.strategy);
  };
  const auto execute = [=](const Plan& made, const std::vector<DistTensor>& inputs) {
    const DistTensor& x = inputs.at(0);
    const FftProblem problem = fft_problem(who, call, {"x", x.shape(), x.dtype(), x.sharding()});
    if (made.strategy == kFourStep) return follow_four_step(made, problem, call.norm, x);
    if (made.strategy == kChirp) return follow_chirp(made, problem, call.norm, x);
    return follow_passes(made, x, [&](const Tensor& part, const RankPass& pass) {
      transform_axes(problem, call.norm, part, pass.axes, pass.into);
    });
  };
  const auto text = [](const FftDims& dims) { return dims ? cat(*dims) : std::string("default"); };
  Operation described{cat(who, " lengths ", text(call.s), ", axes ", text(call.axes), ", norm ",
                          static_cast<int>(call.norm)),
                      {"x"},
                      plan,
                      execute};
  described.alone = [=](const Plan& made, const std::vector<Tensor>& inputs) {
    const Tensor& x = inputs[0];
    const Placement& result = made.outputs[0];
    const FftProblem problem = fft_problem(who, call, {"x", x.shape(), x.dtype(), result.sharding});
    const Tensor into = empty(result.shape, result.dtype, x.device());
    transform_axes(problem, call.norm, x, problem.axes, into);
    return into;
  };
  return described;
}

Operation pencil_operation(const FftOptions& options) {
  const FftKind kind = options.is_inverse ? FftKind::kIfft : FftKind::kFft;
  const std::string who = name_of(kind, "2d_pencil");
  return operation(who, {kind, {}, {}, options.norm}, [=](const Placement& x) {
    if (x.shape.ndim() == 2) return;
    throw ShapeError(cat(who, ": x: a tensor of 2 dimensions is needed, given ", x.shape));
  });
}

}  // namespace

void check_batch(const FftBatch& batch) {
  // -1 means "as it is" in a list of lengths alone.
  if (batch.n) check_length(name_of(batch.kind, ""), *batch.n);
}

Operation fft_operation(const FftBatch& batch) {
  FftDims n;
  if (batch.n) n = Dims{*batch.n};
  return operation(name_of(batch.kind, ""), {batch.kind, n, Dims{batch.dim}, batch.norm},
                   [=](const Placement&) { check_batch(batch); });
}

Operation fft2d_operation(const Fft2dBatch& batch) {
  const FftKind kind = batch.options.is_inverse ? FftKind::kIfft : FftKind::kFft;
  const std::string who = name_of(kind, "2d");
  return operation(who, {kind, batch.s, batch.dims, batch.options.norm}, [=](const Placement&) {
    if (batch.dims.ndim() == 2 && (!batch.s || batch.s->ndim() == 2)) return;
    throw ShapeError(cat(who, ": two dims and two sizes are needed, given dims ", batch.dims));
  });
}

FftProblem fft_problem(const std::string& who, const FftCall& call, const Placement& x) {
  FftProblem problem{who, x, call.kind, axes_of(who, call, x.shape.ndim()), {}, {}};
  if (problem.axes.empty()) {
    throw ShapeError(cat(who, ": at least one axis is needed, x has shape ", x.shape));
  }
  if (call.s && static_cast<size_t>(call.s->ndim()) != problem.axes.size()) {
    throw ShapeError(
        cat(who, ": ", call.s->ndim(), " lengths were given for ", problem.axes.size(), " axes"));
  }
  if (call.kind == FftKind::kRfft && is_complex(x.dtype)) {
    throw DTypeError(cat(who, ": real input is needed, given ", x.dtype));
  }
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    const bool is_halved = call.kind == FftKind::kIrfft && i + 1 == problem.axes.size();
    const int64_t size = x.shape[problem.axes[i]];
    const int64_t given = call.s ? (*call.s)[static_cast<int>(i)] : -1;
    const int64_t length = given != -1 ? given : is_halved ? 2 * (size - 1) : size;
    check_length(who, length);
    problem.lengths.push_back(length);
  }
  return problem;
}

void transform_axes(const FftProblem& problem, FftNorm norm, const Tensor& part,
                    const std::vector<int>& axes, const Tensor& into) {
  Dims lengths, along;
  bool has_real_axis = false;
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    if (!has_axis(axes, problem.axes[i])) continue;
    along.push_back(problem.axes[i]);
    lengths.push_back(problem.lengths[i]);
    has_real_axis = i + 1 == problem.axes.size();
  }
  const bool is_forward = problem.kind == FftKind::kFft || problem.kind == FftKind::kRfft;
  const bool is_real =
      has_real_axis && problem.kind != FftKind::kFft && problem.kind != FftKind::kIfft;
  const auto run =
      is_forward ? (is_real ? cuop::rfftn : cuop::fftn) : (is_real ? cuop::irfftn : cuop::ifftn);
  run(part, lengths, along, norm, &into);
}

DistTensor fftn(const DistTensor& x, const FftCall& call, const CallOptions& options) {
  return run_sharded(operation(name_of(call.kind, "n"), call), {x}, options);
}

Tensor fftn_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftCall& call,
                      const CallOptions& options) {
  return run_rooted(comm, operation(name_of(call.kind, "n"), call), {x}, options);
}

DistTensor fft2d_pencil(const DistTensor& x, const FftOptions& options, const CallOptions& call) {
  return run_sharded(pencil_operation(options), {x}, call);
}

Tensor fft2d_pencil_from_root(const CommunicatorPtr& comm, const Tensor& x,
                              const FftOptions& options, const CallOptions& call) {
  return run_rooted(comm, pencil_operation(options), {x}, call);
}

DistTensor fft(const DistTensor& x, const FftBatch& batch, const CallOptions& call) {
  return run_sharded(fft_operation(batch), {x}, call);
}

Tensor fft_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftBatch& batch,
                     const CallOptions& call) {
  return run_rooted(comm, fft_operation(batch), {x}, call);
}

DistTensor fft2d(const DistTensor& x, const Fft2dBatch& batch, const CallOptions& call) {
  return run_sharded(fft2d_operation(batch), {x}, call);
}

Tensor fft2d_from_root(const CommunicatorPtr& comm, const Tensor& x, const Fft2dBatch& batch,
                       const CallOptions& call) {
  return run_rooted(comm, fft2d_operation(batch), {x}, call);
}

}  // namespace cuop::dist
