// Outputs between zones that nothing may write to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::test {

class Guarded {
 public:
  Guarded(const Shape& shape, DType dtype, Device device)
      : bytes_(full({element_count(shape) * itemsize(dtype) + 2 * kZone}, kMark, DType::kUInt8,
                    device)),
        tensor_(bytes_.storage(), offset_layout(shape, kZone / itemsize(dtype)), dtype) {}

  const Tensor& tensor() const { return tensor_; }
  void expect_intact(const std::string& what) const {
    const Tensor seen = to_device(bytes_, kCpu);
    const auto* byte = seen.data<uint8_t>();
    const auto is_mark = [](uint8_t value) { return value == kMark; };
    EXPECT_TRUE(std::all_of(byte, byte + kZone, is_mark)) << what << ": written before";
    EXPECT_TRUE(std::all_of(byte + seen.size() - kZone, byte + seen.size(), is_mark))
        << what << ": written behind";
  }

 private:
  static constexpr int64_t kZone = 256;  ///< bytes
  static constexpr int kMark = 0xa5;

  static Layout offset_layout(const Shape& shape, int64_t offset) {
    Layout layout = contiguous_layout(shape);
    layout.offset = offset;
    return layout;
  }

  Tensor bytes_, tensor_;
};

}  // namespace cuop::test
