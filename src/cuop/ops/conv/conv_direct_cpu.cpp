// Convolution without gathering patches: a group's padded image is packed once so that, whatever
// the stride, every kernel element reads a run of neighbours. Packed column q of phase r holds
// padded column q * stride + r.
#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/create/create.h"

namespace cuop::kernels {

namespace {

constexpr const char* kWho = "conv";

using DirectTypes = Joined<IntegerTypes, FloatTypes>;

template <class T>
void call_kernel(const DirectCall<T>& call) {
  std::get<DirectKernel<T>>(isa::choose(
      []<class Level>(Level) -> const DirectKernels& { return direct_kernels<Level>(); }))(call);
}

template <class T>
class DirectConvRun {
 public:
  explicit DirectConvRun(const Conv& conv) : e_(conv) {
    for (size_t i = 0; i < 3; ++i) {
      padded_[i] = (e_.s.out[i] - 1) * e_.s.stride[i] + (e_.s.kernel[i] - 1) * e_.s.dilation[i] + 1;
    }
    phase_ = divide_up(padded_[2], e_.s.stride[2]);
    row_ = phase_ * e_.s.stride[2];
    channel_ = checked_multiply(checked_multiply(padded_[0], padded_[1], kWho), row_, kWho);
    // Columns of a row that are computed at a time, few enough to be short work.
    constexpr int64_t kShort = 1 << 22, kFewest = 64;
    const int64_t taps = std::max<int64_t>(1, e_.s.group_in() * ConvSizes::volume(e_.s.kernel));
    columns_ = std::max(kFewest, kShort / taps / kFewest * kFewest);
    pieces_ = divide_up(e_.s.out[2], columns_);
    packed_ = checked_add(checked_multiply(std::max<int64_t>(1, e_.s.group_in()), channel_, kWho),
                          kDirectSlack, kWho);
    for (int64_t c = 0; c < e_.s.group_in(); ++c) {
      for (int64_t kd = 0; kd < e_.s.kernel[0]; ++kd) {
        for (int64_t kh = 0; kh < e_.s.kernel[1]; ++kh) {
          for (int64_t kw = 0; kw < e_.s.kernel[2]; ++kw) {
            const int64_t column = kw * e_.s.dilation[2];
            offsets_.push_back(c * channel_ +
                               row_offset(kd * e_.s.dilation[0], kh * e_.s.dilation[1]) +
                               column % e_.s.stride[2] * phase_ + column / e_.s.stride[2]);
          }
        }
      }
    }
  }

  void run() const {
    const int64_t jobs = e_.s.batch * e_.s.groups;
    // Inside a parallel region the inner loops run serially in their caller.
    if (jobs >= backend::thread_count()) {
      backend::parallel_for(jobs, 1, [&](int64_t begin, int64_t end) { groups(begin, end); });
    } else {
      groups(0, jobs);
    }
  }

 private:
  int64_t row_offset(int64_t depth, int64_t height) const {
    return (depth * padded_[1] + height) * row_;
  }

  void groups(int64_t begin, int64_t end) const {
    // `pack` writes every element, the slack is written here.
    const Tensor room = empty({packed_}, dtype_of<T>);
    T* const packed = room.data<T>();
    std::fill_n(packed + packed_ - kDirectSlack, kDirectSlack, T(0));
    for (int64_t i = begin; i < end; ++i) {
      const T* const x = e_.x + i * e_.s.group_in() * ConvSizes::volume(e_.s.in);
      backend::parallel_for_each(e_.s.group_in(), 1, [&](int64_t c) {
        pack(x + c * ConvSizes::volume(e_.s.in), packed + c * channel_);
      });
      const int64_t blocks = divide_up(e_.s.group_out(), kDirectRows);
      backend::parallel_for_each(blocks * e_.s.out[0] * e_.s.out[1] * pieces_, pieces_ > 1 ? 1 : 8,
                                 [&](int64_t j) { compute(i, j, packed); });
    }
  }

  void pack(const T* image, T* to) const {
    for (int64_t d = 0; d < padded_[0]; ++d) {
      for (int64_t h = 0; h < padded_[1]; ++h) {
        const int64_t id = d - e_.s.padding[0], ih = h - e_.s.padding[1];
        const bool is_outside = id < 0 || id >= e_.s.in[0] || ih < 0 || ih >= e_.s.in[1];
        const T* const from = is_outside ? nullptr : image + (id * e_.s.in[1] + ih) * e_.s.in[2];
        for (int64_t r = 0; r < e_.s.stride[2]; ++r, to += phase_) {
          if (is_outside) {
            std::fill_n(to, phase_, T(0));
          } else {
            pack_phase(from, r, to);
          }
        }
      }
    }
  }

  void pack_phase(const T* row, int64_t r, T* to) const {
    const int64_t step = e_.s.stride[2], shift = r - e_.s.padding[2];
    const int64_t first = std::clamp<int64_t>((step - 1 - shift) / step, 0, phase_);
    const int64_t last = std::clamp<int64_t>(divide_up(e_.s.in[2] - shift, step), first, phase_);
    std::fill(to, to + first, T(0));
    for (int64_t q = first; q < last; ++q) to[q] = row[q * step + shift];
    std::fill(to + last, to + phase_, T(0));
  }

  /// A piece of one output row of up to kDirectRows channels; `index` counts pieces inside rows
  /// inside blocks of channels.
  void compute(int64_t image, int64_t index, const T* packed) const {
    const int64_t j = index / pieces_, column = index % pieces_ * columns_;
    const int64_t planes = e_.s.out[0] * e_.s.out[1];
    const int64_t od = j % planes / e_.s.out[1], oh = j % e_.s.out[1];
    const int64_t first = j / planes * kDirectRows;
    const int64_t filled = std::min<int64_t>(kDirectRows, e_.s.group_out() - first);
    const int64_t group = image % e_.s.groups;
    DirectCall<T> call{};
    call.taps = static_cast<int64_t>(offsets_.size());
    call.width = std::min(columns_, e_.s.out[2] - column);
    call.packed = packed + row_offset(od * e_.s.stride[0], oh * e_.s.stride[1]) + column;
    call.offsets = offsets_.data();
    call.rows = filled == kDirectRows ? kDirectRows : 1;
    for (int64_t o = 0; o < filled; ++o) {
      const int64_t channel = group * e_.s.group_out() + first + o;
      const int64_t r = call.rows == 1 ? 0 : o;
      call.weights[r] = e_.w + channel * call.taps;
      call.bias[r] = e_.bias != nullptr ? e_.bias[channel] : T(0);
      call.out[r] = e_.y +
                    ((image * e_.s.group_out() + first + o) * planes + j % planes) * e_.s.out[2] +
                    column;
      if (call.rows == 1) call_kernel(call);
    }
    if (call.rows > 1) call_kernel(call);
  }

  ConvElements<T> e_;
  ConvSizes::Axes padded_{};
  int64_t phase_ = 0, row_ = 0, channel_ = 0, packed_ = 0, columns_ = 1, pieces_ = 1;
  std::vector<int64_t> offsets_;
};

}  // namespace

void conv_direct_cpu(const Conv& conv) {
  visit_dtype(DirectTypes{}, conv.y.dtype(), kWho,
              [&]<class T>(TypeTag<T>) { DirectConvRun<Wrapping<T>>(conv).run(); });
}

}  // namespace cuop::kernels
