// Patches gathered in tiles that stay in the cache, each followed by its matrix product:
// y [out channels, positions] = w [out channels, channels * kernel] @ patches.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/interrupt.h"
#include "cuop/ops/conv/conv_kernels.h"

namespace cuop::kernels {

namespace {

namespace blas = backend::blas;

/// Bytes of patches gathered at a time.
constexpr int64_t kPatchBytes = 512 * 1024;
/// Rows of patches multiplied at a time; more would leave too few positions in a tile.
constexpr int64_t kPatchRows = 1024;

/// Rounded up, for negative a too; b is positive.
int64_t divide_up(int64_t a, int64_t b) { return a > 0 ? (a - 1) / b + 1 : a / b; }

/// One kernel element of one channel at the positions [begin, end) of the flattened output.
template <class T>
void gather_row(const ConvSizes& s, const T* plane, int64_t tap, int64_t begin, int64_t end,
                T* to) {
  const int64_t kw = tap % s.kernel[2], kh = tap / s.kernel[2] % s.kernel[1];
  const int64_t kd = tap / (s.kernel[2] * s.kernel[1]);
  const int64_t shift = kw * s.dilation[2] - s.padding[2];
  // Columns that meet the image: 0 <= column * stride + shift < width.
  const int64_t first = std::clamp<int64_t>(divide_up(-shift, s.stride[2]), 0, s.out[2]);
  const int64_t last =
      s.in[2] > shift
          ? std::clamp<int64_t>(divide_up(s.in[2] - shift, s.stride[2]), first, s.out[2])
          : first;
  for (int64_t p = begin; p < end;) {
    const int64_t row = p / s.out[2], column = p % s.out[2];
    const int64_t count = std::min(end - p, s.out[2] - column);
    const int64_t id = row / s.out[1] * s.stride[0] - s.padding[0] + kd * s.dilation[0];
    const int64_t ih = row % s.out[1] * s.stride[1] - s.padding[1] + kh * s.dilation[1];
    const bool is_outside = id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1];
    const int64_t from = is_outside ? column + count : std::clamp(first, column, column + count);
    const int64_t until = is_outside ? from : std::clamp(last, from, column + count);
    std::fill(to, to + (from - column), T(0));
    if (until > from) {
      const T* const source = plane + (id * s.in[1] + ih) * s.in[2] + from * s.stride[2] + shift;
      T* const target = to + (from - column);
      if (s.stride[2] == 1) {
        std::memcpy(target, source, static_cast<size_t>(until - from) * sizeof(T));
      } else {
        for (int64_t i = 0; i < until - from; ++i) target[i] = source[i * s.stride[2]];
      }
    }
    std::fill(to + (until - column), to + count, T(0));
    to += count;
    p += count;
  }
}

bool is_pointwise(const ConvSizes& s) {
  return ConvSizes::volume(s.kernel) == 1 && s.stride == ConvSizes::Axes{1, 1, 1} &&
         s.padding == ConvSizes::Axes{0, 0, 0};
}

template <class T>
class GemmConv {
 public:
  explicit GemmConv(const Conv& conv)
      : e_(conv),
        taps_(ConvSizes::volume(e_.s.kernel)),
        image_(ConvSizes::volume(e_.s.in)),
        positions_(ConvSizes::volume(e_.s.out)),
        is_pointwise_(is_pointwise(e_.s)) {
    // Whole channels a block, so that a block's rows of w lie together.
    block_channels_ =
        std::clamp<int64_t>(kPatchRows / taps_, 1, std::max<int64_t>(1, e_.s.group_in()));
    const int64_t fitting = kPatchBytes / (block_channels_ * taps_ * int64_t{sizeof(T)});
    const int64_t tile = std::clamp<int64_t>(fitting / 16 * 16, 48, 4096);
    // Equal tiles, and at least one for each thread.
    const int64_t jobs = e_.s.batch * e_.s.groups;
    const int64_t wanted = divide_up(backend::thread_count(), jobs);
    const int64_t tiles =
        std::max(divide_up(positions_, tile), std::min(wanted, divide_up(positions_, 64)));
    tile_ = divide_up(divide_up(positions_, tiles), 16) * 16;
    tiles_ = divide_up(positions_, tile_);
  }

  void run() const {
    const blas::SerialScope scope;
    const int64_t jobs = e_.s.batch * e_.s.groups * tiles_;
    backend::parallel_for(jobs, 1, [&](int64_t begin, int64_t end) {
      std::unique_ptr<T[]> patches;  // not value-initialised: gather_row writes all that is read
      if (!is_pointwise_)
        patches.reset(new T[static_cast<size_t>(block_channels_ * taps_ * tile_)]);
      for (int64_t i = begin; i < end; ++i) one_tile(i, patches.get());
    });
  }

 private:
  void one_tile(int64_t index, T* patches) const {
    const int64_t first = index % tiles_ * tile_, count = std::min(tile_, positions_ - first);
    const int64_t image = index / tiles_;  // batch and group
    const int64_t group = image % e_.s.groups, channel = group * e_.s.group_out();
    const T* const x = e_.x + image * e_.s.group_in() * image_;
    T* const y = e_.y + image * e_.s.group_out() * positions_ + first;
    blas::GemmCall<T> call;
    call.m = e_.s.group_out();
    call.n = count;
    call.lda = std::max<int64_t>(1, e_.s.group_in() * taps_);
    call.c = y;
    call.ldc = positions_;
    call.beta = T(0);
    if (e_.bias != nullptr || e_.s.group_in() == 0) {
      for (int64_t o = 0; o < call.m; ++o) {
        const T start = e_.bias != nullptr ? e_.bias[channel + o] : T(0);
        std::fill_n(y + o * positions_, count, start);
      }
      call.beta = T(1);
    }
    for (int64_t c = 0; c < e_.s.group_in(); c += block_channels_) {
      check_interrupt();  // a tile of many channels is long
      const int64_t channels = std::min(block_channels_, e_.s.group_in() - c);
      call.k = channels * taps_;
      call.a = e_.w + channel * call.lda + c * taps_;
      if (is_pointwise_) {
        call.b = x + c * image_ + first;
        call.ldb = image_;
      } else {
        for (int64_t row = 0; row < call.k; ++row) {
          gather_row(e_.s, x + (c + row / taps_) * image_, row % taps_, first, first + count,
                     patches + row * count);
        }
        call.b = patches;
        call.ldb = count;
      }
      blas::gemm_serial(call);
      call.beta = T(1);
    }
  }

  ConvElements<T> e_;
  int64_t taps_, image_, positions_;
  int64_t block_channels_ = 1, tile_ = 1, tiles_ = 1;
  bool is_pointwise_;
};

}  // namespace

void conv_gemm_cpu(const Conv& conv) {
  visit_dtype(FloatComplexTypes{}, conv.y.dtype(), "conv",
              [&]<class T>(TypeTag<T>) { GemmConv<T>(conv).run(); });
}

}  // namespace cuop::kernels
