#include "cuop/dist/algo/pipelined.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/dist/comm/reduction.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/header.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/pipeline_plan.h"
#include "cuop/dist/rank_device.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist {
namespace {

Plan plan_pipelined(int64_t chunks, const PlanArguments& given) {
  const auto& [inputs, output, machine, strategy] = given;
  const char* const who = "matmul_pipelined";
  check_matrices(who, inputs);
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (chunks < 0) {
    throw ExecutionError(cat(who, ": ", chunks, " chunks were asked for, allowed are 1 and more"));
  }
  return plan_pipelined_matmul({a[0], b[1], a[1], promote(inputs[0].dtype, inputs[1].dtype),
                                output.value_or(inputs[0].sharding), chunks},
                               machine, strategy);
}

/// The rows of a matrix, which lies whole on one rank, as chunks that are split over all.
class Chunks {
 public:
  /// `whole` is this rank's part of the matrix: all of it, or none.
  Chunks(Communicator& comm, const Part& whole, const Sharding& sharding, const Shape& shape,
         DType dtype, int64_t count)
      : comm_(comm),
        whole_(whole),
        has_all_(sharding.single_rank() == comm.rank()),
        owners_(sharding.owner_boxes(shape)),
        shape_(shape),
        count_(count) {
    if (has_all_) return;
    int64_t rows = 0;
    for (int64_t chunk = 0; chunk < count_; ++chunk) {
      first_.push_back(rows);
      rows += mine(chunk).interval(0).length();
    }
    rows_ = empty({rows, shape_[1]}, dtype, whole_.device);
  }

  /// This rank's rows of a chunk: where all are, their place in the matrix.
  Tensor rows(int64_t chunk) const {
    if (has_all_) return view_of(whole_, mine(chunk));
    const int64_t first = first_[static_cast<size_t>(chunk)];
    return slice(rows_, 0, first, first + mine(chunk).interval(0).length());
  }
  const Tensor& whole() const { return whole_.local; }
  const Tensor& all_rows() const { return rows_; }

  /// From the matrix to the ranks' rows, and back.
  void spread(int64_t chunk) const {
    const Part here{rows(chunk), mine(chunk), whole_.device};
    move(whole_, here, plan_moves(comm_.rank(), owners_, needs_of(boxes(chunk))));
  }
  void collect(int64_t chunk) const {
    const Interval in_chunk = split_evenly({0, shape_[0]}, count_, chunk);
    std::vector<Box> wanted = owners_;
    for (Box& box : wanted) {
      if (!box.empty()) box.set_interval(0, in_chunk);
    }
    const Part here{rows(chunk), mine(chunk), whole_.device};
    move(here, whole_, plan_moves(comm_.rank(), boxes(chunk), needs_of(wanted)));
  }

 private:
  std::vector<Box> boxes(int64_t chunk) const {
    return chunk_boxes(shape_[0], shape_[1], count_, chunk, comm_.size());
  }
  Box mine(int64_t chunk) const { return boxes(chunk)[static_cast<size_t>(comm_.rank())]; }
  void move(const Part& from, const Part& to, RankMoves moves) const {
    moves.kept.clear();  // where all are, they are there already
    exchange(comm_, moves, from, [&](const Piece& piece) { return view_of(to, piece.box); });
  }

