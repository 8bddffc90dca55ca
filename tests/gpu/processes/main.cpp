// The conformance suite with the ranks' buffers on GPUs, where ranks are processes:
//   mpirun -np 2 cuop_gpu_process_tests
//   cuop_gpu_process_tests --processes=2      the same joined by TCP, without a launcher
//   cuop_gpu_process_tests --processes=2 --killed      the last one dies while they exchange
//   cuop_gpu_process_tests --processes=2 --killed=boxes      or while it brings what they share
//   cuop_gpu_process_tests --processes=2 --waiting=stopped      (killed, left, passed_on)
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/bootstrap.h"
#include "cuop/ops/create/create.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/dist/socket_ranks.h"
#include "tests/gpu/processes/waiting.h"
#include "tests/gpu/ranks/box_cases.h"
#include "tests/gpu/ranks/fabric_cases.h"
#include "tests/gpu/ranks/on_gpu.h"
#include "tests/mpi/same_tests.h"

extern char** environ;

namespace cuop::dist {
namespace {

using Body = std::function<void(conformance::Rank)>;

int run_suite(const std::shared_ptr<Communicator>& comm) {
  comm->set_timeout(60.0);  // a case that fails on one rank must not hold up the others for long
  const conformance::Runner run_case = rank_test::runner_on(comm);
  const std::array ranks{comm->size()};
  conformance::register_suite(
      "gpu", ranks,
      [run_case](int size, const Body& body) {
        run_case(size, [&](conformance::Rank each) { body(rank_test::on_gpu(each)); });
      },
      conformance::all_cases());
  conformance::register_suite(
      "mapped", ranks,
      [run_case](int size, const Body& body) {
        run_case(size,
                 [&](conformance::Rank each) { rank_test::mapped(body)(rank_test::on_gpu(each)); });
      },
      conformance::all_cases());
  conformance::register_suite("fabric", ranks, run_case, rank_test::fabric_cases());
  conformance::register_suite("order", ranks, run_case, rank_test::fabric_order_cases());
  conformance::register_suite("boxes", ranks, run_case, rank_test::box_cases());
  return rank_test::run_same_tests(comm);
}

/// The last rank ends at some moment of an endless row of exchanges; the others must be told which.
int run_killed(const std::shared_ptr<Communicator>& comm) {
  comm->set_timeout(30.0);
  const int last = comm->size() - 1;
  const Device device = backend::current_device();
  std::thread end;
  const auto start = std::chrono::steady_clock::now();
  try {
    for (int round = 0;; ++round) {
      std::vector<Patch> sends, receives;
      for (int peer = 0; peer < comm->size(); ++peer) {
        sends.push_back({peer, full({1000, 300 + round % 7}, round, DType::kFloat32, device)});
        receives.push_back({peer, empty(sends[0].elements.shape(), DType::kFloat32, device)});
      }
      comm->exchange(sends, receives, current_stream(device));
      if (round == 3 && comm->rank() == last) {
        end = std::thread([] {
          rank_test::pause(0.02);
          kill(getpid(), SIGKILL);
        });
      }
    }
  } catch (const CommunicationError& error) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const bool is_right = error.rank() == last && took.count() < 25.0;
    if (!is_right) std::cerr << "rank " << comm->rank() << ": " << error.what() << std::endl;
    return is_right ? 0 : 1;
  }
}

/// Starts this program once for each rank, as torchrun would; the first status that is not
/// expected.
int start_processes(int count, bool is_killed, bool is_stopped, char** argv) {
  const rank_test::ReservedPorts ports;  // the ranks are awaited below
  const std::string port = std::to_string(ports.first());
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    std::vector<std::string> settings = {cat("RANK=", rank),
                                         cat("LOCAL_RANK=", rank),
                                         "MASTER_ADDR=127.0.0.1",
                                         cat("WORLD_SIZE=", count),
                                         cat("LOCAL_WORLD_SIZE=", count),
                                         "MASTER_PORT=" + port,
                                         "TORCHELASTIC_RUN_ID=tests",
                                         "CUOP_JOB_SECRET=" + rank_test::kSecret};
    std::vector<char*> variables;
    for (char** each = environ; *each != nullptr; ++each) variables.push_back(*each);
    for (std::string& setting : settings) variables.push_back(setting.data());
    variables.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, variables.data()) != 0) {
      std::cerr << "no process for rank " << rank << std::endl;
      return 1;
    }
    children.push_back(child);
  }
  int result = 0;
  for (int rank = 0; rank < count; ++rank) {
    int status = 0;
    if (is_stopped && rank == count - 1) kill(children.back(), SIGKILL);  // the others are through
    waitpid(children[static_cast<size_t>(rank)], &status, 0);
    const bool is_expected = is_killed && rank == count - 1
                                 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                 : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (is_expected) continue;
    std::cerr << "rank " << rank << " ended with status " << status << std::endl;
    if (result == 0) result = 1;
  }
  return result;
}

/// `all` are the arguments as they were given, of which GoogleTest has taken its own.
int run(int argc, char** argv, char** all) {
  if (backend::device_count(DeviceType::kCuda) == 0) {
    std::cout << "nothing is run: needs a CUDA GPU" << std::endl;
    return 0;
  }
  constexpr std::string_view kProcesses = "--processes=";
  constexpr std::string_view kWaiting = "--waiting=";
  constexpr std::string_view kKilled = "--killed";
  std::string_view killed, waiting;
  int processes = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kKilled)) killed = argument;
    if (argument.starts_with(kWaiting)) waiting = argument.substr(kWaiting.size());
    if (argument.starts_with(kProcesses)) {
      processes = std::atoi(argv[i] + kProcesses.size());
    }
  }
  const bool is_started = std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
  if (processes > 0 && !is_started) {
    const bool is_stopped = waiting == "stopped";
    const bool is_ended = !killed.empty() || (!waiting.empty() && waiting != "left");
    return start_processes(processes, is_ended, is_stopped, all);
  }
  if (!waiting.empty()) return rank_test::run_waiting(world(), waiting);
  if (killed == "--killed=boxes") return rank_test::run_killed_among_boxes(world());
  return killed.empty() ? run_suite(world()) : run_killed(world());
}

}  // namespace
}  // namespace cuop::dist

int main(int argc, char** argv) {
  std::vector<char*> all(argv, argv + argc + 1);
  testing::InitGoogleTest(&argc, argv);
  try {
    return cuop::dist::run(argc, argv, all.data());
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
