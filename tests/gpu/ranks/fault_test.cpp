// A rank whose GPU fails inside of a distributed call, on the simulated GPU (CONTRIBUTING.md): it
// raises what its GPU said, the others raise an error that names it, and all go on, or those that
// are left.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <ostream>
#include <span>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/algo/stencil.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/memory/current.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/rank_tensors.h"
#include "tests/dist/socket_ranks.h"
#include "tests/error_of.h"
#include "tests/ordered_faults.h"

namespace cuop::dist {
namespace {

using cuop::test::error_of;
using cuop::test::order_faults;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Body = std::function<void(const CommunicatorPtr&)>;

constexpr int kRanks = 3, kFaulty = 1;
constexpr double kTimeout = 60.0, kGrace = 20.0;  // seconds

/// Of complex numbers their magnitudes.
std::vector<double> values(const Tensor& tensor) {
  const Tensor host = to_device(tensor, kCpu);
  return rank_test::values(is_complex(host.dtype()) ? abs(host) : host);
}

/// A call with its operands.
using Call = std::function<Tensor()>;
struct Work {
  const char* name;
  /// It answers the same on every rank, whatever their number.
  std::function<Call(const CommunicatorPtr&)> make;
};

Sharding everywhere(const CommunicatorPtr& comm) {
  return Sharding::replicated(Mesh::line(comm->size()));
}
DistTensor split(const CommunicatorPtr& comm, const Shape& shape, int dim = 0) {
  const Sharding sharding(Mesh::line(comm->size()), split_dim(shape.ndim(), dim));
  return rank_test::laid_out(comm, rank_test::counting(shape), sharding);
}

Call exchange(const CommunicatorPtr& comm) {
  const Tensor mine = permute(rank_test::counting({50, 40}), std::vector<int64_t>{1, 0});
  std::vector<Patch> sends, receives;
  for (int peer = 0; peer < comm->size(); ++peer) {
    sends.push_back({peer, mine});
    receives.push_back({peer, full(mine.shape(), -1.0, mine.dtype(), mine.device())});
  }
  return [=] {
    comm->exchange(sends, receives, current_stream(mine.device()));
    return receives.back().elements;
  };
}

Call all_reduce(const CommunicatorPtr& comm) {
  const Tensor x = rank_test::counting({3000});
  return [=] {
    comm->all_reduce(x.data(), x.data(), x.size(), x.dtype(), ReduceKind::kMin,
                     current_stream(x.device()));
    return x;
  };
}

Call redistributing(const CommunicatorPtr& comm) {
  return [x = split(comm, {37, 41})] { return gather_all(x); };
}
Call multiplying(const CommunicatorPtr& comm) {
  return [a = split(comm, {24, 30}, 1), b = split(comm, {30, 20})] {
    return gather_all(matmul(a, b, {.strategy = "row"}));
  };
}
Call transforming(const CommunicatorPtr& comm) {
  return [x = split(comm, {16, 32})] { return gather_all(sum(fft2d_pencil(x), {0})); };
}
Call sweeping(const CommunicatorPtr& comm) {
  const DistTensor kernel =
      rank_test::laid_out(comm, rank_test::counting({3, 3}), everywhere(comm));
  return [kernel, grid = split(comm, {30, 20})] {
    return gather_all(stencil_2d(grid, kernel, Boundary::kPeriodic, 2));
  };
}
Call summing(const CommunicatorPtr& comm) {
  return [x = split(comm, {30, 20})] { return gather_all(sum(x, {0})); };
}

const std::vector<Work>& works() {
  static const std::vector<Work> all = {
      {"exchange", exchange},  {"all_reduce", all_reduce}, {"redistribute", redistributing},
      {"matmul", multiplying}, {"fft", transforming},      {"stencil", sweeping},
      {"sum", summing}};
  return all;
}

/// From the end of this meeting on the fault may come, for some while others are still in it.
void meet(const CommunicatorPtr& comm, const std::string& fault) {
  comm->barrier();
  if (comm->rank() != kFaulty) return;
  memory::current_resource(rank_test::home()).release_cached();
  EXPECT_TRUE(order_faults(cat(fault, ':', rank_test::home().index).c_str()));
}

/// Meets, then makes the call until it raises; "" when it does not. What the rank's own GPU says
/// outside of calls it tells the others itself.
std::string error_of_calls(const CommunicatorPtr& comm, const Call& call,
                           const std::vector<double>& expected, const std::string& fault) {
  const bool is_faulty = comm->rank() == kFaulty;
  for (int round = 0; round < 30; ++round) {
    Tensor result;
    try {
      if (round == 0) meet(comm, fault);
      result = call();
    } catch (const CommunicationError& error) {
      EXPECT_FALSE(is_faulty) << error.what();
      EXPECT_EQ(error.rank(), kFaulty) << error.what();
      return error.what();
    } catch (const Error& error) {
      EXPECT_TRUE(is_faulty) << error.what();
      return error.what();
    }
    try {
      EXPECT_EQ(values(result), expected);
    } catch (const Error& error) {
      if (!is_faulty) {
        EXPECT_THAT(error.what(), HasSubstr(cat("waited for that of cuda:", kFaulty)));
        continue;
      }
      comm->abort(error.what());
      return error.what();
    }
  }
  return "";
}

/// What a fault must look like from all ranks; whether it came.
bool strike(const CommunicatorPtr& comm, const Call& call, const std::vector<double>& expected,
            const std::string& fault) {
  const bool is_faulty = comm->rank() == kFaulty;
  const double begin = steady_seconds();
  const std::string error = error_of_calls(comm, call, expected, fault);
  if (is_faulty) order_faults("");
  if (error.empty()) return false;
  EXPECT_LT(steady_seconds() - begin, kGrace);
  EXPECT_THAT(error,
              AnyOf(HasSubstr("CUDA_ERROR_"), HasSubstr("CUFFT_EXEC_FAILED"),
                    HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED"), HasSubstr("were asked of cuda:")));
  return true;
}

using Transport = void (*)(const Body& body);

void on_threads(const Body& body) { run_ranks(kRanks, {DeviceType::kCuda, 0}, body); }
void on_sockets(const Body& body) {
  rank_test::run_socket_ranks(kRanks, [&](const CommunicatorPtr& comm) {
    backend::set_current_device({DeviceType::kCuda, comm->rank()});
    body(comm);
  });
}

struct Param {
  const char* transport;
  Transport run;
  size_t work;
  const char* fault;  ///< "" for a row of them
  friend void PrintTo(const Param& param, std::ostream* out) { *out << param.transport; }
};

class FaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) < kRanks ||
        cuop::test::find_fault_order() == nullptr) {
      GTEST_SKIP() << "needs " << kRanks << " simulated GPUs";
    }
  }
};

