#include "cuop/ops/sparse/product_path.h"

#include <algorithm>

#include "cuop/core/enum_names.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/sparse/sparse.h"

namespace cuop {

namespace {

constexpr const char* kPathNames[] = {"dense", "sparse", "auto"};

/// What a sparse product costs in units of the dense one's multiplications.
struct SparseCost {
  double nonzero;  ///< each multiplication of an element that is kept
  double element;  ///< each element that is looked at, counted and taken apart
  double moved;    ///< each element that is brought into another order
  double least;    ///< multiplications of a dense product before which nobody looks
};
// A core of an AMD EPYC: benchmarks/sparse_products.py, products of 1024 and 2048.
constexpr SparseCost kOnCpu{3.3, 70.0, 60.0, 0.0};
// Assumed and not measured: a sparse product on the general cores beside one on all of them, and
// several passes over memory to take a matrix apart. Looking at samples and waiting for what they
// say takes some 60 us, 3 % of the shortest dense product before which that is done.
constexpr SparseCost kOnGpu{30.0, 600.0, 200.0, 5e10};

constexpr double kWorthwhile = 0.9;
constexpr int64_t kSampledRows = 32;

const SparseCost& cost_on(Device device) { return device.is_cpu() ? kOnCpu : kOnGpu; }

double multiplications(const CountedProduct& product) {
  return static_cast<double>(product.m) * static_cast<double>(product.n) *
         static_cast<double>(product.k);
}

bool can_be_sparse(DType result) { return result == DType::kFloat32 || result == DType::kFloat64; }

/// Of tensors on one device, which is waited for once.
std::vector<int64_t> count_nonzeros(const std::vector<Tensor>& tensors) {
  const auto count = static_cast<int64_t>(tensors.size());
  const Tensor counts = empty({count}, DType::kInt64, tensors[0].device());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor place = reshape(slice(counts, 0, i, i + 1), {});
    sum(cast(tensors[static_cast<size_t>(i)], DType::kBool), {}, false, SumMode::kPlain, &place);
  }
  const Tensor there = to_device(counts, kCpu);
  return {there.data<int64_t>(), there.data<int64_t>() + count};
}

/// The same of rows at even distances, as if all were like them.
std::vector<int64_t> sampled_nonzeros(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> samples;
  for (const Tensor& x : tensors) {
    const int64_t step = std::max<int64_t>(1, x.shape(0) / kSampledRows);
    samples.push_back(slice(x, 0, 0, x.shape(0), step));
  }
  std::vector<int64_t> counts = count_nonzeros(samples);
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts[i] * tensors[i].shape(0) / std::max<int64_t>(1, samples[i].shape(0));
  }
  return counts;
}

/// The cheaper operand by zeros that are counted where a sample promises enough of them; `tensors`
/// are a, or a and b, which is without zeros where it is not given.
SparseOperand counted_operand(CountedProduct product, const std::vector<Tensor>& tensors) {
  const Device device = tensors[0].device();
  const auto cheaper = [&](const std::vector<int64_t>& nonzeros, int64_t quarters) {
    product.a_nonzeros = nonzeros[0] * quarters / 4;
    if (nonzeros.size() > 1) product.b_nonzeros = nonzeros[1] * quarters / 4;
    return cheaper_operand(product, device);
  };
  if (multiplications(product) < cost_on(device).least) return SparseOperand::kNone;
  std::vector<int64_t> none(tensors.size(), 0);
  // Counting all is left out where three quarters of what a sample has are still too many.
  if (cheaper(none, 4) == SparseOperand::kNone) return SparseOperand::kNone;
  if (cheaper(sampled_nonzeros(tensors), 3) == SparseOperand::kNone) return SparseOperand::kNone;
  return cheaper(count_nonzeros(tensors), 4);
}

bool is_finite(const Tensor& x) {
  const Tensor are_all_finite = to_device(all(isfinite(x)), kCpu);
  return *are_all_finite.data<bool>();
}

/// c = sparse b, or c += it.
void add_product(const SparseMatrix& a, const Tensor& b, bool adds, const Tensor& c) {
  if (!adds) {
    matmul(a, b, &c);
  } else {
    add(c, matmul(a, b), &c);
  }
}

}  // namespace

const char* name(ProductPath path) { return kPathNames[static_cast<size_t>(path)]; }

ProductPath parse_product_path(std::string_view text, const char* who) {
  return parse_name<ProductPath>(cat(who, ": product"), kPathNames, text);
}

SparseOperand cheaper_operand(const CountedProduct& p, Device device) {
  const SparseCost& cost = cost_on(device);
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  const double by_a = cost.nonzero * static_cast<double>(p.a_nonzeros) * n + cost.element * m * k;
  // Turned around: A and the result change their order too.
  const double by_b = cost.nonzero * static_cast<double>(p.b_nonzeros) * m + cost.element * k * n +
                      cost.moved * (m * k + m * n);
  if (std::min(by_a, by_b) > kWorthwhile * multiplications(p)) return SparseOperand::kNone;
  return by_a <= by_b ? SparseOperand::kA : SparseOperand::kB;
}

std::optional<SparseMatrix> taken_apart(const Tensor& a, int64_t n, ProductPath path, DType dtype) {
  if (!can_be_sparse(dtype) || path == ProductPath::kDense) return std::nullopt;
  if (path == ProductPath::kAuto) {
    const CountedProduct product{a.shape(0), n, a.shape(1), 0, a.shape(1) * n};
    if (counted_operand(product, {a}) != SparseOperand::kA) return std::nullopt;
  }
  return to_sparse(cast(a, dtype));
}

void multiply_apart(const SparseMatrix& apart, const Tensor& a, const Tensor& b, ProductPath path,
                    const Tensor& c) {
  if (path == ProductPath::kAuto && !is_finite(b)) {
    matmul(a, b, {.dtype = c.dtype()}, &c);
    return;
  }
  const trace::Span span("matmul by zeros", "op");
  matmul(apart, cast(b, c.dtype()), &c);
}

SparseOperand multiply_by_path(const Tensor& a, const Tensor& b, bool adds, ProductPath path,
                               const Tensor& c) {
  SparseOperand taken = SparseOperand::kNone;
  if (can_be_sparse(c.dtype()) && path == ProductPath::kSparse) taken = SparseOperand::kA;
  if (can_be_sparse(c.dtype()) && path == ProductPath::kAuto) {
    taken = counted_operand({c.shape(0), c.shape(1), a.shape(1), 0, 0}, {a, b});
    const Tensor& other = taken == SparseOperand::kA ? b : a;
    if (taken != SparseOperand::kNone && !is_finite(other)) taken = SparseOperand::kNone;
  }
  if (taken == SparseOperand::kNone) {
    matmul(a, b, {.beta = adds ? 1 : 0, .dtype = c.dtype()}, &c);
    return taken;
  }
  const trace::Span span("matmul by zeros", "op");
  const Tensor left = cast(a, c.dtype()), right = cast(b, c.dtype());
  if (taken == SparseOperand::kA) {
    add_product(to_sparse(left), right, adds, c);
  } else {
    const Tensor turned = swap_axes(c, 0, 1);
    add_product(to_sparse(swap_axes(right, 0, 1)), swap_axes(left, 0, 1), adds, turned);
  }
  return taken;
}

}  // namespace cuop
