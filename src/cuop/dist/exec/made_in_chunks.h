// A tensor that ranks make in blocks, chunk by chunk, and that leaves for where it is wanted so.
#pragma once

#include <vector>

#include "cuop/dist/exec/exchange.h"

namespace cuop::dist {

class MadeInChunks {
 public:
  /// This rank makes `made[rank]` and keeps `wanted[rank]`: in one tensor where it makes what it
  /// keeps.
  MadeInChunks(Communicator& comm, const std::vector<Box>& made, std::vector<Box> wanted,
               DType dtype, Device device);

  /// Where a box of this rank's block is put.
  Tensor place_of(const Box& box) const { return view_of(block_, box); }
  /// Collective: `chunks`, which lie in the ranks' blocks and are made, go where they are wanted.
  void take(const std::vector<Box>& chunks) const;
  /// This rank's part of the result, when all chunks have been taken.
  const Tensor& result() const { return result_.local; }
  /// The tensors that stages of a pipeline share.
  std::vector<Tensor> tensors() const { return {result_.local, block_.local}; }

 private:
  Communicator& comm_;
  std::vector<Box> wanted_;
  Part result_, block_;
};

}  // namespace cuop::dist
