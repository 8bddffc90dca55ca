#include <cmath>
#include <optional>

#include "cuop/core/divide_up.h"
#include "cuop/dist/algo/chirp_internal.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/passes.h"
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

class ChirpFollower {
 public:
  ChirpFollower(const Plan& plan, const FftProblem& problem, FftNorm norm, const DistTensor& x)
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

  /// x in whole rows, with zeros behind the lines' ends.
  DistTensor input_in_rows() const {
    const Tensor given = fetch(x_.comm(), part_of(x_), x_.sharding().owner_boxes(x_.shape()),
                               steps_.input_boxes(), x_.dtype());
    const Shape whole = steps_.input_shape();
    const Box box = steps_.in_rows().owner_box(whole, rank());
    const Tensor matrix = box.empty() ? empty(box.shape(), x_.dtype(), x_.device())
                                      : in_rows_of(whole[2], given, box.size() / steps_.lines());
    return DistTensor(x_.comm_ptr(), steps_.in_rows(), whole, x_.dtype(), matrix, x_.device());
  }

  /// [rows, lines, row] of lines of `padded` elements.
  Tensor in_rows_of(int64_t row, const Tensor& given, int64_t padded) const {
    const int64_t lines = steps_.lines(), length = given.shape(steps_.axis());
    Tensor line = reshape(move_axis(given, steps_.axis(), -1), {lines, length});
    if (padded > length) {
      const Tensor whole_rows = zeros({lines, padded}, x_.dtype(), x_.device());
      copy_into(slice(whole_rows, 1, 0, length), line);
      line = whole_rows;
    }
    return swap_axes(reshape(line, {lines, padded / row, row}), 0, 1);
  }

  void multiply_by_chirps(const Tensor& lines, const spectral::Chirp& chirp) const {
    for (int64_t i = 0; i < lines.shape(1); ++i) {
      spectral::multiply_by_chirp(select(lines, 1, i), chirp);
    }
  }

  void multiply_by_roots(const RankPass& pass, bool is_inverse) const {
    spectral::multiply_by_twiddles(
        pass.into, {sizes_.m(), 0, pass.box.low[0], 2, pass.box.low[2], is_inverse});
  }

  void columns(const Tensor& part, const RankPass& pass) const {
    const int64_t first = pass.box.low[2];
    const Tensor both = zeros(pass.box.shape(), pass.into.dtype(), part.device());
    const Tensor lines = slice(both, 1, 0, -1), filter = select(both, 1, -1);
    copy_into(slice(lines, 0, 0, part.shape(0)), part);
    multiply_by_chirps(lines, chirp_of_input(sizes_, first));
    copy_into(filter, broadcast_to(ones({1, 1}, filter.dtype(), filter.device()), filter.shape()));
    spectral::multiply_by_chirp(filter, chirp_of_filter(sizes_, first));
    cuop::fft(both, {}, 0, FftNorm::kBackward, &pass.into);
    multiply_by_roots(pass, false);
  }

  void products(const Tensor& part, const RankPass& pass) const {
    const Tensor both = cuop::fft(part, {}, 2);
    const Tensor made = multiply(slice(both, 1, 0, -1), slice(both, 1, -1, std::nullopt));
    cuop::ifft(made, {}, 2, FftNorm::kForward, &pass.into);
    multiply_by_roots(pass, true);
  }

  void result(const Tensor& part, const RankPass& pass) const {
    const Tensor all = cuop::ifft(part, {}, 0, FftNorm::kForward);
    const Tensor wanted = slice(all, 0, 0, pass.box.high[0]);
    multiply_by_chirps(wanted, chirp_of_result(sizes_, pass.box.low[2], norm_));
    if (is_complex(pass.into.dtype())) {
      copy_into(pass.into, wanted);
    } else {
      real(wanted, &pass.into);
    }
  }

  DistTensor result_from(const DistTensor& matrix) const {
    const Placement& made = plan_.outputs[0];
    const Box box = made.sharding.owner_box(made.shape, rank());
    const int64_t length = box.empty() ? 0 : box.interval(steps_.axis()).length();
    const int64_t row = sizes_.matrix.n2, rows = divide_up(length, row);
    const Tensor here = empty({rows, steps_.lines(), row}, made.dtype, matrix.device());
    const std::vector<Need> needs = steps_.needs_for_output(made.sharding);
    const Part wanted{here, needs[static_cast<size_t>(rank())].box, matrix.device()};
    exchange(matrix.comm(),
             plan_moves(rank(), matrix.sharding().owner_boxes(matrix.shape()), needs),
             part_of(matrix), [&](const Piece& piece) { return view_of(wanted, piece.box); });
    const auto part = [&] {
      if (box.empty()) return empty(box.shape(), made.dtype, matrix.device());
      const Tensor lines = reshape(swap_axes(here, 0, 1), {steps_.lines(), rows * row});
      return as_result(slice(lines, 1, 0, length), made.shape);
    };
    return DistTensor(matrix.comm_ptr(), made.sharding, made.shape, made.dtype, part(),
                      matrix.device());
  }

  /// [lines, elements] with the axis where it belongs.
  Tensor as_result(const Tensor& lines, const Shape& whole) const {
    Shape shape;
    for (int dim = 0; dim < whole.ndim(); ++dim) {
      if (dim != steps_.axis()) shape.push_back(whole[dim]);
    }
    shape.push_back(lines.shape(1));
    return move_axis(reshape(lines, shape), -1, steps_.axis());
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
  return ChirpFollower(plan, problem, norm, x).run();
}

}  // namespace cuop::dist
