// The conformance suite of communicators with buffers on GPUs: straight between threads, mapped
// (also the shortest ones) or through host memory where ranks are joined by sockets or alone. Every
// fourth rank keeps its on the host.
#include <gtest/gtest.h>

#include <array>

#include "cuop/backend/runtime.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/comm/self.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/dist/socket_ranks.h"
#include "tests/gpu/ranks/box_cases.h"
#include "tests/gpu/ranks/fabric_cases.h"
#include "tests/gpu/ranks/on_gpu.h"

namespace cuop::dist {
namespace {

using Body = std::function<void(conformance::Rank)>;

Body on_gpus(const Body& body) {
  return [body](conformance::Rank comm) {
    if (backend::device_count(DeviceType::kCuda) == 0) return;  // main says why nothing is run
    body(rank_test::on_gpu(comm));
  };
}

[[maybe_unused]] const bool kIsRegistered = [] {
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  conformance::register_suite(
      "thread_gpu", kRanks, [](int ranks, const Body& body) { run_ranks(ranks, on_gpus(body)); },
      conformance::all_cases());
  constexpr int kFewRanks[] = {2, 3};
  conformance::register_suite(
      "socket_gpu", kFewRanks,
      [](int ranks, const Body& body) { rank_test::run_socket_ranks(ranks, on_gpus(body)); },
      conformance::all_cases());
  conformance::register_suite(
      "socket_fabric", kFewRanks,
      [](int ranks, const Body& body) {
        if (backend::device_count(DeviceType::kCuda) > 0) rank_test::run_socket_ranks(ranks, body);
      },
      rank_test::fabric_cases());
  conformance::register_suite(
      "socket_boxes", kFewRanks,
      [](int ranks, const Body& body) {
        if (backend::device_count(DeviceType::kCuda) > 0) rank_test::run_socket_ranks(ranks, body);
      },
      rank_test::box_cases());
  constexpr int kMixedRanks[] = {2, 4};
  conformance::register_suite(
      "socket_mapped", kMixedRanks,
      [](int ranks, const Body& body) {
        rank_test::run_socket_ranks(ranks, on_gpus(rank_test::mapped(body)));
      },
      conformance::all_cases());
  conformance::register_suite(
      "self_gpu", std::array{1},
      [](int, const Body& body) { on_gpus(body)(make_self_communicator()); },
      conformance::all_cases());
  return true;
}();

}  // namespace
}  // namespace cuop::dist
