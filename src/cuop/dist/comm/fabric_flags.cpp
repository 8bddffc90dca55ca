#include "cuop/dist/comm/fabric_flags.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/descriptor_channel.h"
#include "cuop/dist/comm/finding.h"
#include "cuop/dist/comm/socket_link.h"
#include "cuop/memory/shared_memory.h"

namespace cuop::dist::fabric {

using backend::cuda::has_reached;

namespace {

/// Numbers go round through 0 early, so that tests see it.
constexpr uint32_t kFirst = 0xfffffff8;

/// Of a trial.
constexpr double kLongest = 10.0, kPartOfTimeout = 0.25;

/// Two ranks with the same one are threads of one process, whose streams may be the same.
const ChannelToken& this_process() {
  static const ChannelToken token = new_channel_token();
  return token;
}

struct FlagOffer {
  int64_t is_able = 0;
  ChannelToken process = {};
  memory::SharedMemoryName page;
};

bool are_of_one_process(const std::vector<FlagOffer>& offers) {
  std::set<ChannelToken> processes;
  for (const FlagOffer& offer : offers) processes.insert(offer.process);
  return processes.size() < offers.size();
}

}  // namespace

Flags::Flags(Exchange& x, Device device, Watched watched, const std::vector<bool>& is_wanted,
             std::string absence)
    : device_(device),
      watched_(std::move(watched)),
      rank_(x.rank()),
      size_(x.size()),
      finding_(std::move(absence)),
      peers_(static_cast<size_t>(x.size())),
      stream_{device},
      issued_(kFirst) {
  if (finding_.empty() && !env().stream_flags.value) finding_ = "CUOP_STREAM_FLAGS=0";
  if (finding_.empty() && !watched_.heartbeat) finding_ = "nobody would see that a rank dies";
  if (finding_.empty()) {
    finding_ = finding_of([&] {
      page_ =
          std::make_unique<FlagPage>(device_, memory::SharedMemory::create(FlagPage::bytes(size_)));
      page_->set_all(size_, kFirst - 1);
    });
  }
  connect(x, is_wanted);
  if (!is_used()) {
    page_.reset();
    return;
  }
  for (Peer& each : peers_) {
    each.sent = each.received = kFirst;
    if (!each.is_used) each.page.reset();
  }
  guard_ = std::make_shared<Guard>(device_, page_->memory(), rank_, size_);
  start_watching();
}

Flags::~Flags() {
  if (guard_) stop_watching();
}

bool Flags::is_used() const {
  return std::ranges::any_of(peers_, [](const Peer& each) { return each.is_used; });
}

void Flags::connect(Exchange& x, const std::vector<bool>& is_wanted) {
  std::vector<FlagOffer> offers(peers_.size());
  for (FlagOffer& offer : offers) {
    offer.is_able = page_ ? 1 : 0;
    offer.process = this_process();
    if (page_) offer.page = page_->name();
  }
  offers = swap_with_all(x, offers);
  if (are_of_one_process(offers)) {
    finding_ = "ranks are threads of one process";
    page_.reset();
  }
  std::vector<int64_t> is_open(peers_.size(), 0);
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    const bool is_tried = page_ && is_wanted[rank] && offers[rank].is_able != 0;
    if (!is_tried || static_cast<int>(rank) == rank_) continue;
    const std::string wrong = finding_of([&] {
      auto memory = memory::SharedMemory::open(offers[rank].page);
      if (!memory || memory->name().bytes != FlagPage::bytes(size_)) {
        throw ExecutionError(cat("the flags of rank ", rank, " cannot be opened"));
      }
      peers_[rank].page = std::make_unique<FlagPage>(device_, std::move(memory));
    });
    is_open[rank] = wrong.empty() ? 1 : 0;
    if (!wrong.empty()) finding_ = wrong;
  }
  const std::vector<int64_t> said = swap_with_all(x, is_open);
  std::vector<bool> is_mutual(peers_.size());
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    is_mutual[rank] = is_open[rank] != 0 && said[rank] != 0;
  }
  make_trial(x, is_mutual);
}

