#include "cuop/dist/exec/made_in_chunks.h"

#include <utility>

#include "cuop/ops/create/empty.h"

namespace cuop::dist {

MadeInChunks::MadeInChunks(Communicator& comm, const std::vector<Box>& made,
                           std::vector<Box> wanted, DType dtype, Device device)
    : comm_(comm), wanted_(std::move(wanted)) {
  const auto rank = static_cast<size_t>(comm.rank());
  const Box &kept = wanted_[rank], &own = made[rank];
  result_ = {empty(kept.shape(), dtype, device), kept, device};
  const bool is_kept = !own.empty() && kept.contains(own);
  block_ = {is_kept ? view_of(result_, own) : empty(own.shape(), dtype, device), own, device};
}

void MadeInChunks::take(const std::vector<Box>& chunks) const {
  const Box& mine = chunks[static_cast<size_t>(comm_.rank())];
  const Part part{mine.empty() ? block_.local : place_of(mine), mine, block_.device};
  fetch_into(comm_, part, chunks, wanted_, result_, result_.local.dtype());
}

}  // namespace cuop::dist