  Communicator& comm_;
  const Part whole_;
  const bool has_all_;
  const std::vector<Box> owners_;
  const Shape shape_;
  const int64_t count_;
  std::vector<int64_t> first_;
  Tensor rows_;
};

DistTensor execute_pipelined(const Overlap& overlap, const Plan& plan,
                             const std::vector<DistTensor>& inputs) {
  const Placement& c = plan.outputs[0];
  const DistTensor a = cast(inputs[0], c.dtype), b = cast(inputs[1], c.dtype);
  Communicator& comm = a.comm();
  const int64_t count = plan.setting("chunks");
  const Box mine = c.sharding.owner_box(c.shape, comm.rank());
  const Part whole{empty(mine.shape(), c.dtype, a.device()), mine, a.device()};
  if (count == 0) {
    if (c.sharding.single_rank() == comm.rank()) {
      cuop::matmul(a.local(), b.local(), {}, &whole.local);
    }
  } else {
    const Tensor b_here = fetch(comm, part_of(b), b.sharding().owner_boxes(b.shape()),
                                plan.inputs[1].sharding.owner_boxes(b.shape()), c.dtype,
                                Travel{.is_relayed = is_relayed(plan, 1)});
    const Chunks of_a(comm, part_of(a), a.sharding(), a.shape(), c.dtype, count),
        of_c(comm, whole, c.sharding, c.shape, c.dtype, count);
    const auto work = [&](int64_t chunk) {
      const Tensor out = of_c.rows(chunk);
      if (out.size() > 0) cuop::matmul(of_a.rows(chunk), b_here, {}, &out);
    };
    run_pipeline(a.device(), count,
                 {[&](int64_t chunk) { of_a.spread(chunk); }, work,
                  [&](int64_t chunk) { of_c.collect(chunk); }},
                 overlap, {of_a.whole(), of_a.all_rows(), of_c.whole(), of_c.all_rows()});
  }
  return DistTensor(a.comm_ptr(), c.sharding, c.shape, c.dtype, whole.local, a.device());
}

Operation operation(int64_t chunks, const Overlap& overlap) {
  return {cat("matmul_pipelined, chunks ", chunks, overlap.is_on ? "" : ", no overlap"),
          {"A", "B"},
          std::bind_front(plan_pipelined, chunks),
          std::bind_front(execute_pipelined, overlap)};
}

}  // namespace

Tensor matmul_pipelined_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                                  int64_t chunks, const Overlap& overlap,
                                  const CallOptions& options) {
  return run_rooted(comm, operation(chunks, overlap), {a, b}, options);
}

Tensor all_reduce_pipelined(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op,
                            int64_t asked, const Overlap& overlap) {
  Tensor given, result, fetched;
  int64_t chunks = 1;
  const int ranks = comm->size(), rank = comm->rank();
  /// Of a chunk's elements those that a rank adds up.
  const auto share = [&](int64_t chunk, int of) {
    return split_evenly(split_evenly({0, tensor.size()}, chunks, chunk), ranks, of);
  };
  const auto part = [](const Tensor& flat, Interval elements) {
    return slice(flat, 0, elements.low, elements.high);
  };
  /// Where what others have of this rank's share of a chunk lands.
  const auto landing = [&](int64_t chunk, int from) {
    const int64_t length = share(chunk, rank).length();
    const int64_t before = share(0, rank).length() * chunk;  // no later share is longer
    const int place = from < rank ? from : from - 1;
    const int64_t begin = before * (ranks - 1) + place * length;
    return slice(fetched, 0, begin, begin + length);
  };
  const auto others = [&](const auto& patch) { return patches_of_others(rank, ranks, patch); };
  run_together(
      *comm, cat("all_reduce_pipelined ", name(op), " of ", header_of(tensor), ", chunks ", asked),
      [&] {
        check_reducible("all_reduce_pipelined", tensor.dtype(), op);
        check_usable(tensor);
        if (asked < 1) {
          throw ExecutionError(cat("all_reduce_pipelined: ", asked,
                                   " chunks were asked for, allowed are 1 and more"));
        }
        chunks = std::clamp<int64_t>(tensor.size(), 1, asked);
        given = reshape(contiguous(tensor), {tensor.size()});
        result = empty(given.shape(), tensor.dtype(), tensor.device());
        fetched = empty({share(0, rank).length() * (ranks - 1) * chunks}, tensor.dtype(),
                        tensor.device());
      },
      [&] {
        const auto bring = [&](int64_t chunk) {
          comm->exchange(others([&](int peer) { return part(given, share(chunk, peer)); }),
                         others([&](int peer) { return landing(chunk, peer); }),
                         current_stream(given.device()));
        };
        const auto work = [&](int64_t chunk) {
          const Tensor out = part(result, share(chunk, rank));
          if (out.size() == 0) return;
          std::vector<const void*> inputs;
          for (int from = 0; from < ranks; ++from) {
            inputs.push_back(from == rank ? part(given, share(chunk, rank)).data()
                                          : landing(chunk, from).data());
          }
          reduce_in_rank_order(inputs, out.data(), out.size(), out.dtype(), op, out.device());
        };
        const auto take = [&](int64_t chunk) {
          comm->exchange(others([&](int) { return part(result, share(chunk, rank)); }),
                         others([&](int peer) { return part(result, share(chunk, peer)); }),
                         current_stream(given.device()));
        };
        run_pipeline(given.device(), chunks, {bring, work, take}, overlap,
                     {given, result, fetched});
      });
  return reshape(result, tensor.shape());
}

}  // namespace cuop::dist
