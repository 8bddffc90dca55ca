#include <algorithm>
#include <cmath>
#include <memory>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/copy_bytes.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/word.h"
#include "cuop/memory/current.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_ends_internal.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/fft/tile_copy_internal.h"
#include "cuop/ops/strided.h"

namespace cuop::spectral {

using backend::TransformKind;

namespace {

// A tile of lines is worked on in scratch that stays in the second-level cache.
constexpr int64_t kTileBytes = 256 << 10;
constexpr int64_t kMaxTileLines = 64;
constexpr int64_t kFewestAcross = 8;  // lines of a tile that lie across memory
constexpr int64_t kElementsPerTask = 16 << 10;
// The library goes through a line in strides, each of which waits for memory where the arrays are
// larger than this: there lines are brought to scratch and taken away in one go.
constexpr int64_t kCachedBytes = 4 << 20;

/// Memory of the pool: fresh pages of the system's cost more than the work on them. Not counted in
/// a limit of tensors' memory.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t bytes) {
    const memory::ResourceScope uncounted(memory::whole_resource(kCpu));
    storage_ = memory::allocate_storage(bytes, kCpu);
  }
  /// Null where there is none.
  std::byte* get() const {
    return storage_ == nullptr ? nullptr : static_cast<std::byte*>(storage_->data());
  }

 private:
  std::shared_ptr<Storage> storage_;
};

/// The pass with everything that is the same for all of its tiles worked out.
template <class Real>
class TileRunner {
 public:
  explicit TileRunner(const LinePass& pass)
      : pass_(pass),
        ends_(pass_),
        transform_(line_transform(pass.kind, pass.is_double, pass.n)),
        nest_(make_loop_nest<2>(pass.others, {&pass.in_strides, &pass.out_strides})),
        inner_(nest_.inner().size),
        in_step_(nest_.inner().strides[0]),
        out_step_(nest_.inner().strides[1]) {
    const auto bytes = [](bool is_real) {
      return (is_real ? 1 : 2) * static_cast<int64_t>(sizeof(Real));
    };
    in_bytes_ = bytes(takes_real(pass.kind, pass.input));
    out_bytes_ = bytes(gives_real(pass.kind, pass.output));
    // What the transform itself takes, completed, and gives, before parts of it are dropped.
    completed_bytes_ = bytes(pass.kind == TransformKind::kRealForward);
    spectrum_bytes_ = bytes(pass.kind == TransformKind::kRealBackward);
    batch_ = transform_->batch();
    const int64_t longest = std::max(pass.n, pass.out_count) + 2;
    if (batch_ > 1) {
      in_distance_ = transform_->in_distance();
      out_distance_ = transform_->out_distance();
    } else {
      // An odd number of cache lines keeps neighbouring lines out of each other's cache sets.
      const int64_t step = kCacheLine / static_cast<int64_t>(sizeof(Real));
      in_distance_ = out_distance_ = (divide_up(longest, step) | 1) * step;
    }
    const int64_t line_bytes = longest * 2 * static_cast<int64_t>(sizeof(Real));
    // Across lines at least a cache line's worth is read at a time.
    const int64_t fewest = pass.in_stride == 1 && pass.out_stride == 1 ? 1 : kFewestAcross;
    const int64_t fitting = std::clamp(kTileBytes / line_bytes, fewest, kMaxTileLines);
    tile_lines_ = std::max(batch_, std::min(fitting, inner_) / batch_ * batch_);
    is_mirroring_short_ = batch_ > 1 && pass.output != LineOutput::kPlain;
    const int64_t all_bytes =
        nest_.size() * (pass.in_count * in_bytes_ + pass.out_count * out_bytes_);
    const bool may_be_direct =
        transform_->is_in_order() || all_bytes <= kCachedBytes || line_bytes > kTileBytes;
    reads_directly_ = may_be_direct && pass.input == LineInput::kPlain &&
                      pass.kind != TransformKind::kRealBackward && pass.in != pass.out &&
                      pass.in_count >= input_length(pass.kind, pass.n) &&
                      is_direct(pass.in, pass.in_stride, 0, in_bytes_, transform_->in_distance());
    writes_directly_ =
        may_be_direct && pass.output == LineOutput::kPlain &&
        is_direct(pass.out, pass.out_stride, 1, out_bytes_, transform_->out_distance());
  }

