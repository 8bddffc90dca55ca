// The communicator suite under a real MPI: mpirun -np N cuop_mpi_tests.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/mpi.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/mpi/same_tests.h"
#include "tests/mpi/withdrawn_receives.h"

namespace cuop::dist {

namespace {

/// Longer messages than this are long ones while it lives: sent in chunks of so many bytes, or read
/// in their sender's memory.
class LongFrom : NonCopyable {
 public:
  LongFrom(int64_t bytes, bool is_read) {
    set_mpi_chunk_bytes(bytes);
    set_mpi_reads_memory(is_read);
  }
  ~LongFrom() {
    set_mpi_chunk_bytes(kUsual);
    set_mpi_reads_memory(true);
  }

  static constexpr int64_t kUsual = int64_t{128} << 10;
};

using Cases = std::vector<conformance::Case>;

Cases joined(const std::vector<Cases>& parts) {
  Cases all;
  for (const Cases& each : parts) all.insert(all.end(), each.begin(), each.end());
  return all;
}

Cases with_name(const Cases& cases, std::string_view name) {
  Cases found;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(found),
               [&](const conformance::Case& each) { return each.name == name; });
  return found;
}

int run(const std::shared_ptr<Communicator>& comm) {
  comm->set_timeout(30.0);  // a case that fails on one rank must not hold up the others for long
  const conformance::Runner run_case = rank_test::runner_on(comm);
  const auto run_long = [run_case](int64_t bytes, bool is_read) {
    return [=](int ranks, const std::function<void(conformance::Rank)>& body) {
      const LongFrom scope(bytes, is_read);
      run_case(ranks, body);
    };
  };
  const std::array ranks{comm->size()};
  conformance::register_suite("mpi", ranks, run_case, conformance::all_cases());
  // The cases in which the length of a message matters, also of one that is given up.
  const Cases moved = conformance::movement_cases();
  const Cases given_up = joined({conformance::failure_cases(), conformance::given_up_cases()});
  const Cases refused = with_name(given_up, "wrong_length_is_refused");
  conformance::register_suite("mpi_read", ranks, run_long(64, true), joined({moved, given_up}));
  conformance::register_suite("mpi_chunked", ranks, run_long(64, false), joined({moved, refused}));
  // Chunks that MPI copies at once, and, as between hosts, those that stay where they are until
  // their receiver looks.
  conformance::register_suite("mpi_eager", ranks, run_long(1000, false), given_up);
  conformance::register_suite("mpi_sent", ranks, run_long(LongFrom::kUsual, false),
                              joined({moved, given_up}));
  conformance::register_suite("mpi_chunked", ranks, run_long(64, false),
                              Cases{rank_test::withdrawn_receives()});
  return rank_test::run_same_tests(comm);
}

}  // namespace

}  // namespace cuop::dist

int main(int argc, char** argv) {
  // What is freed goes back to the system at once: MPI, which holds what was given up, ends this
  // process when that is freed too early.
  mallopt(M_MMAP_THRESHOLD, 4096);
  testing::InitGoogleTest(&argc, argv);
  try {
    return cuop::dist::run(cuop::dist::make_mpi_communicator());
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
