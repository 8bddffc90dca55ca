#include "cuop/executor/chirp_line.h"

#include <algorithm>
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/chirp_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
namespace {

using dist::FftKind;

constexpr int64_t kShortest = 5;

/// The columns of the begun row that are there, of these: one of them at least, as no part is
/// empty.
Interval begun(Interval columns, int64_t rest) {
  const int64_t low = std::min(columns.low, std::max<int64_t>(rest, 1) - 1);
  return {low, std::max(low + 1, std::min(columns.high, rest))};
}

TileOperation lines_along(int64_t axis, FftKind kind, FftNorm norm) {
  TileOperation made = fft_tiles({kind, {}, axis, norm});
  made.over_ranks = {};
  return made;
}

}  // namespace

ChirpLine::ChirpLine(const dist::FftBatch& batch, const Header& x, const Header& line, int64_t n)
    : batch_(batch), x_(x), line_(line), sizes_(batch.kind, n, x.shape[0]) {
  given_ = std::max(sizes_.used, sizes_.matrix.n2);  // zeros behind a line of less than a row
}

std::optional<ChirpLine> ChirpLine::of(const dist::FftBatch& batch, const Header& x,
                                       const Header& line) {
  if (x.shape.ndim() != 1) return std::nullopt;
  const int64_t n = batch.kind == FftKind::kIrfft ? line.shape[0] : batch.n.value_or(x.shape[0]);
  if (n < kShortest) return std::nullopt;
  return ChirpLine(batch, x, line, n);
}

Header ChirpLine::matrix() const {
  return {{sizes_.matrix.n1, sizes_.matrix.n2}, complex_dtype(real_dtype(line_.dtype))};
}

LineStep ChirpLine::filter() const {
  TileOperation made = lines_along(0, FftKind::kFft, FftNorm::kBackward);
  made.text += cat(", of a chirp of ", sizes_.n);
  made.names = {"one"};
  made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
    const Header whole = matrix();
    Tiling tiling = plain({whole});
    tiling.names = {"one"};
    tiling.inputs = inputs;
    tiling.needed = [](size_t, const Box&, Interval) { return whole_box({1, 1}); };
    tiling.scratch = [lines = tiling.scratch, n = sizes_.n, item = itemsize(whole.dtype)](
                         const Box& output, Interval step, const WorkFigures& on) {
      return lines(output, step, on) + output.size() * item + spectral::chirp_bytes(n);
    };
    tiling.make = [*this, make = tiling.make, dtype = whole.dtype](
                      const std::vector<Part>& parts, const Box& output, Interval step) {
      const Device device = parts[0].device;
      const Tensor block = empty(output.shape(), dtype, device);
      copy_into(block, broadcast_to(parts[0].local, output.shape()));
      spectral::multiply_by_chirp(block, dist::chirp_of_filter(sizes_, output.low[1]));
      return make({{block, output, device}}, output, step);
    };
    return tiling;
  };
  return {"filter", with_twiddles(made, sizes_.m(), false), {{{1, 1}, matrix().dtype}}};
}

LineStep ChirpLine::columns() const {
  TileOperation made = lines_along(0, FftKind::kFft, FftNorm::kBackward);
  made.text += cat(", of ", given_, " elements times a chirp of ", sizes_.n);
  made.names = {"rows", "end of the line"};
  made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
    const Header whole = matrix();
    Tiling tiling = plain({whole});
    tiling.names = {"rows", "end of the line"};
    tiling.inputs = inputs;
    tiling.needed = [rows = rows(), rest = rest()](size_t i, const Box& output, Interval) {
      const Interval columns = output.interval(1);
      Box box = whole_box(i == 0 ? Shape{rows, 1} : Shape{1});
      box.set_interval(i == 0 ? 1 : 0, i == 0 ? columns : begun(columns, rest));
      return box;
    };
    tiling.scratch = [lines = tiling.scratch, n = sizes_.n, item = itemsize(whole.dtype)](
                         const Box& output, Interval step, const WorkFigures& on) {
      return lines(output, step, on) + output.size() * item + spectral::chirp_bytes(n);
    };
    tiling.make = [*this, make = tiling.make, dtype = whole.dtype](
                      const std::vector<Part>& parts, const Box& output, Interval step) {
      const Interval columns = output.interval(1);
      const Device device = parts[0].device;
      const Tensor block = zeros(output.shape(), dtype, device);
      copy_into(slice(block, 0, 0, rows()), parts[0].local);
      const int64_t count = std::min(columns.high, rest()) - columns.low;
      if (count > 0) copy_into(slice(select(block, 0, rows()), 0, 0, count), parts[1].local);
      spectral::multiply_by_chirp(block, dist::chirp_of_input(sizes_, columns.low));
      return make({{block, output, device}}, output, step);
    };
    return tiling;
  };
  return {"columns",
          with_twiddles(made, sizes_.m(), false),
          {{{rows(), sizes_.matrix.n2}, x_.dtype}, {{std::max<int64_t>(rest(), 1)}, x_.dtype}}};
}

