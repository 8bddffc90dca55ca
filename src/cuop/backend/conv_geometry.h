// The sizes of a convolution, from which each library and kernel takes what it needs.
#pragma once

#include <array>
#include <cstdint>

namespace cuop::backend {

/// x [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...] and
/// y [batch, out_channels, out...]; missing leading spatial axes have size 1.
struct ConvGeometry {
  using Axes = std::array<int64_t, 3>;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool operator==(const ConvGeometry&) const = default;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  static int64_t volume(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }
};

}  // namespace cuop::backend