class RankFaults : public FaultTest, public ::testing::WithParamInterface<Param> {
 protected:
  static const Work& work() { return works()[GetParam().work]; }
};

/// Errors of one call: the ranks recover and make it again.
TEST_P(RankFaults, OfOneCallAreRecoveredFrom) {
  constexpr const char* kFaults[] = {"alloc:1+:2", "launch:1:1", "launch:2:801", "copy:1:1",
                                     "pin:1+:2",   "map:1:2",    "wait:2:999"};
  std::atomic<int> came = 0;
  GetParam().run([&](const CommunicatorPtr& comm) {
    comm->set_timeout(kTimeout);
    const Call call = work().make(comm);
    const std::vector<double> expected = values(call());
    for (const char* fault : kFaults) {
      SCOPED_TRACE(fault);
      const bool has_come = strike(comm, call, expected, fault);
      if (has_come) ++came;
      comm->recover();
      EXPECT_EQ(values(call()), expected);
    }
  });
  EXPECT_EQ(came % kRanks, 0);
  EXPECT_GE(came, kRanks);
}

/// While ranks find out who reads whose memory, and map it: a call that cannot have it that way
/// goes the other one, or fails as it should.
TEST_F(FaultTest, InTheTrialOfEachOthersMemory) {
  for (const char* fault : {"map:1:2", "map:2:2", "map:3:801", "map:5:2", "map:1+:2", "alloc:1:2",
                            "fill:1:1", "wait:1:999", "copy:1:1"}) {
    SCOPED_TRACE(fault);
    on_sockets([&](const CommunicatorPtr& comm) {
      comm->set_timeout(kTimeout);
      const Call call = exchange(comm);
      const std::vector<double> expected =
          values(permute(rank_test::counting({50, 40}), std::vector<int64_t>{1, 0}));
      strike(comm, call, expected, fault);
      comm->recover();
      EXPECT_EQ(values(call()), expected);
    });
  }
}

