#include "cuop/ops/fft/root_table.h"

#include <cmath>
#include <numbers>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::spectral {

std::complex<double> root_of_unity(int64_t m, int64_t n) {
  // The angle is folded into an eighth of the circle while numbers are whole, so that what is left
  // is exact.
  const int64_t quarter = (8 * m / n + 1) / 2;
  const auto rest = static_cast<double>(4 * m - n * quarter);
  const double angle = 0.5 * std::numbers::pi * (rest / static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

RootTable::Size::Size(int64_t n) {
  while ((n >> shift) >> shift > 1) ++shift;
  coarse_count = (n >> shift) + 1;
}

RootTable::RootTable(int64_t n, bool is_conjugate, Device device) : size_(n) {
  const int64_t fine_count = size_.count() - size_.coarse_count;
  const Tensor table = empty({size_.count()}, DType::kComplex128);
  Root* const to = table.data<Root>();
  const auto root = [&](int64_t m) {
    const Root forward = std::conj(root_of_unity(m % n, n));
    return is_conjugate ? std::conj(forward) : forward;
  };
  for (int64_t i = 0; i < size_.coarse_count; ++i) to[i] = root(i << size_.shift);
  for (int64_t i = 0; i < fine_count; ++i) to[size_.coarse_count + i] = root(i);
  roots_ = to_device(table, device);
}

std::vector<std::complex<double>> quarter_turns(int64_t n) {
  const RootTable table(4 * n, false, kCpu);
  const RootTable::Places places = table.places();
  std::vector<std::complex<double>> turns;
  turns.reserve(static_cast<size_t>(n / 2 + 1));
  for (int64_t k = 0; k <= n / 2; ++k) turns.push_back(places.at(k));
  return turns;
}

int64_t RootTable::bytes(int64_t n) { return Size(n).count() * static_cast<int64_t>(sizeof(Root)); }

}  // namespace cuop::spectral
