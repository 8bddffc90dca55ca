#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "cuop/core/dtype.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::conformance {

namespace {

constexpr ReduceKind kOps[] = {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax,
                               ReduceKind::kMin};

/// The float types give values that round, so that a wrong order of the sum shows.
template <class T>
T value(int rank, int64_t i) {
  const int64_t small = (i * 7 + rank * 5) % 11 - 5;
  if constexpr (std::is_same_v<T, bool>) {
    return small % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(small);
  } else if constexpr (std::is_constructible_v<T, double, double>) {
    using Real = typename T::value_type;
    return {static_cast<Real>(1.0 + 0.1 * static_cast<double>(small)),
            static_cast<Real>(0.3 * rank)};
  } else {
    return static_cast<T>(static_cast<float>(small) * 1.37f + 0.1f * static_cast<float>(rank));
  }
}

/// In rank order, 16-bit floats in float32 rounded once, everything else in its own type.
template <class T>
T expected(int ranks, int64_t i, ReduceKind op) {
  using Wide = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;
  Wide total = static_cast<Wide>(value<T>(0, i));
  for (int rank = 1; rank < ranks; ++rank) {
    const Wide next = static_cast<Wide>(value<T>(rank, i));
    if constexpr (std::is_same_v<T, bool>) {
      total = op == ReduceKind::kSum || op == ReduceKind::kMax ? total || next : total && next;
    } else {
      if (op == ReduceKind::kSum) total = static_cast<Wide>(total + next);
      if (op == ReduceKind::kProd) total = static_cast<Wide>(total * next);
      if constexpr (!std::is_constructible_v<T, double, double>) {
        if (op == ReduceKind::kMax) total = std::max(total, next);
        if (op == ReduceKind::kMin) total = std::min(total, next);
      }
    }
  }
  return static_cast<T>(total);
}

/// Bits, not values: all ranks must agree to the last one. (vector<bool> has no data.)
template <class T>
struct Buffer {
  explicit Buffer(int64_t size) : bytes(static_cast<size_t>(size) * sizeof(T)), count(size) {}
  T* data() { return reinterpret_cast<T*>(bytes.data()); }
  std::vector<char> bytes;
  int64_t count;
};

template <class T>
Buffer<T> inputs(int rank, int64_t count) {
  Buffer<T> buffer(count);
  for (int64_t i = 0; i < count; ++i) buffer.data()[i] = value<T>(rank, i);
  return buffer;
}

template <class T>
void expect_reduced(T* data, int64_t begin, int64_t count, int ranks, ReduceKind op,
                    const char* what) {
  int wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T want = expected<T>(ranks, begin + i, op);
    if (std::memcmp(data + i, &want, sizeof(T)) != 0) ++wrong;
  }
  EXPECT_EQ(wrong, 0) << what << " " << name(op) << " of " << name(dtype_of<T>);
}

template <class T>
void check_type(Rank comm, int64_t count, ReduceKind op) {
  const DType dtype = dtype_of<T>;
  const int ranks = comm->size();
  Buffer<T> in = inputs<T>(comm->rank(), count);
  Buffer<T> out(count);
  comm->all_reduce(in.data(), out.data(), count, dtype, op);
  expect_reduced(out.data(), 0, count, ranks, op, "all_reduce");

  const int root = ranks / 2;
  comm->reduce(in.data(), comm->rank() == root ? out.data() : nullptr, count, dtype, op, root);
  if (comm->rank() == root) expect_reduced(out.data(), 0, count, ranks, op, "reduce");

  std::vector<int64_t> counts(static_cast<size_t>(ranks), count / ranks);
  counts[static_cast<size_t>(ranks - 1)] += count % ranks;
  if (ranks > 2) {  // an empty part
    counts[0] += counts[1];
    counts[1] = 0;
  }
  int64_t begin = 0;
  for (int rank = 0; rank < comm->rank(); ++rank) begin += counts[static_cast<size_t>(rank)];
  const int64_t own = counts[static_cast<size_t>(comm->rank())];
  Buffer<T> part(own);
  comm->reduce_scatter(in.data(), part.data(), counts, dtype, op);
  expect_reduced(part.data(), begin, own, ranks, op, "reduce_scatter");

  comm->all_reduce(in.data(), in.data(), count, dtype, op);
  expect_reduced(in.data(), 0, count, ranks, op, "all_reduce in place");
}

