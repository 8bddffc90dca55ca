#include "cuop/dist/algo/pieces.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/create/create.h"

namespace cuop::dist {
namespace {

void check_openly(const std::string& who, const DistTensor& value, const std::vector<Box>& owners,
                  const std::vector<Box>& needed) {
  if (!is_strict()) return;
  Plan plan;
  add_move(plan, Machine{}, "", owners, needs_of(needed), value.dtype());
  const PlanStep& step = plan.steps.back();
  if (step.whole_on < 2) return;
  refuse_to_gather(who,
                   cat("the value ", value.to_string(), " becomes whole on ", step.whole_on,
                       " ranks (", format_bytes(step.bytes), " moved)"),
                   "redistribute before this call");
}

}  // namespace

void bring_pieces(const std::string& who, const DistTensor& x, const DistTensor& value,
                  const Target& to, const std::function<void(const Tensor&)>& check,
                  const std::function<void(const Tensor&)>& work) {
  Communicator& comm = x.comm();
  const auto rank = static_cast<size_t>(comm.rank());
  const std::vector<Box> owners = value.sharding().owner_boxes(value.shape());
  std::vector<Box> needed;
  std::string text = cat(who, ' ', to.index, " of ", x.to_string(), ", ", value.to_string());
  if (is_strict()) text += ", strict";
  run_together(
      comm, text,
      [&] {
        if (&value.comm() != &comm) {
          throw ExecutionError(cat(who, ": the value lies on another communicator"));
        }
        if (!(broadcast_shapes(to.shape, value.shape(), who.c_str()) == to.shape)) {
          throw ShapeError(cat(who, ": a value of shape ", value.shape(),
                               " does not broadcast to shape ", to.shape));
        }
        if (!x.box().empty() && !value.box().empty() && x.device() != value.device()) {
          throw DeviceError(cat(who, ": rank ", comm.rank(), " has the tensor on ", x.device(),
                                ", the value on ", value.device(), "; they must be on one device"));
        }
        check(empty({0}, value.dtype(), x.device()));
        needed = needed_boxes(
            [&](size_t, const Box& box) { return broadcast_source(box, value.shape()); }, 0,
            value.ndim(), to.boxes);
        check_openly(who, value, owners, needed);
      },
      [&] {
        Part source = part_of(value);
        if (source.box.empty()) source.device = x.device();
        const Tensor piece = fetch(comm, source, owners, needed, value.dtype());
        if (!to.boxes[rank].empty()) work(piece);
      });
}

}  // namespace cuop::dist
