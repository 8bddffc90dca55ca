// Memory of the ranks' GPUs that they map for longer than a call.
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/fabric.h"

namespace cuop::dist {

using fabric::MapNote;

/// What a rank that reads this one's memory is told of it; what is new of it is queued.
std::vector<MapNote> Fabric::notes_for(int rank, std::span<const Tensor> mine) {
  std::vector<MapNote> notes(mine.size());
  Peer& to = peer(rank);
  for (size_t i = 0; i < mine.size() && to.reads_us; ++i) {
    const Tensor& tensor = mine[i];
    if (!tensor.is_defined() || tensor.device() != device_) continue;
    if (tensor.size() == 0 || !fabric::Exports::can_describe(tensor)) continue;
    notes[i].is_there = 1;
    notes[i].tensor = to.exports->describe(tensor);
  }
  for (MapNote& note : notes) note.pieces = to.reads_us ? to.exports->count() : 0;
  return notes;
}

std::vector<Tensor> Fabric::views_of(Exchange& x, int rank, const std::vector<MapNote>& notes) {
  std::vector<Tensor> views(notes.size());
  for (size_t i = 0; i < notes.size(); ++i) {
    if (notes[i].is_there == 0) continue;
    try {
      if (!peer(rank).imports) throw CommunicationError("was told of memory that it does not read");
      const fabric::TensorNote& note = notes[i].tensor;
      if (note.ndim != 1 || note.shape[0] <= 0) {
        throw CommunicationError(cat("expects bytes, and was told of ", text_of(note)));
      }
      views[i] = peer(rank).imports->view(note, DType::kUInt8, {note.shape[0]});
    } catch (const CommunicationError& error) {
      x.fail(rank, cat(error.what(), " (from rank ", rank, ")"));
    }
  }
  return views;
}

std::vector<std::vector<Tensor>> Fabric::map(Exchange& x, std::span<const Tensor> mine) {
  tidy();
  std::vector<std::vector<MapNote>> out(peers_.size()), in(peers_.size());
  const auto for_each_other = [&](const auto& act) {
    for (int rank = 0; rank < x.size(); ++rank) {
      if (rank != rank_) act(rank, static_cast<size_t>(rank));
    }
  };
  const auto bytes = static_cast<int64_t>(mine.size() * sizeof(MapNote));
  for_each_other([&](int rank, size_t i) {
    out[i] = notes_for(rank, mine);
    in[i].resize(mine.size());
    x.post_send(out[i].data(), bytes, rank);
    x.post_recv(in[i].data(), bytes, rank);
  });
  x.wait_all();
  for_each_other([&](int rank, size_t i) {
    if (peer(rank).imports && !in[i].empty()) post_arrival(x, rank, in[i][0].pieces);
    if (peer(rank).reads_us) post_departure(x, rank);
  });
  x.wait_all();
  std::vector<std::vector<Tensor>> result(peers_.size(), std::vector<Tensor>(mine.size()));
  for_each_other([&](int rank, size_t i) { result[i] = views_of(x, rank, in[i]); });
  return result;
}

}  // namespace cuop::dist
