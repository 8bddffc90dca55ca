#include <cmath>

#include "cuop/core/divide_up.h"
#include "cuop/dist/algo/chirp_internal.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/passes.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

spectral::Chirp plain_chirp(const ChirpSizes& sizes, int64_t first) {
  spectral::Chirp made;
  made.n = sizes.n;
  made.first = first;
  made.row_step = sizes.matrix.n2;
  made.is_conjugate = sizes.is_inverse();
  return made;
}

double scale_of(const ChirpSizes& sizes, FftNorm norm) {
  const auto n = static_cast<double>(sizes.n);
  if (norm == FftNorm::kOrtho) return 1 / std::sqrt(n);
  return (norm == FftNorm::kBackward) == sizes.is_inverse() ? 1 / n : 1;
}

class Follower {
 public:
  Follower(const Plan& plan, const FftProblem& problem, FftNorm norm, const DistTensor& x)
      : plan_(plan), steps_(problem), sizes_(steps_.sizes()), norm_(norm), x_(x) {}

  DistTensor run() const {
    return result_from(
        follow_passes(plan_, input_in_rows(), [this](const Tensor& part, const RankPass& pass) {
          if (pass.number == 0) columns(part, pass);
          if (pass.number == 1) products(part, pass);
          if (pass.number == 2) result(part, pass);
        }));
  }

 private:
  int rank() const { return x_.comm().rank(); }

  /// x in whole rows, with zeros behind its end.
  DistTensor input_in_rows() const {
    const Tensor given = fetch(x_.comm(), part_of(x_), x_.sharding().owner_boxes(x_.shape()),
                               steps_.input_boxes(), x_.dtype());
    const Shape whole = steps_.input_shape();
    const Box box = steps_.in_rows().owner_box(whole, rank());
    Tensor line = given;
    if (!box.empty() && box.size() > given.size()) {
      line = zeros({box.size()}, x_.dtype(), x_.device());
      copy_into(slice(line, 0, 0, given.size()), given);
    }
    return DistTensor(x_.comm_ptr(), steps_.in_rows(), whole, x_.dtype(),
                      reshape(line, box.shape()), x_.device());
  }

  void multiply_by_roots(const RankPass& pass, bool is_inverse) const {
    spectral::multiply_by_twiddles(
        pass.into, {sizes_.m(), 0, pass.box.low[0], 2, pass.box.low[2], is_inverse});
  }

  void columns(const Tensor& part, const RankPass& pass) const {
    const int64_t first = pass.box.low[2];
    const Tensor both = zeros(pass.box.shape(), pass.into.dtype(), part.device());
    const Tensor line = select(both, 1, 0), filter = select(both, 1, 1);
    copy_into(slice(line, 0, 0, part.shape(0)), select(part, 1, 0));
    spectral::multiply_by_chirp(line, chirp_of_input(sizes_, first));
    copy_into(filter, broadcast_to(ones({1, 1}, filter.dtype(), filter.device()), filter.shape()));
    spectral::multiply_by_chirp(filter, chirp_of_filter(sizes_, first));
    cuop::fft(both, {}, 0, FftNorm::kBackward, &pass.into);
    multiply_by_roots(pass, false);
  }

  void products(const Tensor& part, const RankPass& pass) const {
    const Tensor both = cuop::fft(part, {}, 2);
    const Tensor into = select(pass.into, 1, 0);
    const Tensor made = multiply(select(both, 1, 0), select(both, 1, 1));
    cuop::ifft(made, {}, 1, FftNorm::kForward, &into);
    multiply_by_roots(pass, true);
  }

  void result(const Tensor& part, const RankPass& pass) const {
    const Tensor all = cuop::ifft(select(part, 1, 0), {}, 0, FftNorm::kForward);
    const Tensor wanted = slice(all, 0, 0, pass.box.high[0]), into = select(pass.into, 1, 0);
    spectral::multiply_by_chirp(wanted, chirp_of_result(sizes_, pass.box.low[2], norm_));
    if (is_complex(into.dtype())) {
      copy_into(into, wanted);
    } else {
      real(wanted, &into);
    }
  }

  DistTensor result_from(const DistTensor& matrix) const {
    const Placement& made = plan_.outputs[0];
    const int64_t length = made.sharding.owner_box(made.shape, rank()).interval(0).length();
    const int64_t row = sizes_.matrix.n2;
    const Tensor line = empty({round_up(length, row)}, made.dtype, matrix.device());
    const std::vector<Need> needs = steps_.needs_for_output(made.sharding);
    const Part wanted{reshape(line, {line.size() / row, 1, row}),
                      needs[static_cast<size_t>(rank())].box, matrix.device()};
    exchange(matrix.comm(),
             plan_moves(rank(), matrix.sharding().owner_boxes(matrix.shape()), needs),
             part_of(matrix), [&](const Piece& piece) { return view_of(wanted, piece.box); });
    return DistTensor(matrix.comm_ptr(), made.sharding, made.shape, made.dtype,
                      slice(line, 0, 0, length), matrix.device());
  }

  const Plan& plan_;
  ChirpSteps steps_;
  const ChirpSizes& sizes_;
  FftNorm norm_;
  const DistTensor& x_;
};

}  // namespace

spectral::Chirp chirp_of_input(const ChirpSizes& sizes, int64_t first) {
  spectral::Chirp made = plain_chirp(sizes, first);
  made.ends_are_real = sizes.is_from_half();
  made.end_scale = 0.5;
  return made;
}

spectral::Chirp chirp_of_filter(const ChirpSizes& sizes, int64_t first) {
  spectral::Chirp made = plain_chirp(sizes, first);
  made.is_conjugate = !made.is_conjugate;
  made.turn = sizes.outputs;
  made.length = sizes.m();
  made.scale = 1 / static_cast<double>(sizes.m());
  return made;
}

spectral::Chirp chirp_of_result(const ChirpSizes& sizes, int64_t first, FftNorm norm) {
  spectral::Chirp made = plain_chirp(sizes, first);
  made.scale = made.end_scale = (sizes.is_from_half() ? 2 : 1) * scale_of(sizes, norm);
  made.ends_become_real = sizes.kind == FftKind::kRfft;
  return made;
}

DistTensor follow_chirp(const Plan& plan, const FftProblem& problem, FftNorm norm,
                        const DistTensor& x) {
  return Follower(plan, problem, norm, x).run();
}

}  // namespace cuop::dist
