#include "cuop/executor/line_parts.h"

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {

TileOperation with_twiddles(TileOperation made, int64_t n, bool is_inverse) {
  made.text += ", twiddled";
  made.describe = [plain = made.describe, n, is_inverse](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.scratch = [lines = tiling.scratch, n](const Box& output, Interval step,
                                                 const WorkFigures& on) {
      return lines(output, step, on) + spectral::twiddle_bytes(n);
    };
    tiling.make = [make = tiling.make, n, is_inverse](const std::vector<Part>& parts,
                                                      const Box& output, Interval step) {
      const Tensor lines = make(parts, output, step);
      spectral::multiply_by_twiddles(lines, {n, 0, output.low[0], 1, output.low[1], is_inverse});
      return lines;
    };
    return tiling;
  };
  return made;
}

Tensor of_length(const Tensor& x, int64_t n) {
  if (x.size() >= n) return slice(x, 0, 0, n);
  const Tensor line = zeros({n}, x.dtype());
  copy_into(slice(line, 0, 0, x.size()), to_device(x, kCpu));
  return line;
}

}  // namespace cuop::executor