LineStep ChirpLine::products() const {
  TileOperation made = lines_along(1, FftKind::kFft, FftNorm::kBackward);
  made.text += ", times those of a filter, and back";
  made.names = {"columns", "filter"};
  made.describe = [plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain({inputs[0]});
    tiling.names = {"columns", "filter"};
    tiling.inputs = inputs;
    tiling.flops *= 3;
    tiling.scratch = [lines = tiling.scratch, item = itemsize(inputs[0].dtype)](
                         const Box& output, Interval step, const WorkFigures& on) {
      return lines(output, step, on) + output.size() * item;
    };
    tiling.make = [dtype = inputs[0].dtype](const std::vector<Part>& parts, const Box& output,
                                            Interval) {
      const Tensor rows = empty(output.shape(), dtype, parts[0].device);
      const Tensor filter = empty(output.shape(), dtype, parts[0].device);
      cuop::fft(parts[0].local, {}, 1, FftNorm::kBackward, &rows);
      cuop::fft(parts[1].local, {}, 1, FftNorm::kBackward, &filter);
      multiply(rows, filter, &rows);
      cuop::ifft(rows, {}, 1, FftNorm::kForward, &filter);
      return filter;
    };
    return tiling;
  };
  return {"products", with_twiddles(made, sizes_.m(), true), {matrix(), matrix()}};
}

LineStep ChirpLine::result() const {
  TileOperation made = lines_along(0, FftKind::kIfft, FftNorm::kForward);
  made.text += cat(", times a chirp of ", sizes_.n, ", norm ", static_cast<int>(batch_.norm));
  made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.output = {{divide_up(sizes_.outputs, sizes_.matrix.n2), sizes_.matrix.n2}, line_.dtype};
    const auto whole = [n1 = sizes_.matrix.n1](Box box) {
      box.set_interval(0, {0, n1});
      return box;
    };
    tiling.scratch = [whole, lines = tiling.scratch, n = sizes_.n,
                      item = itemsize(inputs[0].dtype)](const Box& output, Interval step,
                                                        const WorkFigures& on) {
      const Box all = whole(output);
      return lines(all, step, on) + all.size() * item + spectral::chirp_bytes(n);
    };
    tiling.make = [*this, whole, make = tiling.make](const std::vector<Part>& parts,
                                                     const Box& output, Interval step) {
      const Tensor all = make(parts, whole(output), step);
      const Tensor wanted = slice(all, 0, 0, output.interval(0).high);
      spectral::multiply_by_chirp(wanted,
                                  dist::chirp_of_result(sizes_, output.low[1], batch_.norm));
      const Tensor result = empty(output.shape(), line_.dtype, parts[0].device);
      if (sizes_.is_from_half()) {
        real(wanted, &result);
      } else {
        copy_into(result, wanted);
      }
      return result;
    };
    tiling.place = {line_, [*this](const Tensor& line, const Box& box, const Tensor& tile) {
                      put(line, box, to_device(tile, kCpu));
                    }};
    return tiling;
  };
  return {"result", made, {matrix()}};
}

void ChirpLine::put(const Tensor& line, const Box& box, const Tensor& tile) const {
  const Interval columns = box.interval(1);
  const int64_t whole = sizes_.outputs / sizes_.matrix.n2, end = whole * sizes_.matrix.n2;
  const Tensor rows = reshape(slice(line, 0, 0, end), {whole, sizes_.matrix.n2});
  copy_into(slice(rows, 1, columns.low, columns.high), slice(tile, 0, 0, whole));
  const Interval last{columns.low, std::min(columns.high, sizes_.outputs - end)};
  if (last.high <= last.low) return;
  copy_into(slice(line, 0, end + last.low, end + last.high),
            slice(select(tile, 0, whole), 0, 0, last.high - last.low));
}

std::vector<Tensor> ChirpLine::filter_inputs(DType dtype) { return {ones({1, 1}, dtype)}; }

std::vector<Tensor> ChirpLine::column_inputs(const Tensor& x) const {
  const Tensor line = of_length(x, given_);
  const int64_t whole = rows() * sizes_.matrix.n2;
  // An element that nobody looks at where no row is begun.
  return {reshape(slice(line, 0, 0, whole), {rows(), sizes_.matrix.n2}),
          slice(line, 0, rest() > 0 ? whole : whole - 1, given_)};
}

}  // namespace cuop::executor