std::string name_of(const Param& param) {
  std::string text = cat(param.transport, '_', works()[param.work].name);
  if (*param.fault != 0) text += cat('_', param.fault);
  std::ranges::replace(text, ':', '_');
  return text;
}

std::vector<Param> params(std::span<const char* const> faults) {
  std::vector<Param> all;
  for (size_t work = 0; work < works().size(); ++work) {
    for (const char* fault : faults) {
      all.push_back({"threads", on_threads, work, fault});
      all.push_back({"sockets", on_sockets, work, fault});
    }
  }
  return all;
}

constexpr const char* kNone[] = {""};
INSTANTIATE_TEST_SUITE_P(Sim, RankFaults, ::testing::ValuesIn(params(kNone)),
                         [](const auto& test) { return name_of(test.param); });

/// The GPU is lost, so each of these needs a process of its own, as ctest gives it.
class LostGpus : public RankFaults {
 protected:
  void SetUp() override {
    RankFaults::SetUp();
    if (IsSkipped()) return;
    try {
      backend::runtime({DeviceType::kCuda, kFaulty}).check_works();
    } catch (const Error&) {
      GTEST_SKIP() << "an earlier test of this process has ended the use of the GPU";
    }
  }
};

/// What waited for work that failed is no result, whoever looks at it.
TEST_F(FaultTest, WorkThatWaitedForALostGpuIsNotBelieved) {
  const Device lost{DeviceType::kCuda, 0}, other{DeviceType::kCuda, 1};
  const Tensor x = full({100}, 1.0, DType::kFloat64, lost);
  const Tensor y = full({100}, 2.0, DType::kFloat64, other);
  backend::Runtime& runtime = backend::runtime(other);
  const Stream stream = current_stream(other);
  runtime.order(stream, current_stream(lost));
  EXPECT_EQ(values(y), std::vector<double>(100, 2.0));  // and nothing is awaited any more
  runtime.order(stream, current_stream(lost));
  ASSERT_TRUE(order_faults("fill:1:700:0"));
  const Tensor spoiled = full({100}, 1.0, DType::kFloat64, lost);
  EXPECT_THROW(backend::runtime(lost).synchronize(), ExecutionError);
  const auto told = HasSubstr("its work on cuda:1 waited for that of cuda:0");
  EXPECT_THAT(error_of<ExecutionError>([&] { values(y); }), told);
  EXPECT_THAT(error_of<ExecutionError>([&] { runtime.synchronize(stream); }), told);
  EXPECT_THAT(error_of<ExecutionError>([&] { runtime.is_idle(stream); }), told);
  EXPECT_THROW(backend::runtime(lost).check_works(), ExecutionError);
  runtime.forget_order();
  EXPECT_EQ(values(y), std::vector<double>(100, 2.0));
}

TEST_P(LostGpus, AreSurvivedByTheOthers) {
  std::atomic<int> came = 0;
  GetParam().run([&](const CommunicatorPtr& comm) {
    comm->set_timeout(kTimeout);
    const Call call = work().make(comm);
    const std::vector<double> expected = values(call());
    if (strike(comm, call, expected, GetParam().fault)) ++came;
    if (comm->rank() == kFaulty) return;
    const CommunicatorPtr left = comm->shrink();
    EXPECT_EQ(left->size(), kRanks - 1);
    left->set_timeout(kTimeout);
    const Call again = work().make(left);
    for (int round = 0; round < 3; ++round) EXPECT_EQ(values(again()), expected);
  });
  EXPECT_EQ(came, kRanks);
}

constexpr const char* kEnding[] = {"copy:1:719", "any:2:700", "any:7:716", "wait:3:700"};
INSTANTIATE_TEST_SUITE_P(Sim, LostGpus, ::testing::ValuesIn(params(kEnding)),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace cuop::dist
