// Softmax on a GPU beside the CPU's.
#include "cuop/ops/softmax/softmax.h"

#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::expect_same;
using test::Guarded;
using test::random_tensor;

class GpuSoftmax : public GpuTest {
 protected:
  static void compare(const Tensor& host, int64_t axis, const std::string& what) {
    const Tensor device = to_device(host, kGpu);
    // One thread adds up to an eighth of a column, each step with a rounding of its own.
    const double ulps = 32.0 + static_cast<double>(host.shape(static_cast<int>(axis))) / 256;
    expect_same(softmax(device, axis), softmax(host, axis), ulps, "softmax " + what);
    // Near 0 a logarithm has the error of the sum near 1.
    expect_same(log_softmax(device, axis), log_softmax(host, axis), ulps, "log_softmax " + what,
                1.0);
  }
};

TEST_F(GpuSoftmax, RowsOfEveryLength) {
  for (const DType dtype : kFloats) {
    for (const int64_t length : {1, 2, 3, 8, 31, 64, 127, 333, 1024, 2048, 4099, 16384, 100003}) {
      for (const int64_t rows : {1, 7}) {
        const Tensor host = random_tensor({rows, length}, dtype, static_cast<int>(length));
        compare(host, 1, cat(dtype, ' ', host.shape()));
      }
    }
  }
}

TEST_F(GpuSoftmax, EveryAxis) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 40, 300}, Shape{1, 1, 1}, Shape{500, 2, 3},
                               Shape{2, 1009, 64}}) {
      for (const int64_t axis : {0, 1, 2}) {
        compare(random_tensor(shape, dtype, 3), axis, cat(dtype, ' ', shape, " axis ", axis));
      }
    }
  }
}

TEST_F(GpuSoftmax, EmptyTensorsStayEmpty) {
  for (const Shape& shape : {Shape{0}, Shape{0, 5}, Shape{5, 0}, Shape{3, 0, 4}}) {
    const Tensor y = softmax(zeros(shape, DType::kFloat32, kGpu), 0);
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(y.device(), kGpu);
  }
}

TEST_F(GpuSoftmax, InfinitiesAndNaNs) {
  const float inf = HUGE_VALF;
  // Rows that are kept, rows that are not, and columns.
  for (const int64_t length : {7, 300, 40000}) {
    const Tensor host = random_tensor({8, length}, DType::kFloat32, 1);
    float* x = host.data<float>();
    std::fill_n(x, length, -inf);
    x[length + 3] = inf;
    x[2 * length + 5] = NAN;
    std::fill_n(x + 3 * length, length - 1, -inf);
    x[4 * length] = -inf;
    std::fill_n(x + 5 * length, length, NAN);
    std::fill_n(x + 6 * length, length, 3e38f);
    std::fill_n(x + 7 * length, length, -3e38f);
    compare(host, 1, cat("special rows of ", length));
    compare(clone(transpose(host)), 0, cat("special columns of ", length));
  }
}

TEST_F(GpuSoftmax, ViewsOutputsAndInPlace) {
  const Tensor host = random_tensor({20, 64, 33}, DType::kFloat32, 2);
  const Tensor device = to_device(host, kGpu);
  expect_same(softmax(transpose(select(device, 0, 3)), 1),
              softmax(transpose(select(host, 0, 3)), 1), 32.0, "transposed");
  // Slices whose first element is not aligned.
  for (const int64_t start : {1, 2, 3}) {
    const Tensor flat = reshape(device, {20 * 64 * 33}), same = reshape(host, {20 * 64 * 33});
    expect_same(softmax(slice(flat, 0, start, start + 4096)),
                softmax(slice(same, 0, start, start + 4096)), 32.0, cat("from ", start));
  }
  const Tensor wanted = softmax(host, 1);
  softmax(device, 1, &device);
  expect_same(device, wanted, 32.0, "in place");
}

TEST_F(GpuSoftmax, WritesNothingBeyondItsOutput) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{3, 5}, Shape{33, 127}, Shape{2, 40001}}) {
      const Tensor x = to_device(random_tensor(shape, dtype, 4), kGpu);
      for (const int64_t axis : {0, 1}) {
        const Guarded out(shape, dtype, kGpu);
        softmax(x, axis, &out.tensor());
        out.expect_intact(cat(dtype, ' ', shape, ' ', axis));
      }
    }
  }
}

}  // namespace
}  // namespace cuop
