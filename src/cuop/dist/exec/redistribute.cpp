#include "cuop/dist/exec/redistribute.h"

#include <algorithm>
#include <utility>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/exec/calibration.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/header.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/dist/rank_device.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::dist {
namespace {

/// The wire for this tensor's way, the same on every rank. Long ones are worth measuring for.
Wire by_cost(const DistTensor& x, const Sharding& to, const Wire& wire) {
  const Traffic traffic =
      plan_traffic(x.sharding().owner_boxes(x.shape()), needs_of(to.owner_boxes(x.shape())));
  constexpr auto kParts = Communicator::Figures::kParts;
  const Machine assumed;
  const auto load = [&](const Machine& machine) { return load_of(traffic, machine, x.dtype()); };
  const bool is_long = transfer_seconds(assumed, load(assumed)) > kWorthMeasuring;
  if (!x.comm().figures(kParts) && is_long) calibrate(x.comm_ptr(), x.device(), kParts, assumed);
  const std::shared_ptr<const Machine> agreed = x.comm().figures(kParts);
  const Machine& machine = agreed ? *agreed : assumed;
  return wire.over(machine, x.dtype(), load(machine));
}

}  // namespace

DistTensor redistribute(const DistTensor& x, const Sharding& sharding, const Wire& wire) {
  const trace::Span span("redistribute", "op");
  DistTensor result;
  run_together(
      x.comm(), cat("redistribute ", x.to_string(), " -> ", sharding, wire.text()),
      [&] {
        wire.check_carries(x.dtype(), "redistribute");
        if (sharding.mesh().size() != x.comm().size()) {
          throw ShapeError(cat("redistribute: ", sharding.mesh(), " is not a mesh of the ",
                               x.comm().size(), " ranks of the tensor"));
        }
        sharding.check_fits(x.shape(), "redistribute");
      },
      [&] {
        const Wire carried = wire.is_by_cost ? by_cost(x, sharding, wire) : wire;
        result = moved_to(x, sharding, carried, std::max(x.ndim() - 1, 0));
      });
  return result;
}

namespace {

Tensor everywhere(const DistTensor& x) {
  return redistribute(x, Sharding::replicated(Mesh::line(x.comm().size()))).local();
}

}  // namespace

Tensor gather(const DistTensor& x, int64_t root) {
  const Sharding at_root = make_together(x.comm(), cat("gather to rank ", root), [&] {
    check_rank("gather", root, x.comm().size());
    return Sharding::on_rank(x.sharding().mesh(), static_cast<int>(root));
  });
  const DistTensor moved = redistribute(x, at_root);
  return x.comm().rank() == root ? in_own_memory(moved.local(), {x.local()}) : Tensor();
}

Tensor gather_all(const DistTensor& x) { return in_own_memory(everywhere(x), {x.local()}); }

Tensor whole(const DistTensor& x, const char* who) {
  if (!x.is_defined()) throw ExecutionError(cat(who, ": a distributed tensor is undefined"));
  if (x.sharding().is_replicated()) return x.local();
  if (is_strict() && x.size() > 1) {
    prepare_together(x.comm(), cat(who, " of ", x.to_string(), ", strict"), [&] {
      refuse_to_gather(who,
                       cat(x.to_string(), " (", format_bytes(x.size() * itemsize(x.dtype())),
                           ") would become whole on every rank"),
                       "gather_all or gather");
    });
  }
  return everywhere(x);
}

Tensor all_reduce(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op) {
  Tensor result;
  run_together(
      *comm, cat("all_reduce ", name(op), " of ", header_of(tensor)),
      [&] {
        check_reducible("all_reduce", tensor.dtype(), op);
        check_usable(tensor);
        result = clone(tensor);
      },
      [&] {
        comm->all_reduce(result.data(), result.data(), result.size(), result.dtype(), op,
                         current_stream(result.device()));
      });
  return result;
}

Tensor reduce_to(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op, int root) {
  Tensor result;
  run_together(
      *comm, cat("reduce ", name(op), " of ", header_of(tensor), " to rank ", root),
      [&] {
        check_rank("reduce", root, comm->size());
        check_reducible("reduce", tensor.dtype(), op);
        check_usable(tensor);
        result = clone(tensor);
      },
      [&] {
        comm->reduce(result.data(), result.data(), result.size(), result.dtype(), op, root,
                     current_stream(result.device()));
      });
  return comm->rank() == root ? result : Tensor();
}

}  // namespace cuop::dist