/// Each stream writes to the others and waits for them.
void Flags::make_trial(Exchange& x, const std::vector<bool>& is_mutual) {
  const auto is_tried = [&](int rank) { return is_mutual[static_cast<size_t>(rank)]; };
  const bool has_some = std::ranges::count(is_mutual, true) > 0;
  std::string wrong;
  if (has_some) {
    const Stream stream = current_stream(device_);
    wrong = finding_of([&] {
      for (int rank = 0; rank < size_; ++rank) {
        if (!is_tried(rank)) continue;
        theirs(rank).flags().write(theirs(rank).from(rank_).ready, kFirst, stream);
        theirs(rank).flags().write(theirs(rank).from(rank_).read, kFirst, stream);
      }
      page_->flags().write(own().begun, kFirst, stream);
      for (int rank = 0; rank < size_; ++rank) {
        if (!is_tried(rank)) continue;
        page_->flags().await(page_->from(rank).ready, kFirst, stream);
        page_->flags().await(page_->from(rank).read, kFirst, stream);
      }
      page_->flags().write(own().done, kFirst, stream);
    });
    const double longest = std::min(kLongest, kPartOfTimeout * x.timeout());
    const double end = steady_seconds() + longest;
    x.post_condition(
        [&] {
          if (wrong.empty()) wrong = finding_of([&] { backend::runtime(device_).check_works(); });
          if (!wrong.empty() || has_reached(own().done, kFirst)) return true;
          if (steady_seconds() > end) wrong = cat("a stream waited ", longest, " s for others");
          return !wrong.empty();
        },
        rank_);
    x.wait_all();
    for (int rank = 0; rank < size_ && !wrong.empty(); ++rank) {
      if (!is_tried(rank)) continue;  // neither this stream nor theirs waits any more
      page_->from(rank).ready = page_->from(rank).read = kFirst;
      theirs(rank).from(rank_).ready = theirs(rank).from(rank_).read = kFirst;
    }
    if (!wrong.empty()) finding_ = wrong;
    if (!has_reached(own().done, kFirst)) {  // what a stream may still use stays
      static_cast<void>(page_.release());
      for (Peer& each : peers_) static_cast<void>(each.page.release());
    }
  }
  std::vector<int64_t> is_right(peers_.size());
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    is_right[rank] = is_mutual[rank] && wrong.empty() ? 1 : 0;
  }
  const std::vector<int64_t> said = swap_with_all(x, is_right);
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].is_used = is_right[rank] != 0 && said[rank] != 0;
  }
}

void Flags::begin(Stream stream, double timeout) {
  if (is_open_) return;
  guard_->check();
  backend::Runtime& runtime = backend::runtime(device_);
  if (runtime.is_recording(stream)) {
    throw ExecutionError(cat("exchange: cannot be recorded: a graph is captured on ", device_));
  }
  const uint32_t last = issued_;
  if (!(stream == stream_)) page_->flags().await(own().done, last, stream);
  {
    const Lock lock(mutex_);
    while (!calls_.empty() && has_reached(own().done, calls_.front().number)) calls_.pop_front();
    calls_.push_back({last + 1});
    if (calls_.size() == 1) moved_at_ = steady_seconds();
    timeout_ = timeout;
    issued_ = last + 1;
  }
  stream_ = stream;
  is_open_ = true;
  page_->flags().write(own().begun, last + 1, stream);
}

uint32_t Flags::write_ready(int rank) {
  const uint32_t number = ++peer(rank).sent;
  theirs(rank).flags().write(theirs(rank).from(rank_).ready, number, stream_);
  return number;
}

/// The thread that looks after it knows of a wait before it begins.
void Flags::await(const Wait& wait) {
  {
    const Lock lock(mutex_);
    calls_.back().waits.push_back(wait);
  }
  page_->flags().await(*wait.flag, wait.number, stream_);
}

void Flags::await_ready(int rank) {
  await({rank, &page_->from(rank).ready, ++peer(rank).received});
}

bool Flags::is_ready(int rank) const {
  return has_reached(page_->from(rank).ready, peers_[static_cast<size_t>(rank)].received);
}

void Flags::write_read(int rank) {
  theirs(rank).flags().write(theirs(rank).from(rank_).read, peer(rank).received, stream_);
}

void Flags::await_read(int rank) { await({rank, &page_->from(rank).read, peer(rank).sent}); }

void Flags::end() {
  if (!is_open_) return;
  page_->flags().write(own().done, issued_, stream_);
  is_open_ = false;
}

bool Flags::is_through() const { return !guard_ || has_reached(own().done, issued_); }

}  // namespace cuop::dist::fabric
