// The communicator suite under a real MPI: mpirun -np N cuop_mpi_tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "cuop/core/error.h"
#include "cuop/dist/comm/mpi.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/mpi/failure_printer.h"

namespace cuop::dist {

namespace {

/// The cases in which the length of a message matters.
std::vector<conformance::Case> long_cases() {
  std::vector<conformance::Case> cases = conformance::movement_cases();
  for (const auto& each : conformance::failure_cases()) {
    if (each.name == "wrong_length_is_refused") cases.push_back(each);
  }
  return cases;
}

int run(const std::shared_ptr<Communicator>& comm) {
  comm->set_timeout(30.0);  // a case that fails on one rank must not hold up the others for long
  const auto run_case = [comm](int, const std::function<void(conformance::Rank)>& body) {
    if (!comm->failure().empty()) comm->recover();  // a failed case must not fail the next ones
    body(comm);
  };
  // Messages of more than 64 bytes are long ones: sent in chunks, or read in their sender's memory.
  const auto run_long = [run_case](bool is_read) {
    return [=](int ranks, const std::function<void(conformance::Rank)>& body) {
      set_mpi_chunk_bytes(64);
      set_mpi_reads_memory(is_read);
      run_case(ranks, body);
      set_mpi_chunk_bytes(int64_t{128} << 10);
      set_mpi_reads_memory(true);
    };
  };
  const std::array ranks{comm->size()};
  conformance::register_suite("mpi", ranks, run_case, conformance::all_cases());
  conformance::register_suite("mpi_chunked", ranks, run_long(false), long_cases());
  conformance::register_suite("mpi_read", ranks, run_long(true), long_cases());
  test::print_failures_of(comm->rank());
  int64_t failed = RUN_ALL_TESTS();
  if (!comm->failure().empty()) comm->recover();
  comm->all_reduce(&failed, &failed, 1, DType::kInt64, ReduceKind::kMax);
  return static_cast<int>(failed);
}

}  // namespace

}  // namespace cuop::dist

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    return cuop::dist::run(cuop::dist::make_mpi_communicator());
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
