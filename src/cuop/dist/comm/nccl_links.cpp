#include "cuop/dist/comm/nccl_links.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/finding.h"
#include "cuop/dist/comm/socket_link.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

namespace {

using backend::cuda::NcclGroup;
using backend::cuda::NcclId;
using fabric::Text;

constexpr int64_t kLinkTrialWords = 512;
/// For each thing to be found out; others wait for this rank meanwhile.
constexpr double kLongest = 30.0, kPartOfTimeout = 0.2;

/// From the first member to the others.
struct Invitation {
  int64_t is_made = 0;
  Text reason;  ///< why not
  NcclId id;
};

}  // namespace

std::vector<int> NcclLinks::members(std::span<const Candidate> candidates) {
  std::vector<int> found;
  std::set<std::string> gpus;
  int64_t version = 0;
  for (size_t rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& each = candidates[rank];
    if (each.version == 0 || (version != 0 && each.version != version)) continue;
    if (!gpus.insert(each.gpu.str()).second) continue;  // NCCL takes a GPU once
    version = each.version;
    found.push_back(static_cast<int>(rank));
  }
  return found;
}

NcclLinks::NcclLinks(Exchange& x, Device device, const Text& gpu, std::vector<LinkNeed> needs)
    : device_(device), needs_(std::move(needs)) {
  const bool is_able = !device_.is_cpu() && env().nccl.value;
  const Candidate mine{is_able ? backend::cuda::nccl_version() : 0, gpu};
  members_ = members(swap_with_all(x, std::vector<Candidate>(needs_.size(), mine)));
  if (members_.size() < 2) return;
  for (int rank = 0; rank < x.size(); ++rank) {
    const bool is_between_members = is_member(x.rank()) && is_member(rank) && rank != x.rank();
    if (!is_between_members) needs_[static_cast<size_t>(rank)] = {};
  }
  if (is_member(x.rank())) meet(x);
  if (!all_agree(x)) return;
  if (is_member(x.rank())) try_links(x);
  is_used_ = all_agree(x);
}

int NcclLinks::index(int rank) const {
  const auto place = std::ranges::lower_bound(members_, rank);
  const bool is_there = place != members_.end() && *place == rank;
  return is_there ? static_cast<int>(place - members_.begin()) : -1;
}

void NcclLinks::meet(Exchange& x) {
  const int first = members_.front();
  Invitation invitation;
  if (x.rank() == first) {
    invitation.reason = Text(finding_of([&] { invitation.id = backend::cuda::new_nccl_id(); }));
    invitation.is_made = invitation.reason.str().empty() ? 1 : 0;
    for (const int member : members_) {
      if (member != first) x.post_send(&invitation, sizeof invitation, member);
    }
  } else {
    x.post_recv(&invitation, sizeof invitation, first);
  }
  x.wait_all();
  if (invitation.is_made == 0) {
    finding_ = cat("rank ", first, ": ", invitation.reason.str());
    return;
  }
  std::memcpy(&mark_, invitation.id.bytes.data() + invitation.id.bytes.size() / 2, sizeof mark_);
  finding_ = finding_of([&] {
    group_ = std::make_unique<NcclGroup>(device_, index(x.rank()),
                                         static_cast<int>(members_.size()), invitation.id);
  });
  await(x, "the others of its group", [this] { return group_->is_ready(); });
}

void NcclLinks::try_links(Exchange& x) {
  const auto word = [&](int from, int to) {
    return mark_ + static_cast<uint64_t>(from) * static_cast<uint64_t>(x.size()) +
           static_cast<uint64_t>(to);
  };
  const Stream stream = current_stream(device_);
  const auto fresh = [&] { return empty({kLinkTrialWords}, DType::kUInt64, device_); };
  std::vector<Copy> sends, receives;
  finding_ = finding_of([&] {
    for (int rank = 0; rank < x.size(); ++rank) {
      if (need(rank).from) receives.push_back({rank, fresh()});
      if (!need(rank).to) continue;
      sends.push_back({rank, fresh()});
      const uint64_t content = word(x.rank(), rank);
      backend::runtime(device_).fill(sends.back().tensor.data(), &content, sizeof content,
                                     kLinkTrialWords, stream);
    }
    start(sends, receives, stream);
  });
  await(x, "a trial", [&] { return is_through(stream); });
  if (!finding_.empty()) return;
  finding_ = finding_of([&] {
    for (const auto& [rank, tensor] : receives) {
      const Tensor host = to_device(tensor, kCpu);
      const uint64_t expected = word(rank, x.rank());
      const auto* const words = host.data<uint64_t>();
      if (std::count(words, words + kLinkTrialWords, expected) == kLinkTrialWords) continue;
      throw ExecutionError(cat("what rank ", rank, " sends arrives as something else"));
    }
  });
}

/// Until it holds, an error or the deadline, which are findings; at once where there is one.
template <class Holds>
void NcclLinks::await(Exchange& x, const char* what, Holds&& holds) {
  if (!finding_.empty()) return;
  const double longest = std::min(kLongest, kPartOfTimeout * x.timeout());
  const double end = steady_seconds() + longest;
  x.post_condition(
      [&, this] {
        bool is_there = false;
        finding_ = finding_of([&] { is_there = holds(); });
        if (!is_there && finding_.empty() && steady_seconds() > end) {
          finding_ = cat("NCCL waited ", longest, " s for ", what);
        }
        return is_there || !finding_.empty();
      },
      x.rank());
  x.wait_all();
}

/// Whether no rank has found anything against it; else it is given up.
bool NcclLinks::all_agree(Exchange& x) {
  const int64_t mine = finding_.empty() ? 1 : 0;
  const auto theirs = swap_with_all(x, std::vector<int64_t>(needs_.size(), mine));
  const auto other = std::ranges::find(theirs, 0);
  if (finding_.empty() && other != theirs.end()) {
    finding_ = cat("rank ", other - theirs.begin(), " cannot use it");
  }
  if (!finding_.empty()) group_.reset();
  return finding_.empty();
}

std::vector<NcclGroup::Piece> NcclLinks::pieces_of(std::span<const Copy> copies) const {
  std::vector<NcclGroup::Piece> pieces;
  for (const auto& [rank, tensor] : copies) {
    pieces.push_back({index(rank), tensor.data(), tensor.nbytes()});
  }
  return pieces;
}

void NcclLinks::start(std::span<const Copy> sends, std::span<const Copy> receives, Stream stream) {
  group_->copy(pieces_of(sends), pieces_of(receives), stream);
}

bool NcclLinks::is_through(Stream stream) const {
  return group_->is_ready() && backend::runtime(stream.device).is_idle(stream);
}

void NcclLinks::copy(Exchange& x, std::span<const Copy> sends, std::span<const Copy> receives,
                     Stream stream) {
  // What goes wrong between hosts is nobody's own mistake: the call fails on all ranks.
  const auto error = [](const ExecutionError& of_nccl) {
    return CommunicationError(cat("copies by NCCL: ", of_nccl.what()));
  };
  const int peer = sends.empty() ? receives.front().rank : sends.front().rank;
  try {
    start(sends, receives, stream);
  } catch (const ExecutionError& of_nccl) {
    x.fail(x.rank(), error(of_nccl).what());
  }
  x.post_condition(
      [&] {
        try {
          return is_through(stream);
        } catch (const ExecutionError& of_nccl) {
          throw error(of_nccl);
        }
      },
      peer);
  x.wait_all();
}

}  // namespace cuop::dist