template <class Types>
void check_types(Types types, Rank comm, int64_t count, ReduceKind op) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (std::is_same_v<Types, RealTypes> && is_complex(dtype)) continue;
    visit_dtype(types, dtype, "test",
                [&](auto tag) { check_type<typename decltype(tag)::type>(comm, count, op); });
  }
}

void all_dtypes_and_ops(Rank comm) {
  for (ReduceKind op : kOps) {
    const bool is_order = op == ReduceKind::kMax || op == ReduceKind::kMin;
    for (int64_t count : {0, 1, 37}) {
      if (is_order) {
        check_types(RealTypes{}, comm, count, op);
      } else {
        check_types(AllTypes{}, comm, count, op);
      }
    }
  }
}

void long_vectors(Rank comm) {
  check_type<float>(comm, 150'001, ReduceKind::kSum);
  check_type<Half>(comm, 150'001, ReduceKind::kSum);
  check_type<int64_t>(comm, 50'021, ReduceKind::kMax);
}

void nan_propagates(Rank comm) {
  for (ReduceKind op : {ReduceKind::kMax, ReduceKind::kMin}) {
    for (int holder = 0; holder < comm->size(); ++holder) {
      double in[2] = {comm->rank() == holder ? std::numeric_limits<double>::quiet_NaN() : 1.0,
                      static_cast<double>(comm->rank())};
      double out[2] = {0.0, 0.0};
      comm->all_reduce(in, out, 2, DType::kFloat64, op);
      EXPECT_TRUE(std::isnan(out[0]));
      EXPECT_EQ(out[1], op == ReduceKind::kMax ? comm->size() - 1 : 0);
    }
  }
}

void integers_wrap(Rank comm) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  int64_t sum = 0;
  comm->all_reduce(&largest, &sum, 1, DType::kInt64, ReduceKind::kSum);
  EXPECT_EQ(static_cast<uint64_t>(sum),
            static_cast<uint64_t>(largest) * static_cast<uint64_t>(comm->size()));
  const uint16_t wide = 0xffff;
  uint16_t product = 0;
  comm->all_reduce(&wide, &product, 1, DType::kUInt16, ReduceKind::kProd);
  EXPECT_EQ(product, comm->size() % 2 == 1 ? 0xffff : 1);
}

void refuses_what_ranks_do_not_combine_by(Rank comm) {
  double one = 1.0, out = 0.0;
  for (const ReduceKind op : {ReduceKind::kMean, ReduceKind::kArgMax, ReduceKind::kNorm}) {
    EXPECT_THAT([&] { comm->all_reduce(&one, &out, 1, DType::kFloat64, op); },
                testing::ThrowsMessage<ExecutionError>(testing::HasSubstr(
                    cat("ranks combine by sum, prod, max or min, not by ", name(op)))));
  }
  std::complex<float> pair = 1.0f, sum = 0.0f;
  EXPECT_THROW(comm->all_reduce(&pair, &sum, 1, DType::kComplex64, ReduceKind::kMax), DTypeError);
  comm->all_reduce(&pair, &sum, 1, DType::kComplex64, ReduceKind::kSum);
  EXPECT_EQ(sum.real(), static_cast<float>(comm->size()));
}

}  // namespace

std::vector<Case> reduction_cases() {
  return {{"all_dtypes_and_ops", all_dtypes_and_ops},
          {"long_vectors", long_vectors},
          {"nan_propagates", nan_propagates},
          {"integers_wrap", integers_wrap},
          {"refuses_what_ranks_do_not_combine_by", refuses_what_ranks_do_not_combine_by}};
}

}  // namespace cuop::dist::conformance
