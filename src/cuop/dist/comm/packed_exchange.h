// An exchange of tensors as an all_to_all of bytes: what a rank sends to each peer stands in one
// block of a buffer, and so does what it receives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

class PackedExchange {
 public:
  /// One buffer with a block for each rank. Where the tensors themselves are such blocks there are
  /// no `places`: bytes travel from or to where they are.
  struct Side {
    std::byte* data = nullptr;
    std::vector<Block> blocks;
    std::vector<Tensor> places = {};  ///< of the tensors in the buffer
  };

  /// Copies what is sent to its place, as work of the stream.
  PackedExchange(std::span<const Patch> sends, std::span<const Patch> receives, int ranks,
                 Stream stream);

  const Side& send() const { return send_; }
  const Side& receive() const { return receive_; }
  /// Copies what was received to the tensors.
  void deliver() const;

 private:
  std::span<const Patch> receives_;
  Stream stream_;
  Side send_, receive_;
};

}  // namespace cuop::dist
