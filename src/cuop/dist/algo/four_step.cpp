#include "cuop/core/divide_up.h"
#include "cuop/dist/algo/four_step_internal.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/passes.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

class FourStepFollower {
 public:
  FourStepFollower(const Plan& plan, const FftProblem& problem, FftNorm norm, const DistTensor& x)
      : plan_(plan),
        steps_(problem, {plan.setting("n1"), plan.setting("n2")}),
        norm_(norm),
        x_(x),
        axis_(steps_.axis()) {}

  DistTensor run() const {
    DistTensor here = input_in_rows();
    if (steps_.is_to_real()) here = spectrum_from_half(here);
    return result_from(follow_passes(plan_, here, [this](const Tensor& part, const RankPass& pass) {
      transform(part, pass);
      if (pass.number == 0) multiply_by_roots(pass);
    }));
  }

 private:
  int rank() const { return x_.comm().rank(); }
  Tensor turned(const Tensor& matrix) const { return swap_axes(matrix, axis_, axis_ + 1); }
  /// Both axes backwards: element [i, j] is that of [-1 - i, -1 - j].
  Tensor mirrored(const Tensor& matrix) const { return flip(matrix, Dims{axis_, axis_ + 1}); }

  /// x as a matrix of whole rows, with zeros where it is too short.
  DistTensor input_in_rows() const {
    const std::vector<Box> boxes = steps_.input_boxes();
    const Tensor given =
        fetch(x_.comm(), part_of(x_), x_.sharding().owner_boxes(x_.shape()), boxes, x_.dtype());
    const Sharding at = steps_.input_sharding();
    const Shape whole = steps_.input_shape();
    const Box box = at.owner_box(whole, rank());
    const int64_t row = whole[axis_ + 1], length = row * box.interval(axis_).length();
    Tensor line = given;
    if (!box.empty() && length > given.shape(axis_)) {
      Shape shape = given.shape();
      shape[axis_] = length;
      line = zeros(shape, x_.dtype(), x_.device());
      copy_into(slice(line, axis_, 0, given.shape(axis_)), given);
    }
    return DistTensor(x_.comm_ptr(), at, whole, x_.dtype(), reshape(line, box.shape()),
                      x_.device());
  }

  /// Rows of the spectrum from rows of its first half, which lie along the spectrum's columns:
  /// [k1, k2] is X[k1 + n1 k2], behind the half the conjugate of [n1 - k1, n2 - 1 - k2].
  DistTensor spectrum_from_half(const DistTensor& half) const {
    const Shape whole = steps_.spectrum_shape();
    const Sharding at = steps_.in_rows();
    const Box box = at.owner_box(whole, rank());
    const Tensor rows = empty(box.shape(), half.dtype(), half.device());
    const int64_t n2 = steps_.n2(), direct = n2 / 2 + 1, first_mirrored = (n2 + 1) / 2;
    const Tensor conjugates =
        exchange_pairs(half, steps_.needs_for_spectrum(), slice(turned(rows), axis_, 0, direct));
    if (!box.empty()) {
      const int64_t zero = box.low[axis_] == 0 ? 1 : 0;  // rows that mirror themselves
      const Tensor other =
          slice(slice(rows, axis_, zero, std::nullopt), axis_ + 1, first_mirrored, n2);
      if (other.size() > 0) conj(mirrored(turned(conjugates)), &other);
      const Tensor first = slice(rows, axis_, 0, zero);
      const Tensor behind = slice(first, axis_ + 1, direct, n2);
      if (behind.size() > 0) {
        const Tensor ahead = slice(first, axis_ + 1, 1, first_mirrored);
        copy_into(behind, conj(flip(ahead, Dims{axis_ + 1})));
      }
    }
    return DistTensor(half.comm_ptr(), at, whole, half.dtype(), rows, half.device());
  }

  void transform(const Tensor& part, const RankPass& pass) const {
    const int along = pass.axes.front();
    const int64_t length = along == axis_ ? steps_.n1() : steps_.n2();
    const bool is_halved = along == axis_ && steps_.is_real();
    const bool is_forward = steps_.kind() == FftKind::kFft || steps_.kind() == FftKind::kRfft;
    const auto run =
        is_forward ? (is_halved ? cuop::rfft : cuop::fft) : (is_halved ? cuop::irfft : cuop::ifft);
    run(part, length, along, norm_, &pass.into);
  }

  void multiply_by_roots(const RankPass& pass) const {
    const bool is_inverse = steps_.kind() == FftKind::kIfft || steps_.kind() == FftKind::kIrfft;
    spectral::multiply_by_twiddles(
        pass.into, {steps_.n1() * steps_.n2(), axis_, pass.box.low[axis_], axis_ + 1,
                    pass.box.low[axis_ + 1], is_inverse});
  }

  /// The result in whole rows, which lie along the columns of a spectrum.
  DistTensor result_from(const DistTensor& matrix) const {
    const Placement& made = plan_.outputs[0];
    const Box box = made.sharding.owner_box(made.shape, rank());
    const int64_t row = steps_.output_row(), length = box.interval(axis_).length();
    Shape shape = box.shape();
    shape[axis_] = round_up(length, row);
    const Tensor line = empty(shape, made.dtype, matrix.device());
    const Tensor rows = unflattened(line, row);
    const std::vector<Need> needs = steps_.needs_for_output(made.sharding);
    if (steps_.is_to_real()) {
      exchange_pairs(matrix, needs, rows);
    } else {
      const Tensor columns = turned(rows);
      const Tensor conjugates =
          exchange_pairs(matrix, needs, slice(columns, axis_, 0, steps_.kept()));
      const Tensor other = slice(columns, axis_, steps_.kept(), row);
      if (other.size() > 0) conj(mirrored(conjugates), &other);
    }
    return DistTensor(matrix.comm_ptr(), made.sharding, made.shape, made.dtype,
                      slice(line, axis_, 0, length), matrix.device());
  }

  /// The axis as rows of that length.
  Tensor unflattened(const Tensor& line, int64_t row) const {
    Shape shape;
    for (int i = 0; i < line.ndim(); ++i) {
      shape.push_back(i == axis_ ? line.shape(i) / row : line.shape(i));
      if (i == axis_) shape.push_back(row);
    }
    return reshape(line, shape);
  }

  /// Copies the elements that this rank needs of the matrix into `direct`, and returns those of
  /// which it needs the conjugates.
  Tensor exchange_pairs(const DistTensor& matrix, const std::vector<Need>& needs,
                        const Tensor& direct) const {
    const Device device = matrix.device();
    const Box& other = needs[FourStep::mirrored(rank())].box;
    const Part wanted{direct, needs[FourStep::direct(rank())].box, device};
    const Part pairs{empty(other.shape(), matrix.dtype(), device), other, device};
    const std::vector<Box> owners = matrix.sharding().owner_boxes(matrix.shape());
    exchange(matrix.comm(), plan_moves(rank(), owners, needs), part_of(matrix),
             [&](const Piece& piece) {
               const bool is_direct = static_cast<size_t>(piece.need) == FourStep::direct(rank());
               return view_of(is_direct ? wanted : pairs, piece.box);
             });
    return pairs.local;
  }

  const Plan& plan_;
  FourStep steps_;
  FftNorm norm_;
  const DistTensor& x_;
  int axis_;
};

}  // namespace

DistTensor follow_four_step(const Plan& plan, const FftProblem& problem, FftNorm norm,
                            const DistTensor& x) {
  return FourStepFollower(plan, problem, norm, x).run();
}

}  // namespace cuop::dist