  int64_t tiles() const { return nest_.outer_size() * tiles_per_row(); }
  int64_t elements_per_tile() const { return tile_lines_ * pass_.n; }

  void run(int64_t begin, int64_t end) const {
    const Buffers buffers = make_buffers();
    for (int64_t tile = begin; tile < end; ++tile) {
      const auto [row, tile_of_row] = divided(tile, tiles_per_row());
      const auto offsets = nest_.row_offsets(row);
      const int64_t first = tile_of_row * tile_lines_;
      const int64_t in_offset = offsets[0] + first * in_step_;
      const int64_t out_offset = offsets[1] + first * out_step_;
      run_tile(buffers, std::min(tile_lines_, inner_ - first),
               static_cast<const std::byte*>(pass_.in) + in_offset * in_bytes_,
               static_cast<std::byte*>(pass_.out) + out_offset * out_bytes_);
    }
  }

 private:
  struct Buffers {
    Scratch in, out, wide, work, spare;
  };

  int64_t tiles_per_row() const { return divide_up(inner_, tile_lines_); }

  /// Whether the transform may work on an array itself: contiguous aligned lines.
  bool is_direct(const void* base, int64_t stride, size_t side, int64_t bytes,
                 int64_t distance) const {
    const int64_t wanted = transform_->is_in_order() ? sizeof(Real) : backend::kFftAlignment;
    const auto is_aligned = [wanted](int64_t place) { return place % wanted == 0; };
    if (stride != 1 || !is_aligned(reinterpret_cast<intptr_t>(base))) return false;
    for (int i = 0; i < nest_.count; ++i) {
      if (!is_aligned(nest_.axes[static_cast<size_t>(i)].strides[side] * bytes)) return false;
    }
    return batch_ == 1 || (nest_.inner().strides[side] == distance && inner_ % batch_ == 0);
  }

  Buffers make_buffers() const {
    const int64_t spectrum = static_cast<int64_t>(sizeof(Real)) * 2;
    Buffers buffers;
    if (!reads_directly_) buffers.in = Scratch(tile_lines_ * in_distance_ * spectrum);
    if (!writes_directly_) buffers.out = Scratch(tile_lines_ * out_distance_ * spectrum);
    if (is_mirroring_short_) buffers.wide = Scratch((pass_.n + 2) * tile_lines_ * spectrum);
    buffers.work = Scratch(std::max<int64_t>(kCacheLine, transform_->work_bytes()));
    const int64_t spare = ends_.spare_count() * static_cast<int64_t>(sizeof(Real));
    if (spare > 0) buffers.spare = Scratch(spare);
    return buffers;
  }

  void run_tile(const Buffers& buffers, int64_t lines, const std::byte* in, std::byte* out) const {
    const std::byte* source = in;
    int64_t source_step = in_step_ * in_bytes_;
    if (!reads_directly_) {
      load(buffers, lines, in);
      source = buffers.in.get();
      source_step = in_distance_ * completed_bytes_;
    }
    std::byte* target = writes_directly_ ? out : buffers.out.get();
    const int64_t target_step =
        (writes_directly_ ? out_step_ * out_bytes_ : out_distance_ * spectrum_bytes_);
    for (int64_t l = 0; l < lines; l += batch_) {
      // The library does not write its input except for kRealBackward, which never reads directly.
      transform_->execute(const_cast<std::byte*>(source) + l * source_step,
                          target + l * target_step, buffers.work.get());
    }
    if (writes_directly_) {
      for (int64_t l = 0; l < lines; ++l)
        scale(target + l * target_step, pass_.out_count, out_bytes_);
      return;
    }
    finish(buffers, lines, target, target_step, out);
  }

