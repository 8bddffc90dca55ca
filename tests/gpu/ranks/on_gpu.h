// The calls of the conformance suite, whose buffers lie on the host, made with GPU buffers.
#pragma once

#include <functional>
#include <memory>

#include "cuop/dist/comm/communicator.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {

/// Makes the collective calls of a host's buffers with copies of them on the rank's current GPU.
/// Every fourth rank keeps its on the host.
std::shared_ptr<Communicator> on_gpu(std::shared_ptr<Communicator> inner);

/// The body, on ranks that map each other's memory for calls of any length.
std::function<void(conformance::Rank)> mapped(std::function<void(conformance::Rank)> body);

}  // namespace cuop::dist::rank_test
