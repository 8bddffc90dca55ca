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
#include "cuop/ops/conv/direct_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/dtype_lists.h"

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
class DirectConv {
 public:
  explicit DirectConv(const Conv& conv)
      : s_(conv.sizes),
        x_(static_cast<const T*>(conv.x.data())),
        w_(static_cast<const T*>(conv.w.data())),
        bias_(conv.bias.is_defined() ? static_cast<const T*>(conv.bias.data()) : nullptr),
        y_(static_cast<T*>(conv.y.data())) {
    for (size_t i = 0; i < 3; ++i) {
      padded_[i] = (s_.out[i] - 1) * s_.stride[i] + (s_.kernel[i] - 1) * s_.dilation[i] + 1;
    }
    phase_ = divide_up(padded_[2], s_.stride[2]);
    row_ = phase_ * s_.stride[2];
    channel_ = checked_multiply(checked_multiply(padded_[0], padded_[1], kWho), row_, kWho);
    // Columns of a row that are computed at a time, few enough to be short work.
    constexpr int64_t kShort = 1 << 22, kFewest = 64;
    const int64_t taps = std::max<int64_t>(1, s_.group_in() * ConvSizes::volume(s_.kernel));
    columns_ = std::max(kFewest, kShort / taps / kFewest * kFewest);
    pieces_ = divide_up(s_.out[2], columns_);
    packed_ = checked_add(checked_multiply(std::max<int64_t>(1, s_.group_in()), channel_, kWho),
                          kDirectSlack, kWho);
    for (int64_t c = 0; c < s_.group_in(); ++c) {
      for (int64_t kd = 0; kd < s_.kernel[0]; ++kd) {
        for (int64_t kh = 0; kh < s_.kernel[1]; ++kh) {
          for (int64_t kw = 0; kw < s_.kernel[2]; ++kw) {
            const int64_t column = kw * s_.dilation[2];
            offsets_.push_back(c * channel_ + row_offset(kd * s_.dilation[0], kh * s_.dilation[1]) +
                               column % s_.stride[2] * phase_ + column / s_.stride[2]);
          }
        }
      }
    }
  }

  void run() const {
    const int64_t jobs = s_.batch * s_.groups;
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
      const T* const x = x_ + i * s_.group_in() * ConvSizes::volume(s_.in);
      backend::parallel_for(s_.group_in(), 1, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) {
          pack(x + c * ConvSizes::volume(s_.in), packed + c * channel_);
        }
      });
      const int64_t blocks = divide_up(s_.group_out(), kDirectRows);
      backend::parallel_for(blocks * s_.out[0] * s_.out[1] * pieces_, pieces_ > 1 ? 1 : 8,
                            [&](int64_t first, int64_t last) {
                              for (int64_t j = first; j < last; ++j) compute(i, j, packed);
                            });
    }
  }

  void pack(const T* image, T* to) const {
    for (int64_t d = 0; d < padded_[0]; ++d) {
      for (int64_t h = 0; h < padded_[1]; ++h) {
        const int64_t id = d - s_.padding[0], ih = h - s_.padding[1];
        const bool is_outside = id < 0 || id >= s_.in[0] || ih < 0 || ih >= s_.in[1];
        const T* const from = is_outside ? nullptr : image + (id * s_.in[1] + ih) * s_.in[2];
        for (int64_t r = 0; r < s_.stride[2]; ++r, to += phase_) {
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
    const int64_t step = s_.stride[2], shift = r - s_.padding[2];
    const int64_t first = std::clamp<int64_t>((step - 1 - shift) / step, 0, phase_);
    const int64_t last = std::clamp<int64_t>(divide_up(s_.in[2] - shift, step), first, phase_);
    std::fill(to, to + first, T(0));
    for (int64_t q = first; q < last; ++q) to[q] = row[q * step + shift];
    std::fill(to + last, to + phase_, T(0));
  }

  /// A piece of one output row of up to kDirectRows channels; `index` counts pieces inside rows
  /// inside blocks of channels.
  void compute(int64_t image, int64_t index, const T* packed) const {
    const int64_t j = index / pieces_, column = index % pieces_ * columns_;
    const int64_t planes = s_.out[0] * s_.out[1];
    const int64_t od = j % planes / s_.out[1], oh = j % s_.out[1];
    const int64_t first = j / planes * kDirectRows;
    const int64_t filled = std::min<int64_t>(kDirectRows, s_.group_out() - first);
    const int64_t group = image % s_.groups;
    DirectCall<T> call{};
    call.taps = static_cast<int64_t>(offsets_.size());
    call.width = std::min(columns_, s_.out[2] - column);
    call.packed = packed + row_offset(od * s_.stride[0], oh * s_.stride[1]) + column;
    call.offsets = offsets_.data();
    call.rows = filled == kDirectRows ? kDirectRows : 1;
    for (int64_t o = 0; o < filled; ++o) {
      const int64_t channel = group * s_.group_out() + first + o;
      const int64_t r = call.rows == 1 ? 0 : o;
      call.weights[r] = w_ + channel * call.taps;
      call.bias[r] = bias_ != nullptr ? bias_[channel] : T(0);
      call.out[r] =
          y_ + ((image * s_.group_out() + first + o) * planes + j % planes) * s_.out[2] + column;
      if (call.rows == 1) call_kernel(call);
    }
    if (call.rows > 1) call_kernel(call);
  }

  ConvSizes s_;
  const T* x_;
  const T* w_;
  const T* bias_;
  T* y_;
  ConvSizes::Axes padded_{};
  int64_t phase_ = 0, row_ = 0, channel_ = 0, packed_ = 0, columns_ = 1, pieces_ = 1;
  std::vector<int64_t> offsets_;
};

}  // namespace

void conv_direct_cpu(const Conv& conv) {
  visit_dtype(DirectTypes{}, conv.y.dtype(), kWho,
              [&]<class T>(TypeTag<T>) { DirectConv<Wrapping<T>>(conv).run(); });
}

}  // namespace cuop::kernels