  void load(const Buffers& buffers, int64_t lines, const std::byte* in) const {
    const bool is_cut = pass_.input == LineInput::kPlain;
    const int64_t given =
        is_cut ? std::min(pass_.in_count, input_length(pass_.kind, pass_.n)) : pass_.in_count;
    std::byte* const scratch = buffers.in.get();
    with_word(in_bytes_, [&](auto word) {
      using Word = decltype(word);
      copy_tile(lines, given, reinterpret_cast<const Word*>(in), {in_step_, pass_.in_stride},
                reinterpret_cast<Word*>(scratch), {in_distance_ * (completed_bytes_ / in_bytes_)});
    });
    const auto real = static_cast<int64_t>(sizeof(Real));
    const int64_t distance = in_distance_ * (completed_bytes_ / real);
    auto* const first = reinterpret_cast<Real*>(scratch);
    for (int64_t l = 0; l < lines; ++l) {
      ends_.begin(first + l * distance, given, in_bytes_ / real, spare(buffers));
    }
    // A short batch is always done whole; what it lacks must at least be numbers.
    const int64_t whole = round_up(lines, batch_);
    std::fill(first + lines * distance, first + whole * distance, Real{0});
  }

  static Real* spare(const Buffers& buffers) {
    return reinterpret_cast<Real*>(buffers.spare.get());
  }

  void finish(const Buffers& buffers, int64_t lines, std::byte* spectra, int64_t step,
              std::byte* out) const {
    std::byte* from = spectra;
    int64_t from_step = step;
    if (is_mirroring_short_) {  // spectra lie too close for the mirrored halves
      from = buffers.wide.get();
      from_step = (pass_.n + 2) * 2 * static_cast<int64_t>(sizeof(Real));
      const int64_t bytes = output_length(pass_.kind, pass_.n) * spectrum_bytes_;
      for (int64_t l = 0; l < lines; ++l) {
        copy_bytes(from + l * from_step, spectra + l * step, bytes);
      }
    }
    for (int64_t l = 0; l < lines; ++l) {
      ends_.end(reinterpret_cast<Real*>(from + l * from_step), spare(buffers));
      scale(from + l * from_step, pass_.out_count, out_bytes_);
    }
    with_word(out_bytes_, [&](auto word) {
      using Word = decltype(word);
      copy_tile(lines, pass_.out_count, reinterpret_cast<const Word*>(from),
                {from_step / out_bytes_}, reinterpret_cast<Word*>(out),
                {out_step_, pass_.out_stride});
    });
  }

  void scale(std::byte* line, int64_t count, int64_t element_bytes) const {
    if (pass_.scale == 1.0) return;
    auto* const values = reinterpret_cast<Real*>(line);
    const auto factor = static_cast<Real>(pass_.scale);
    const int64_t reals = count * element_bytes / static_cast<int64_t>(sizeof(Real));
    for (int64_t i = 0; i < reals; ++i) values[i] *= factor;
  }

  LinePass pass_;
  LineEnds<Real> ends_;  // of pass_
  std::shared_ptr<const LineTransform> transform_;
  LoopNest<2> nest_;  // the other axes: input, output
  int64_t inner_;
  int64_t in_step_;
  int64_t out_step_;
  int64_t in_bytes_ = 0;
  int64_t out_bytes_ = 0;
  int64_t completed_bytes_ = 0;
  int64_t spectrum_bytes_ = 0;
  int64_t batch_ = 1;
  int64_t in_distance_ = 0;
  int64_t out_distance_ = 0;
  int64_t tile_lines_ = 1;
  bool is_mirroring_short_ = false;
  bool reads_directly_ = false;
  bool writes_directly_ = false;
};

/// Whether so much of the pass has to be done in one piece, a tile or the plan of a line, that the
/// user would wait for it: some 0.05 s.
bool is_long(const LinePass& pass) {
  constexpr double kShort = 2e7;  // elements, times the logarithm of the length
  const int64_t side_by_side = pass.in_stride == 1 && pass.out_stride == 1 ? 1 : kFewestAcross;
  const auto lines = static_cast<double>(std::min(element_count(pass.others), side_by_side));
  const auto n = static_cast<double>(pass.n);
  return lines * n * std::log2(n) > kShort;
}

template <class Real>
void run(const LinePass& pass) {
  const TileRunner<Real> runner(pass);
  const int64_t grain = kElementsPerTask / runner.elements_per_tile();
  backend::parallel_for(runner.tiles(), grain,
                        [&](int64_t begin, int64_t end) { runner.run(begin, end); });
}

}  // namespace

void run_lines_cpu(const LinePass& pass) {
  if (element_count(pass.others) == 0) return;
  backend::run_apart_if(is_long(pass), pass.is_double ? &run<double> : &run<float>, pass);
}

}  // namespace cuop::spectral
